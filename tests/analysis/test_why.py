"""Why an event did not get there: for every cause, facts or a scenario built so that it is the cause.

By hand, nodes 0, 1 and 2 stand in a line and each hears only the next. Node 0 publishes event 0:1 at 1 s, which node 2
wants. Unless a test says otherwise node 1 has the event, and the question is what became of its copy.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from facts.rows import complete
from roamcast.analysis.run import Run
from roamcast.analysis.why.causes import MEANING, NEAREST, Cause
from roamcast.analysis.why.missed import missed
from roamcast.analysis.why.record import RunRecord
from roamcast.analysis.why.text import brief, paragraph, rows
from roamcast.analysis.why.wishes import explain
from roamcast.facts.schema import TABLES, tables_of
from roamcast.facts.sinks import MemorySink
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.context.facts import Holding, Match
from roamcast.protocols.context.geocast import LocalMinimum
from roamcast.protocols.opportunistic.facts import CacheChanged
from roamcast.protocols.tree.facts import TreeChanged
from roamcast.sim.core import reference
from roamcast.sim.run import run
from roamcast.sim.scenario.scenario import Scenario, check
from roamcast.units import SECOND

S = SECOND
EVENT = 1
"""0:1."""
ALL = tables_of((TreeChanged, CacheChanged, LocalMinimum, Match, Holding))

LINE: dict[str, Sequence[tuple[Any, ...]]] = {
    "subscribe": [(0, 2, 5, True, "true", None, None, None)],
    "publish": [(1 * S, 0, EVENT, "offer", 256, None, None, None)],
    "event_attribute": [(EVENT, "", "str", None, None, "offer", None)],
    "link": [(0, a, b, 0.0) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))],
    "transmit": [(1, "data", "data", 0, *[0] * 10)],
    "decision": [(1 * S, 0, EVENT, "forwarded", None), (1 * S + 5000, 1, EVENT, "forwarded", None)],
    "frame": [(0, 1 * S, 1 * S + 2000, 0, None, "data", 0, EVENT, 1, 264)],
    "reception": [(0, 1, "received")],
}
RELAYED = (1, 1 * S + 9000, 1 * S + 11000, 1, None, "data", 0, EVENT, 1, 264)
"""Node 1's own transmission."""


def record(**rows: Sequence[tuple[Any, ...]]) -> RunRecord:
    """The line, with those tables instead of its own."""
    every = {**LINE, **rows}
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    for name, some in every.items():
        full = [complete(name, row) if name in TABLES else row for row in some]
        columns = list(zip(*full, strict=True)) if full else [()] * len(ALL[name])
        arrays = [pa.array(column, field.type) for column, field in zip(columns, ALL[name], strict=True)]
        tables[name] = pa.Table.from_arrays(arrays, schema=ALL[name])
    raw: dict[str, Any] = {"nodes": 3, "duration": 10, "radio": {"propagation": "links"}, "links": {}}
    return RunRecord(Run.over(tables, check(raw, "by hand", Path())))


def cause_of(made: RunRecord, node: int = 2) -> Cause | None:
    told = explain(made, EVENT, node)
    assert told.cause is None or MEANING[told.cause] in paragraph(made, told)
    return told.cause


def frames(*more: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [*LINE["frame"], *more]


def receptions(*more: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [*LINE["reception"], *more]


def decisions(*more: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [*LINE["decision"], *more]


# --- By hand ----------------------------------------------------------------------------------------------------------


def test_what_was_delivered_has_no_cause_and_a_way() -> None:
    made = record(
        frame=frames(RELAYED),
        reception=receptions((1, 0, "received"), (1, 2, "received")),
        deliver=[(1 * S + 11000, 2, EVENT, 5, 1 * S, 2, "data")],
    )
    told = explain(made, EVENT, 2)
    assert told.cause is None
    assert "It was delivered at 1.000011 s, 0.011 ms later. Its way: 0 → 1 → 2." in paragraph(made, told)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [("collision", Cause.COLLISION), ("half_duplex", Cause.HALF_DUPLEX), ("random_loss", Cause.RANDOM_LOSS)],
)
def test_a_copy_was_lost(outcome: str, cause: Cause) -> None:
    made = record(frame=frames(RELAYED), reception=receptions((1, 0, "received"), (1, 2, outcome)))
    assert cause_of(made) is cause
    told = explain(made, EVENT, 2)
    assert list(rows(made, told)) == [
        ("1", "1.000002 s", "forwarded", "1.000009 s", "2", outcome.replace("_", " ")),
    ]


def test_a_half_duplex_loss_names_what_the_receiver_sent() -> None:
    own = (2, 1 * S + 8000, 1 * S + 12000, 2, None, "beacon", 0, None, 1, 20)
    made = record(frame=frames(RELAYED, own), reception=receptions((1, 2, "half_duplex"), (2, 1, "received")))
    assert "because that node was sending itself (beacon)" in paragraph(made, explain(made, EVENT, 2))


@pytest.mark.parametrize(
    ("decision", "cause"),
    [
        ("suppressed", Cause.SUPPRESSED),
        ("not chosen", Cause.NOT_CHOSEN),
        ("no route", Cause.NO_ROUTE),
        ("not wanted", Cause.NOT_WANTED),
        ("cache full", Cause.CACHE_FULL),
        ("expired", Cause.EXPIRED),
        ("given up", Cause.GIVEN_UP),
    ],
)
def test_a_node_decided_against_it(decision: str, cause: Cause) -> None:
    made = record(decision=decisions((1 * S + 6000, 1, EVENT, decision, None)))
    assert cause_of(made) is cause
    assert f"Node 1 decided at 1.000006 s: {decision}." in paragraph(made, explain(made, EVENT, 2))


def test_a_decision_about_another_neighbour_is_not_asked() -> None:
    made = record(decision=decisions((1 * S + 6000, 1, EVENT, "given up", 0)))
    assert cause_of(made) is Cause.RUN_ENDED


def test_a_full_queue() -> None:
    counters = [0] * 10
    counters[8] = 1  # queue_full
    assert cause_of(record(transmit=[(1, "data", "data", 0, *counters)])) is Cause.QUEUE_FULL


def test_sent_when_the_next_was_gone() -> None:
    links = [*LINE["link"], (1 * S + 8000, 1, 2, None), (1 * S + 8000, 2, 1, None)]
    made = record(link=links, frame=frames(RELAYED), reception=receptions((1, 0, "received")))
    assert cause_of(made) is Cause.OUT_OF_RANGE


def test_a_holder_that_did_nothing() -> None:
    assert cause_of(record(decision=LINE["decision"][:1])) is Cause.SILENT


def test_without_a_record_that_is_said() -> None:
    made = record(frame=[], reception=[], decision=[], deliver=[(1 * S + 2000, 1, EVENT, 6, 1 * S, 1, "data")])
    assert cause_of(made) is Cause.NOT_RECORDED
    said = paragraph(made, explain(made, EVENT, 2))
    assert said.endswith("roamcast run … --set record.frames=true --set record.decisions=true.")


def test_it_arrived_and_was_not_handed_over() -> None:
    made = record(
        frame=frames(RELAYED),
        reception=receptions((1, 2, "received")),
        match=[(1 * S + 12000, 2, EVENT, 2, 5, "subscription domain", False)],
    )
    assert cause_of(made) is Cause.NOT_HANDED_OVER
    assert "The subscription domain did not hold." in paragraph(made, explain(made, EVENT, 2))


def test_a_tree_that_does_not_join_them() -> None:
    tree = [
        (0, 0, "start", 0, None, [1], 0),
        (0, 1, "joined", 0, 0, [], 0),
        (0, 2, "broken", 0, None, [], None),
    ]
    made = record(tree=tree)
    assert cause_of(made) is Cause.TREE_BROKEN
    assert "node 2 had no parent (last change: broken)" in paragraph(made, explain(made, EVENT, 2))
    whole = [*tree[:2], (0, 1, "child", 0, 0, [2], 0), (0, 2, "joined", 0, 1, [], 0)]
    only_back = [(1 * S, 0, EVENT, "forwarded", 1), (1 * S + 5000, 1, EVENT, "not wanted", None)]
    assert cause_of(record(tree=whole, decision=only_back)) is Cause.NOT_WANTED
    elsewhere = [(1 * S, 0, EVENT, "forwarded", 1), (1 * S + 5000, 1, EVENT, "forwarded", 0)]
    assert cause_of(record(tree=whole, decision=elsewhere)) is Cause.NO_ROUTE


FERRY = [
    (0, 0, 1, 0.0),
    (0, 1, 0, 0.0),
    (4 * S, 0, 1, None),
    (4 * S, 1, 0, None),
    (5 * S, 1, 2, 0.0),
    (5 * S, 2, 1, 0.0),
]
"""Node 1 is with node 0 for 4 s, and with node 2 from 5 s on."""
KEPT = (1 * S + 2000, 1, EVENT, True, "received", 1, 256)


@pytest.mark.parametrize(
    ("more", "decided", "cause"),
    [
        ([(3 * S, 1, EVENT, False, "full", 0, 0)], "cache full", Cause.CACHE_FULL),
        ([(3 * S, 1, EVENT, False, "expired", 0, 0)], "expired", Cause.EXPIRED),
        ([], "forwarded", Cause.RUN_ENDED),
    ],
)
def test_who_carries_it_meets_the_subscriber(more: list[tuple[Any, ...]], decided: str, cause: Cause) -> None:
    decision = [*LINE["decision"][:1], (3 * S, 1, EVENT, decided, None)]
    assert cause_of(record(link=FERRY, cache=[KEPT, *more], decision=decision)) is cause


EARLY = (1, 2 * S, 2 * S + 2000, 1, None, "data", 0, EVENT, 1, 264)
LATE = (1, 6 * S, 6 * S + 2000, 1, None, "data", 0, EVENT, 1, 264)


@pytest.mark.parametrize(
    ("frame", "reception"),
    [(EARLY, (1, 0, "received")), (LATE, (1, 2, "received")), (LATE, (1, 2, "collision"))],
    ids=["sent nothing then", "some pieces", "lost"],
)
def test_what_is_still_carried_has_ended_with_the_run(frame: tuple[Any, ...], reception: tuple[Any, ...]) -> None:
    """Whatever became of the first attempt: there would have been others."""
    one = {"link": FERRY, "frame": frames(frame), "reception": receptions(reception)}
    made = record(**one, cache=[KEPT])
    assert cause_of(made) is Cause.RUN_ENDED
    ended = "Node 1 had it since 1.000002 s, and node 2 had not got it when the run ended."
    assert ended in paragraph(made, explain(made, EVENT, 2))
    # Not if its life was over before, or if the node no longer had it.
    brief_life = [(1 * S, 0, EVENT, "offer", 256, 7 * S, None, None)]
    assert cause_of(record(**one, cache=[KEPT], publish=brief_life)) is not Cause.RUN_ENDED
    dropped = (8 * S, 1, EVENT, False, "full", 0, 0)
    assert cause_of(record(**one, cache=[KEPT, dropped])) is not Cause.RUN_ENDED


def test_an_event_that_nobody_carries_needs_a_path_at_publication() -> None:
    """In a run in which other events are carried."""
    other = (1 * S, 1, EVENT + 1, True, "received", 1, 256)
    assert cause_of(record(link=FERRY, cache=[other])) is Cause.NO_PATH_THEN


def test_only_some_pieces_came() -> None:
    dropped = (8 * S, 1, EVENT, False, "full", 0, 0)
    made = record(link=FERRY, cache=[KEPT, dropped], frame=frames(LATE), reception=receptions((1, 2, "received")))
    assert cause_of(made) is Cause.PARTIAL


def test_a_carrier_that_got_it_too_late() -> None:
    """Node 1 met node 2 before it had the event: what was missing is the way from node 0 to it."""
    links = [(0, 0, 1, 0.0), (0, 1, 2, 0.0), (4 * S, 1, 2, None)]
    told = explain(
        record(
            link=links,
            cache=[(5 * S, 1, EVENT, True, "received", 1, 256), (1, 0, EVENT, True, "", 1, 1)],
            frame=[],
            reception=[],
            decision=LINE["decision"][:1],
        ),
        EVENT,
        2,
    )
    assert [one.gap for one in told.attempts] == [(0, 1)]


def test_a_broker_that_had_not_decided_yet() -> None:
    """Decisions took up to 2 s in this run; node 1 had the event for 1.9 s, or for 9 s."""
    slow = [(1 * S, 0, EVENT, "forwarded", None), (3 * S, 0, EVENT, "given up", None)]
    assert cause_of(record(decision=slow)) is Cause.SILENT
    late = [(0, 8 * S + S // 10 - 2000, 8 * S + S // 10, 0, None, "data", 0, EVENT, 1, 264)]
    assert cause_of(record(decision=slow, frame=late)) is Cause.RUN_ENDED


def test_the_run_ends_between_two_fragments() -> None:
    first = (1, 10 * S - 5000, 10 * S - 3000, 1, None, "data", 0, EVENT, 1, 1472)
    made = record(frame=frames(first), reception=receptions((1, 2, "received")))
    assert cause_of(made) is Cause.RUN_ENDED
    earlier = (1, 5 * S - 5000, 5 * S - 3000, 1, None, "data", 0, EVENT, 1, 1472)
    assert cause_of(record(frame=frames(earlier), reception=receptions((1, 2, "received")))) is not Cause.RUN_ENDED


def test_a_local_minimum() -> None:
    made = record(local_minimum=[(2 * S, 1, "event", EVENT, 80.0)])
    assert cause_of(made) is Cause.LOCAL_MINIMUM


@pytest.mark.parametrize(
    ("subscribe", "said"),
    [
        ([(0, 1, 5, True, "true", None, None, None)], "Node 2 never had a subscription that matches it."),
        ([(2 * S, 2, 5, True, "true", None, None, None)], "did not want it yet: its subscription began at 2.000000 s"),
        (
            [(0, 2, 5, True, "true", None, None, None), (S // 2, 2, 5, False, None, None, None, None)],
            "no longer wanted it: its subscription had ended at 0.500000 s",
        ),
    ],
)
def test_not_subscribed(subscribe: list[tuple[Any, ...]], said: str) -> None:
    made = record(subscribe=subscribe)
    assert cause_of(made) is Cause.NOT_SUBSCRIBED
    assert said in paragraph(made, explain(made, EVENT, 2))


def test_of_several_gaps_the_nearest_to_success_counts() -> None:
    """Nodes 0 and 1 are both beside node 2; one copy was lost, the other never sent."""
    links = [(0, a, b, 0.0) for a in range(3) for b in range(3) if a != b]
    lost = receptions((0, 2, "collision"))
    made = record(link=links, reception=lost, decision=decisions((1 * S + 6000, 1, EVENT, "suppressed", None)))
    told = explain(made, EVENT, 2)
    assert [(one.gap, one.cause) for one in told.attempts] == [((0, 2), Cause.COLLISION), ((1, 2), Cause.SUPPRESSED)]
    assert told.cause is Cause.COLLISION


def test_a_message_of_fragments_is_there_when_all_of_them_are() -> None:
    parts = [
        (0, 1 * S, 1 * S + 2000, 0, None, "data", 0, EVENT, 1, 1472),
        (1, 1 * S + 3000, 1 * S + 5000, 0, None, "data", 0, EVENT, 1, 300),
    ]
    half = record(frame=parts, reception=[(0, 1, "received"), (1, 1, "collision")], decision=LINE["decision"][:1])
    assert list(explain(half, EVENT, 1).copies) == [0]
    both = record(frame=parts, reception=[(0, 1, "received"), (1, 1, "received")], decision=LINE["decision"][:1])
    assert list(explain(both, EVENT, 1).copies) == [0, 1]


def test_every_cause_has_a_meaning_and_a_place() -> None:
    assert set(MEANING) == set(Cause) == set(NEAREST)


def test_every_cause_has_a_scenario() -> None:
    simulated = Path(__file__).read_text().partition("# --- Simulated ---")[2]
    assert [cause.name for cause in Cause if f"Cause.{cause.name}" not in simulated] == []


# --- Simulated --------------------------------------------------------------------------------------------------------

LINKED: dict[str, Any] = {
    "nodes": 3,
    "duration": 5,
    "radio": {"propagation": "links"},
    "links": {"up": [[0, 1], [1, 2]]},
    "protocol": {"name": "flooding", "parameters": {"jitter": 0}},
    "workload": {"subscribers": [{"nodes": [2]}], "publishers": [{"nodes": [0], "rate": 1, "stop": 1}]},
    "record": {"frames": True, "decisions": True},
}


def simulated(**changes: Any) -> RunRecord:  # noqa: ANN401  # parts of a scenario
    scenario: Scenario = check({**LINKED, **changes}, "a test", Path())
    sink = MemorySink()
    run(scenario, sink, make_core=reference.Core)
    return RunRecord(Run.over(sink.tables(), scenario))


def causes(made: RunRecord) -> set[Cause]:
    found = missed(made)
    assert found.explanations, "nothing was missed"
    for one in found.explanations:
        assert brief(made, one)
    return set(found.counts())


def test_nothing_is_missed_on_a_line() -> None:
    found = missed(simulated())
    assert (found.expected, found.explanations) == (1, [])


def test_no_path_ever() -> None:
    assert causes(simulated(links={"up": [[0, 1]]})) == {Cause.NO_PATH}


def test_no_path_at_publication_but_later() -> None:
    made = simulated(links={"up": [[0, 1]], "change": [{"at": 3, "up": [[1, 2]]}]})
    assert causes(made) == {Cause.NO_PATH_THEN}
    (told,) = missed(made).explanations
    later = (3 * S - told.published.time) / S
    assert f"one over time did, {later:.3f} s after publication" in brief(made, told)


def test_away_at_publication() -> None:
    assert causes(simulated(away=[{"nodes": [2], "times": [[0.001, 2]]}])) == {Cause.AWAY}


def test_a_link_that_loses() -> None:
    lossy = {"up": [[0, 1], [1, 2]], "loss": 0.9}
    workload = {"subscribers": [{"nodes": [2]}], "publishers": [{"nodes": [0], "rate": 10}]}
    assert causes(simulated(links=lossy, workload=workload)) == {Cause.RANDOM_LOSS}


def test_the_next_node_is_gone_when_it_is_sent() -> None:
    made = simulated(
        links={"up": [[0, 1], [1, 2]], "change": [{"at": 1, "down": [[1, 2]]}]},
        protocol={"name": "flooding", "parameters": {"jitter": 60}},
        duration=60,
    )
    assert causes(made) == {Cause.OUT_OF_RANGE}


def test_the_run_ends_before_it_is_sent() -> None:
    made = simulated(protocol={"name": "flooding", "parameters": {"jitter": 60}}, duration=2)
    assert causes(made) == {Cause.RUN_ENDED}


def test_a_queue_that_is_full() -> None:
    workload = {"subscribers": [{"nodes": [1]}], "publishers": [{"nodes": [0], "rate": 2000, "size": 1400}]}
    made = simulated(nodes=2, links={"up": [[0, 1]]}, mac={"queue": 1}, workload=workload, duration=0.2)
    assert causes(made) >= {Cause.QUEUE_FULL}


def test_a_draw_against_it() -> None:
    made = simulated(protocol={"name": "gossip", "parameters": {"p": 0.01, "jitter": 0}})
    assert causes(made) == {Cause.NOT_CHOSEN}


def test_a_link_that_breaks_between_two_fragments() -> None:
    """Node 1 passes five fragments on between 1.381 and 1.408 s; the link to node 2 breaks after the second."""
    workload = published_from(1, rate=1, size=6000)
    links = {"up": [[0, 1], [1, 2]], "change": [{"at": 1.395, "down": [[1, 2]]}]}
    made = simulated(workload=workload, links=links)
    assert causes(made) == {Cause.PARTIAL}
    (told,) = missed(made).explanations
    assert "Node 1 sent it from 1.380704 s on; node 2 got a part of it." in brief(made, told)


def test_a_unicast_that_is_given_up() -> None:
    """Without the frames, the decision alone tells; with them, that they were sent to a node out of range."""
    by_unicast = {"name": "coman", "parameters": {"routing": {"cast": "unicast"}}}
    # Published at 20.176 s; at 20.178 s, when node 1 would pass it on, node 2 is gone.
    links = {"up": [[0, 1], [1, 2]], "change": [{"at": 20.177, "down": [[1, 2]]}]}
    workload = published_from(20, stop=20.5)
    for frames, cause in ((False, Cause.GIVEN_UP), (True, Cause.OUT_OF_RANGE)):
        kept = {"frames": frames, "decisions": True}
        made = simulated(protocol=by_unicast, links=links, workload=workload, duration=25, record=kept)
        assert causes(made) == {cause}


def test_an_event_that_comes_when_its_subscription_is_over() -> None:
    """It was in force at publication, 1.35 s, and ended before the event came."""
    workload = published_from(1, rate=1)
    workload["subscribers"] = [{"nodes": [2], "stop": 3}]
    made = simulated(workload=workload, protocol={"name": "flooding", "parameters": {"jitter": 60}}, duration=100)
    assert causes(made) == {Cause.NOT_HANDED_OVER}
    (told,) = missed(made).explanations
    assert "Its subscription had ended at 3.000000 s." in brief(made, told)


HIDDEN: dict[str, Any] = {
    "nodes": 4,
    "area": {"width": 400, "height": 400},
    "movement": {"model": "static", "positions": [[100, 200], [180, 260], [180, 140], [260, 200]]},
    "radio": {"propagation": "unit-disk", "range": 101, "collisions": "overlap"},
    "links": None,
    "workload": {"subscribers": [{"nodes": [3]}], "publishers": [{"nodes": [0], "rate": 1, "stop": 1}]},
}
"""Node 0 reaches 1 and 2, which do not hear each other and pass it on at once; 3 hears both."""


def test_hidden_nodes_collide() -> None:
    made = simulated(**HIDDEN)
    (told,) = missed(made).explanations
    assert told.cause is Cause.COLLISION
    assert {one.gap for one in told.attempts} == {(1, 3), (2, 3)}
    assert "in a collision with a data frame of node 2 at 100 m" in brief(made, told)


def test_a_tree_of_its_own_cuts_off_who_came_too_late() -> None:
    """The subscriber's link comes in the moment before publication: the radio would reach it, the tree does not yet."""
    workload = {"subscribers": [{"nodes": [2]}], "publishers": [{"nodes": [0], "rate": 10, "start": 20, "stop": 20.3}]}
    links = {"up": [[0, 1]], "change": [{"at": 20, "up": [[1, 2]]}]}
    made = simulated(protocol={"name": "coman"}, links=links, workload=workload, duration=30)
    assert Cause.TREE_BROKEN in causes(made)


def test_two_that_send_at_once_do_not_hear_each_other() -> None:
    """Both in range of each other and always with something to send: now and then their waits end at one time."""
    made = simulated(
        nodes=2,
        area={"width": 400, "height": 400},
        movement={"model": "static", "positions": [[0, 0], [50, 0]]},
        radio={"propagation": "unit-disk", "range": 100},
        links=None,
        workload={
            "subscribers": [{"nodes": [0, 1]}],
            "publishers": [{"nodes": [0, 1], "rate": 100, "size": 1400}],
            "disjoint": False,
        },
        duration=1,
    )
    assert Cause.HALF_DUPLEX in causes(made)


def test_who_did_not_ask_for_it() -> None:
    made = simulated()
    (event,) = made.published
    assert explain(made, event, 1).cause is Cause.NOT_SUBSCRIBED


def test_a_run_without_the_record() -> None:
    lossy = {"up": [[0, 1], [1, 2]], "loss": 0.9}
    assert causes(simulated(links=lossy, record={"frames": False, "decisions": False})) == {Cause.NOT_RECORDED}


def published_from(start: float, **changes: Any) -> dict[str, Any]:  # noqa: ANN401  # fields of a publisher
    publisher = {"nodes": [0], "rate": 2, "start": start, "stop": start + 1, **changes}
    return {"subscribers": [{"nodes": [2]}], "publishers": [publisher]}


def test_before_the_first_beacon_nobody_is_known() -> None:
    made = simulated(protocol={"name": "hint"}, workload=published_from(0.1, stop=0.5))
    assert causes(made) == {Cause.NO_ROUTE}


def test_two_hints_and_the_first_keeps_the_second_quiet() -> None:
    """Node 1 knows the way to 3 and node 2 that to 4; both hear the event at once, and each other."""
    made = simulated(
        nodes=5,
        protocol={"name": "hint", "parameters": {"interval": 1}},
        workload={
            "subscribers": [{"nodes": [3, 4]}],
            "publishers": [{"nodes": [0], "rate": 5, "start": 5, "stop": 8}],
        },
        links={"up": [[0, 1], [0, 2], [1, 2], [1, 3], [2, 4]]},
        duration=10,
    )
    assert causes(made) == {Cause.SUPPRESSED}


def test_a_subscription_that_is_not_known_on_the_tree_yet() -> None:
    workload = {
        "subscribers": [{"nodes": [2], "start": 25}],
        "publishers": [{"nodes": [0], "rate": 1000, "start": 24.99, "stop": 25.03}],
    }
    assert causes(simulated(protocol={"name": "coman"}, workload=workload, duration=26)) == {Cause.NOT_WANTED}


MEETS: dict[str, Any] = {"up": [[0, 1]], "change": [{"at": 21, "up": [[1, 2]]}]}
CARRIED: dict[str, Any] = {"name": "opportunistic", "parameters": {"interval": 5}}


def test_a_lifetime_that_ends_before_the_next_announcement() -> None:
    assert causes(simulated(protocol=CARRIED, links=MEETS, workload=published_from(1, lifetime=21), duration=40)) == {
        Cause.EXPIRED
    }


def test_what_is_carried_to_the_end_of_the_run() -> None:
    """A meeting too short for an announcement: it is on offer to the end."""
    short = {**MEETS, "change": [*MEETS["change"], {"at": 22, "down": [[1, 2]]}]}
    made = simulated(protocol=CARRIED, links=short, workload=published_from(1), duration=40)
    assert causes(made) == {Cause.RUN_ENDED}


def test_a_protocol_that_gives_no_reason(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text("""
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker

class Quiet(FloodingBroker):
    def receive(self, now, sender, message):
        pass

ENTRY = Entry("quiet", "passes nothing on", Flooding, Quiet, (Data,))
""")
    scenario = check({**LINKED, "protocol": {"name": "quiet.py:ENTRY"}}, "a test", tmp_path)
    sink = MemorySink()
    run(scenario, sink, folder=tmp_path, make_core=reference.Core)
    assert causes(RunRecord(Run.over(sink.tables(), scenario))) == {Cause.SILENT}


def test_a_cache_of_one() -> None:
    small = {"name": "opportunistic", "parameters": {"interval": 5, "capacity": 1}}
    moved_on = {"up": [[0, 1]], "change": [{"at": 30, "up": [[1, 2]], "down": [[0, 1]]}]}
    assert Cause.CACHE_FULL in causes(
        simulated(protocol=small, links=moved_on, workload=published_from(1, rate=10), duration=60)
    )


def test_a_way_that_leads_away_from_the_region_first() -> None:
    """The only way from node 0 to the subscriber begins with node 1, which is farther away."""
    made = simulated(
        nodes=5,
        area={"width": 400, "height": 400},
        movement={"model": "static", "positions": [[50, 50], [50, 140], [140, 200], [230, 140], [250, 50]]},
        radio={"propagation": "unit-disk", "range": 110},
        links=None,
        protocol={"name": "context", "parameters": {"reach": 110}},
        workload={
            "subscribers": [{"nodes": [4]}],
            "publishers": [
                {"nodes": [0], "rate": 1, "start": 6, "stop": 8, "relevance": "within(circle(250, 50, 30))"}
            ],
        },
        duration=12,
    )
    assert causes(made) == {Cause.LOCAL_MINIMUM}


@pytest.mark.parametrize("protocol", CATALOGUE)
@pytest.mark.parametrize("cooldown", [0.0, 20.0])
def test_every_decision_of_our_protocols_is_recorded(protocol: str, cooldown: float) -> None:
    """Whether it was taken at once or in a timer, and whether or not the run ends meanwhile."""
    scenario = check(
        {
            "nodes": 20,
            "duration": 60,
            "cooldown": cooldown,
            "area": {"width": 500, "height": 500},
            "movement": {"model": "random-waypoint", "speed": [1.0, 5.0]},
            "radio": {"range": 110},
            "protocol": {"name": protocol},
            "workload": {"subscribers": [{"count": 5}], "publishers": [{"count": 2, "rate": 2.0}]},
            "record": {"frames": True, "decisions": True},
        },
        "a test",
        Path(),
    )
    sink = MemorySink()
    run(scenario, sink)
    found = causes(RunRecord(Run.over(sink.tables(), scenario)))
    assert found
    assert not found & {Cause.SILENT, Cause.NOT_RECORDED}
