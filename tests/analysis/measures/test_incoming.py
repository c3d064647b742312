"""Incoming bytes, throughput, and the share inside Join Requests, against numbers worked out by hand."""

import dataclasses
import json

from analysis.runs import values_of
from pipeline.measured import Run, S, tables
from roamcast.analysis.measures.incoming import incoming, throughput


def by_hand() -> Run:
    """Four nodes: 0 publishes, 1 and 2 want something, and 2 gets none of it. The first second is warm-up, the
    last four are the cooldown, in which only data counts."""
    facts = tables(
        subscribe=[(0, 1, 1, True, "true"), (0, 2, 2, True, "false")],
        publish=[
            (S // 2, 0, 10, "e", 100),
            (2 * S, 0, 11, "e", 100),
            (3 * S, 0, 12, "e", 100),
            (4 * S, 0, 13, "e", 100),
        ],
        deliver=[
            (S // 2, 1, 10, 1, S // 2, 1, "join_event"),
            (2 * S, 0, 11, 1, 2 * S, 0, "local"),
            (2 * S + 1, 1, 11, 1, 2 * S, 1, "join_event"),
            (3 * S + 1, 1, 12, 1, 3 * S, 1, "data"),
            (6 * S, 1, 13, 1, 4 * S, 2, "data"),
        ],
        frame=[
            (0, S // 2, S // 2 + 1, 0, None, "join_event", 0, 10, 1, 1000),
            (1, 2 * S, 2 * S + 1, 0, None, "join_event", 0, 11, 1, 120),
            (2, 3 * S, 3 * S + 1, 0, None, "data", 0, 12, 1, 100),
            (3, 7 * S, 7 * S + 1, 0, None, "join_table", 0, None, 1, 30),  # in the cooldown
            (4, 8 * S, 8 * S + 1, 0, None, "data", 0, 13, 1, 10),
        ],
        reception=[
            *((0, node, "received") for node in (1, 2)),
            *((1, node, "received") for node in (1, 2)),
            (2, 1, "received"),
            (2, 2, "collision"),
            *((frame, node, "received") for frame in (3, 4) for node in (1, 2)),
        ],
        transmit=[(0, kind, role, 0, *[1] * 10) for kind, role in (("data", "data"), ("join_table", "control"))],
    )
    cooldown = json.dumps({"cooldown": 4.0})
    return Run("r", facts, simulated=10.0, warmup=1.0, nodes=4, protocol="odmrp", scenario=cooldown)


BY_HAND = {
    "bytes_in": (230 + 130) / 4,
    "messages_in": 5 / 4,
    "bytes_in_receivers": (230 + 130) / 2,
    "bytes_in_receiver_1": 230,
    "bytes_in_receiver_2": 130,
    **dict.fromkeys(f"bytes_in_receiver_{place}" for place in (3, 4, 5)),  # there are only two
    "bytes_in_unserved": 130 / 230,
    "throughput": 3 / 4,  # events 11, 12 and 13, from 2 s to 6 s
    "in_join_requests": 1 / 3,
}


def test_by_hand() -> None:
    assert values_of(by_hand(), incoming, throughput) == BY_HAND
    assert values_of(by_hand(), incoming, throughput, coded=True) == BY_HAND


def test_only_odmrp_has_join_requests() -> None:
    other = dataclasses.replace(by_hand(), protocol="flooding")
    assert values_of(other, throughput) == {"throughput": 3 / 4, "in_join_requests": None}


def test_without_frames_only_what_was_delivered_is_known() -> None:
    bare = {name: rows for name, rows in by_hand().facts.items() if name not in ("frame", "reception")}
    found = values_of(dataclasses.replace(by_hand(), facts=bare), incoming, throughput)
    assert found == dict.fromkeys(BY_HAND) | {"throughput": 3 / 4, "in_join_requests": 1 / 3}
