"""A scenario can ask for the bytes of signatures; without that, nothing of them is in a run."""

from pathlib import Path
from typing import Any

import pytest

from roamcast.facts.sinks import MemorySink
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import check

ADDED = 82
"""Bytes: an array of 7 (1), the signature (2 + 64), the clock (9), no lifetime (1), no contexts (2), one block (1), no
root (2)."""


def transmitted(protocol: str, **workload: Any) -> dict[str, tuple[int, int]]:  # noqa: ANN401  # of a scenario
    """Packets and bits on the air, by kind of message: one publisher and one subscriber side by side."""
    raw: dict[str, Any] = {
        "nodes": 2,
        "duration": 20.0,
        "radio": {"propagation": "links"},
        "links": {"up": [[0, 1]]},
        "mac": {"model": "ideal"},
        "protocol": {"name": protocol},
        "workload": {
            "subscribers": [{"nodes": [1]}],
            "publishers": [{"nodes": [0], "rate": 0.5, "size": 100, "stop": 10.0}],
            **workload,
        },
    }
    facts = MemorySink()
    run(check(raw, "signed", Path()), facts)
    found: dict[str, tuple[int, int]] = {}
    for row in facts.table("transmit").to_pylist():
        packets, bits = found.get(row["kind"], (0, 0))
        found[row["kind"]] = packets + row["packets"], bits + row["bits"]
    return found


@pytest.mark.parametrize(("protocol", "kind"), [("flooding", "data"), ("hint", "hinted"), ("coman", "routed")])
def test_each_event_takes_the_bytes_of_its_signature_more(protocol: str, kind: str) -> None:
    plain, signed = transmitted(protocol), transmitted(protocol, signed=True)
    packets, bits = plain[kind]
    assert packets > 0
    assert signed[kind] == (packets, bits + 8 * ADDED * packets)
    assert {name: sent for name, sent in signed.items() if name != kind} == {
        name: sent for name, sent in plain.items() if name != kind
    }


def test_documents_have_it_in_their_descriptors_and_heads() -> None:
    plain, signed = transmitted("opportunistic"), transmitted("opportunistic", signed=True)
    assert plain["piece"][0] == signed["piece"][0] == 5
    # The head has the signature as events have, the empty payload in place of the payload (2), and one leaf (2 + 16);
    # the lengths of the document in the header are one byte longer.
    assert signed["piece"][1] - plain["piece"][1] == 8 * 5 * (ADDED + 2 + 18 + 1)
    assert signed["announce"][1] > plain["announce"][1]
