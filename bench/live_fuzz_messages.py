"""Valid messages with extreme contents against the broker of every protocol: none raises, none takes long.

`python -m bench live-fuzz-messages` gives 100,000 inputs to each protocol, `python -m bench.live_fuzz_messages
10000000` that many to all of them together. An input is a message, a sender and a moment; every twentieth is a new one.
Inputs go in chunks of `CHUNK`, each with a broker and a seed of its own, which are its number and that of the run
(`--seed`). `--protocol coman` takes one protocol alone. With `--log FILE` every chunk is written down when it is done,
and the same command goes on where it was interrupted.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from protocols.strangers import SETTINGS, Outcome, throw
from roamcast.protocols.catalogue import CATALOGUE

SEED: Final = 1
COUNT: Final = 100_000
CHUNK: Final = 25_000
BUDGET: Final = 0.2
"""Seconds of CPU that one call may take on a busy machine: four times what it may on a quiet one."""
QUIET: Final = BUDGET / 4


@dataclass
class Log:
    """The chunks that are done, in a file if one is given."""

    path: Path | None
    done: dict[str, dict[str, Any]]

    @staticmethod
    def of(path: Path | None) -> "Log":
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        rows = [json.loads(line) for line in lines]
        return Log(path, {row["chunk"]: row for row in rows})

    def add(self, row: dict[str, Any]) -> None:
        self.done[row["chunk"]] = row
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _chunks(name: str, count: int, seed: int, log: Log) -> Iterator[dict[str, Any]]:
    settings = SETTINGS.get(name, ({},))
    for number, start in enumerate(range(0, count, CHUNK)):
        inputs = min(CHUNK, count - start)
        chunk = f"{name} seed {seed} chunk {number} of {inputs}"
        if chunk not in log.done:
            try:
                outcome = throw(CATALOGUE[name], random.Random(chunk), inputs, settings[number % len(settings)])
                if outcome.slowest >= QUIET:  # the machine, or the call? The same inputs again tell
                    again = throw(CATALOGUE[name], random.Random(chunk), inputs, settings[number % len(settings)])
                    outcome = min(outcome, again, key=lambda one: one.slowest)
            except BaseException:
                print(f"raised in {chunk}", file=sys.stderr)
                raise
            log.add(_row(chunk, outcome, outcome.spent))
            print(
                f"  {chunk}: slowest {outcome.slowest * 1000:.1f} ms, {outcome.slowest_call}",
                file=sys.stderr,
                flush=True,
            )
        yield log.done[chunk]


def _row(chunk: str, outcome: Outcome, spent: float) -> dict[str, Any]:
    assert outcome.slowest < BUDGET, (
        f"{chunk}: {outcome.slowest:.3f} s for {outcome.slowest_call} after {outcome.slowest_payload[:2000].hex()}"
    )
    row = {name: getattr(outcome, name) for name in ("inputs", "messages", "octets", "slowest", "slowest_call")}
    return {"chunk": chunk, **row, "spent": spent}


def run(
    count: int = COUNT, names: Sequence[str] = tuple(CATALOGUE), seed: int = SEED, path: Path | None = None
) -> None:
    """`count` inputs for each protocol."""
    print("live messages: valid encodings with extreme contents into each broker")
    print(
        f"{'protocol':<14}{'inputs':>12}{'messages':>10}{'octets each':>13}{'ns per octet':>14}"
        f"{'slowest, ms':>13}{'CPU s':>8}"
    )
    log, everything = Log.of(path), list[dict[str, Any]]()
    for name in names:
        rows = list(_chunks(name, count, seed, log))
        _tell(name, rows)
        everything += rows
    _tell("all", everything)


def _tell(name: str, rows: list[dict[str, Any]]) -> None:
    inputs, messages, octets, spent = (
        sum(row[what] for row in rows) for what in ("inputs", "messages", "octets", "spent")
    )
    slowest = max(row["slowest"] for row in rows) * 1000
    print(
        f"{name:<14}{inputs:>12,d}{messages:>10,d}{octets // inputs:>13,d}{spent / octets * 1e9:>14.0f}"
        f"{slowest:>13.1f}{spent:>8.0f}",
        flush=True,
    )


def main(words: list[str]) -> None:
    options = argparse.ArgumentParser(prog="python -m bench.live_fuzz_messages", description=__doc__)
    options.add_argument("inputs", type=int, nargs="?", help="inputs for all protocols together")
    options.add_argument("--protocol", action="append", choices=list(CATALOGUE), help="one protocol; may be repeated")
    options.add_argument("--seed", type=int, default=SEED, help="seed of the inputs")
    options.add_argument("--log", type=Path, help="file in which finished chunks are written down")
    given = options.parse_args(words)
    names = given.protocol or list(CATALOGUE)
    run(COUNT if given.inputs is None else -(-given.inputs // len(names)), names, given.seed, given.log)


if __name__ == "__main__":
    main(sys.argv[1:])
