"""roam: what each part is worth, taken out one by one, and the CPU time of a received frame beside hint's.

The map's world on a seed of its own, 140 s measured. Only ratios of the CPU times count.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time_ns
from typing import Any, Final
from unittest.mock import patch

from roamcast.analysis.measures.cost import cost
from roamcast.analysis.measures.deadlines import by_deadline
from roamcast.front import run as simulate
from roamcast.protocols.api import Broker
from roamcast.protocols.hint import HintBroker
from roamcast.protocols.roam import broker, links, ways
from roamcast.protocols.roam.broker import RoamBroker
from roamcast.units import SECOND

MAP: Final = Path("studies/map/scenarios/map.toml")
SEED: Final = 1101
SIDES: Final = {4: 1521, 12: 867, 20: 655}
"""The side of the area by mean degree, as the map has them."""
CELLS: Final = ((1, 4), (20, 4), (1, 12), (20, 12), (1, 20))

PARTS: Final[dict[str, Callable[[], Any]]] = {
    "whole": lambda: patch.object(broker, "WAIT", broker.WAIT),
    "no repair, no carrying": lambda: patch.object(RoamBroker, "_repair", lambda *_: None),
    "no carrying": lambda: patch.object(RoamBroker, "_worth_carrying", lambda *_: False),
    "no answer to a new neighbour": lambda: patch.object(RoamBroker, "_hurry", lambda *_: None),
    "distances do not grow": lambda: patch.object(ways, "HOPS_PER_LIFE", 0.01),
    "hellos every 5 s": lambda: patch.object(links.Links, "interval", lambda *_: 5 * SECOND),
    "the same wait for all": lambda: patch.object(broker, "WAIT", 0),
}


def changes(speed: int, degree: int, protocol: str) -> dict[str, Any]:
    return {
        "seed": SEED,
        "duration": 300,
        "movement.speed": [speed, speed],
        "area.width": SIDES[degree],
        "area.height": SIDES[degree],
        "protocol": {"name": protocol},
    }


def print_parts() -> None:
    print("delivered of possible within 10 s / 60 s, at ms on the air per delivery; speed x degree")
    print(f"{'':32}" + "".join(f"{f'{speed} x {degree}':>22}" for speed, degree in CELLS))
    for name, without in PARTS.items():
        row = []
        for speed, degree in CELLS:
            with without():
                run = simulate(MAP, changes=changes(speed, degree, "roam"))
            by = by_deadline(run, (10, 60))
            row.append(
                f"{by['delivered_of_possible_10']:.3f} / {by['delivered_of_possible_60']:.3f} at "
                f"{cost(run)['airtime_per_delivery']:.2f}"
            )
        print(f"{name:32}" + "".join(f"{cell:>22}" for cell in row), flush=True)


@contextmanager
def timed(kind: type[Broker[Any]]) -> Iterator[list[int]]:
    """Calls of `receive`, and their CPU time, ns."""
    spent, receive = [0, 0], kind.receive

    def measured(self: Broker[Any], *args: Any) -> None:  # noqa: ANN401  # a broker's
        started = thread_time_ns()
        receive(self, *args)
        spent[1] += thread_time_ns() - started
        spent[0] += 1

    with patch.object(kind, "receive", measured):
        yield spent


def print_cpu() -> None:
    for speed, degree in ((1, 12), (20, 20)):
        took = {}
        for name, kind in (("hint", HintBroker), ("roam", RoamBroker)):
            with timed(kind) as spent:
                simulate(MAP, changes=changes(speed, degree, name))
            took[name] = spent[1] / spent[0] / 1000
        print(
            f"{speed} x {degree}: a received frame takes {took['roam']:.1f} µs, with hint {took['hint']:.1f}: "
            f"{took['roam'] / took['hint']:.2f} times"
        )


def run() -> None:
    print_cpu()
    print_parts()
