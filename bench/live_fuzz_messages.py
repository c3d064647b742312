"""Valid messages with extreme contents against the broker of every protocol: none raises, none takes long.

`python -m bench.live_fuzz_messages 20000 coman seed=2` runs fewer, one protocol alone, or others;
1250000 for each of the eight are ten millions. An input is a message, a sender and a moment; every twentieth is a new
message.
"""

import random
import sys
from time import process_time
from typing import Final

from bench.fuzz.messages import throw
from roamcast.protocols.catalogue import CATALOGUE

SEED: Final = 1
COUNT: Final = 100_000
BUDGET: Final = 2.0
"""Seconds of CPU that one message may take, of up to 40 kB, on a machine that is busy with other things."""


def run(count: int = COUNT, names: tuple[str, ...] = tuple(CATALOGUE), seed: int = SEED) -> None:
    print("live messages: valid encodings with extreme contents into each broker")
    print(f"{'protocol':<14}{'inputs':>12}{'messages':>10}{'octets each':>13}{'slowest, ms':>13}{'CPU s':>8}")
    inputs = 0
    for name in names:
        started = process_time()
        outcome = throw(CATALOGUE[name], random.Random(seed), lambda done: done < count)
        each, spent = outcome.octets // max(1, outcome.inputs), process_time() - started
        told = f"{name:<14}{outcome.inputs:>12,d}{outcome.messages:>10,d}{each:>13,d}{outcome.slowest * 1000:>13.1f}"
        print(f"{told}{spent:>8.0f}", flush=True)
        inputs += outcome.inputs
        assert outcome.slowest < BUDGET, (
            f"{name}: a message took {outcome.slowest:.1f} s: {outcome.slowest_payload.hex()}"
        )
    print(f"{'all':<14}{inputs:>12,d}")


if __name__ == "__main__":
    run(
        next((int(word) for word in sys.argv[1:] if word.isdigit()), COUNT),
        tuple(word for word in sys.argv[1:] if word in CATALOGUE) or tuple(CATALOGUE),
        next((int(word.removeprefix("seed=")) for word in sys.argv[1:] if word.startswith("seed=")), SEED),
    )
