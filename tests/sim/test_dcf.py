"""The medium access against the analytic model: the throughput of N stations that always have something to send.

The model is Bianchi's (IEEE JSAC 18(3), 2000), with a finite number of retries: a station that has failed i times
waits a uniform number of slots below W_i, and every slot, idle or busy, is one step of its chain.
"""

import pytest

from roamcast.sim.core import kernel
from roamcast.sim.core.interface import FIRST_HOST_KIND, Settings, Upcall
from roamcast.units import SECOND

SIZE = 1000
SLOT, SIFS, DIFS = 20.0, 10.0, 50.0  # µs
DATA = 192 + (SIZE + 64) * 8 / 2
ACK = 192 + 14 * 8 / 2
WINDOWS = [32, 64, 128, 256, 512, 1024, 1024, 1024]


def analytic_throughput(stations: int) -> float:
    """Bits of messages a microsecond."""
    low, high = 0.0, 1.0
    for _ in range(100):  # the chance that a transmission collides, by bisection: both sides are monotonic
        collides = (low + high) / 2
        weights = [collides**i for i in range(len(WINDOWS))]
        attempts = sum(weights) / sum(w * (size + 1) / 2 for w, size in zip(weights, WINDOWS, strict=True))
        if 1 - (1 - attempts) ** (stations - 1) > collides:
            low = collides
        else:
            high = collides
    idle = (1 - attempts) ** stations
    success = stations * attempts * (1 - attempts) ** (stations - 1)
    collision = 1 - idle - success
    success_time = DATA + SIFS + ACK + DIFS
    collision_time = DATA + SIFS + 192 + 14 * 8 + DIFS  # EIFS: the acknowledgement at 1 Mb/s
    return success * SIZE * 8 / (idle * SLOT + success * success_time + collision * collision_time)


def simulated_throughput(stations: int, seconds: int) -> float:
    core = kernel.Core(Settings(nodes=stations, seed=5, kinds=FIRST_HOST_KIND + 1, sense=2.2, capture=False))
    for node in range(stations):
        core.set_range(node, 250.0)
        core.set_leg(node, 0, float(node), 0.0, 0.0, 0.0)
    for node in range(stations):
        for place in range(2):  # one served, one waiting: never without
            core.send(node, 2 * node + place, (node + 1) % stations, SIZE, FIRST_HOST_KIND, 0, False)
    arrived = 0
    while (upcall := core.advance(seconds * SECOND)) is not Upcall.REACHED:
        if upcall is Upcall.DELIVERED:
            arrived += 1
        elif upcall in (Upcall.FINISHED, Upcall.UNREACHABLE):
            node = core.sender
            core.send(node, core.handle, (node + 1) % stations, SIZE, FIRST_HOST_KIND, core.now, False)
    return arrived * SIZE * 8 / (seconds * 1e6)


@pytest.mark.parametrize("stations", [2, 5, 10, 20])
def test_saturated_stations_share_the_channel_as_the_model_says(stations: int) -> None:
    assert simulated_throughput(stations, seconds=120) == pytest.approx(analytic_throughput(stations), rel=0.03)
