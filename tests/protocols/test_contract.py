"""What every broker of the catalogue must do, whatever its protocol: the laws of `protocols/api.py`, and no surprises.

Protocols that are added to the catalogue are covered by themselves. Run as a program, it prints what every protocol
says in one busy network, for the comparison of two processes that hash differently.
"""

import functools
import gc
import itertools
import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from msgspec import inspect

from content.strategies import filters
from examples import examples
from roamcast.content.event import INT_MAX, INT_MIN, Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.errors import ContentError
from roamcast.protocols.api import Broker, Node, Time
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.protocols.codec import VERSION, FrameError
from roamcast.protocols.entry import Entry
from roamcast.protocols.flooding import Data, Flooding, FloodingBroker
from roamcast.protocols.messages import Message, limits_of
from roamcast.protocols.testing import Mesh, RecordingPort
from roamcast.units import SECOND

CALLS = ("start", "publish", "receive", "subscribe", "unsubscribe", "unreachable", "timer")
SETTLED = 60 * SECOND
"""Long enough for neighbours that stay to have found each other, and for an event to have got through."""

every_entry = pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)

CHEAP = Filter.where("price", "<", 20)
JAZZ = Filter.where("category", "=", "jazz")
BLUES = Filter.where("category", "=", "blues")


def cd(number: int, price: int, category: str = "jazz", publisher: Node = 0) -> Publication:
    return Publication(Event.of("CD", {"price": price, "category": category}, id=event_id(publisher, number)))


class GuardedMesh(Mesh):
    """A mesh in which a broker that is called while it is still at work fails the test."""

    def restart(self, node: Node) -> None:
        place(self.entry, self.ports[node], node)
        super().restart(node)
        guard(self.brokers[node])


def guard(broker: Broker[Any]) -> None:
    at_work: list[str] = []

    def guarded(name: str, call: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(call)
        def checked(*args: object) -> None:
            assert not at_work, f"{name} was called from within {at_work[0]}"
            at_work.append(name)
            try:
                call(*args)
            finally:
                at_work.clear()

        return checked

    for name in CALLS:
        setattr(broker, name, guarded(name, getattr(broker, name)))


def place(entry: Entry, port: RecordingPort, node: Node) -> None:
    """Tells a node what its protocol needs to know of it."""
    if "positions" in entry.needs:
        port.position = (100.0 * node, 50.0)
    if "attributes" in entry.needs:
        port.properties = {"level": node}


def pair(entry: Entry, *wanted: Subscription) -> GuardedMesh:
    """Nodes 0 and 1 in range of each other for a while, and what node 1 wants."""
    mesh = GuardedMesh(entry, (0, 1), [(0, 1)])
    for subscription in wanted:
        mesh[1].subscribe(mesh.now, subscription)
    mesh.run(SETTLED)
    return mesh


def after(mesh: Mesh, *publications: Publication, publisher: Node = 0, node: Node = 1) -> list[tuple[int, Any]]:
    """What the publications bring to a node: the serials of the events, and the subscriptions they are for."""
    for publication in publications:
        mesh[publisher].publish(mesh.now, publication)
    mesh.run(mesh.now + SETTLED)
    return [(delivery.event.id & 0xFFFFFFFF, delivery.subscriptions) for delivery in mesh.ports[node].delivered]


@every_entry
def test_a_neighbour_gets_what_it_wants_and_nothing_else(entry: Entry) -> None:
    assert after(pair(entry, Subscription(5, CHEAP)), cd(1, 25), cd(2, 18), cd(3, 20), cd(4, 19)) == [
        (2, (5,)),
        (4, (5,)),
    ]


@every_entry
def test_a_publisher_gets_its_own_events(entry: Entry) -> None:
    mesh = pair(entry)
    mesh[0].subscribe(mesh.now, Subscription(1, CHEAP))
    after(mesh, cd(1, 25), cd(2, 18))
    assert [(got.event, got.subscriptions, got.hops, got.via) for got in mesh.ports[0].delivered] == [
        (cd(2, 18).event, (1,), 0, "local")
    ]


@every_entry
def test_an_event_for_several_subscriptions_is_delivered_once(entry: Entry) -> None:
    mesh = pair(entry, Subscription(3, CHEAP), Subscription(1, BLUES), Subscription(2, JAZZ))
    assert after(mesh, cd(1, 18, "jazz"), cd(2, 25, "blues"), cd(3, 25, "folk")) == [(1, (3, 2)), (2, (1,))]


@every_entry
def test_a_subscription_with_a_known_id_replaces_the_former(entry: Entry) -> None:
    mesh = pair(entry, Subscription(1, JAZZ), Subscription(1, BLUES))
    assert after(mesh, cd(1, 18, "jazz"), cd(2, 18, "blues")) == [(2, (1,))]


@every_entry
def test_what_is_unsubscribed_is_delivered_no_more(entry: Entry) -> None:
    mesh = pair(entry, Subscription(1, CHEAP), Subscription(2, JAZZ))
    assert after(mesh, cd(1, 18)) == [(1, (1, 2))]
    mesh[1].unsubscribe(mesh.now, 1)
    mesh[1].unsubscribe(mesh.now, 99)
    assert after(mesh, cd(2, 18, "blues"), cd(3, 25, "jazz")) == [(1, (1, 2)), (3, (2,))]


@every_entry
def test_a_node_that_begins_again_delivers_nothing_again_but_all_that_is_new(entry: Entry) -> None:
    mesh = pair(entry, Subscription(1, CHEAP))
    assert after(mesh, cd(1, 18), cd(2, 17)) == [(1, (1,)), (2, (1,))]
    mesh.restart(1)
    mesh[1].subscribe(mesh.now, Subscription(1, CHEAP))
    for _, sender, message in list(mesh.log):
        mesh[1].receive(mesh.now, sender, message)
    assert after(mesh, cd(3, 16)) == [(1, (1,)), (2, (1,)), (3, (1,))]


def busy_network(entry: Entry, make_mesh: type[GuardedMesh] = GuardedMesh) -> Mesh:
    """Six nodes in a ring with two chords; three want something; links break, come, and a node begins again."""
    ring = [(node, (node + 1) % 6) for node in range(6)]
    mesh = make_mesh(entry, range(6), [*ring, (0, 3), (1, 4)], seed=7)

    def subscribe() -> None:
        for node, wanted in ((1, CHEAP), (3, JAZZ), (5, EVERYTHING)):
            mesh[node].subscribe(mesh.now, Subscription(node, wanted))

    subscribe()
    mesh.run(SETTLED)
    for number in range(1, 21):
        publisher = number % 4
        mesh[publisher].publish(mesh.now, cd(number, 10 + number, "jazz" if number % 3 else "blues", publisher))
        if number % 5 == 0:
            mesh.cut(*ring[number // 5])
            mesh.link(number // 5, 5)
        if number == 12:
            mesh.restart(3)
            subscribe()
        mesh.run(mesh.now + SECOND // 3)
    mesh.run(mesh.now + SETTLED)
    return mesh


@every_entry
def test_nothing_unwanted_and_nothing_twice_in_a_busy_network(entry: Entry) -> None:
    mesh = busy_network(entry)
    wanted = {1: CHEAP, 3: JAZZ, 5: EVERYTHING}
    assert [node for node, port in mesh.ports.items() if port.delivered] == list(wanted)
    for node, filter in wanted.items():
        delivered = mesh.ports[node].delivered
        assert [got for got in delivered if not filter.matches(got.event) or got.subscriptions != (node,)] == []
        assert [id for id, times in Counter(got.event.id for got in delivered).items() if times > 1] == []


@every_entry
def test_what_is_sent_is_listed_and_survives_its_encoding(entry: Entry) -> None:
    log = busy_network(entry).log
    assert log
    for _, _, message in log:
        check_sendable(entry, message)


def check_sendable(entry: Entry, message: Message) -> None:
    assert type(message) in entry.messages
    codec = entry.codec()
    assert codec.decode(codec.encode(message)) == message


@every_entry
def test_a_timer_that_means_nothing_is_ignored(entry: Entry) -> None:
    mesh = busy_network(entry)
    for port in mesh.ports.values():
        port.clear()
    for node in mesh.brokers:
        for key in ("", "nonsense", 0, -1, None, (), ("nonsense", 1), frozenset({2})):
            mesh[node].timer(mesh.now, key)
    for port in mesh.ports.values():
        assert (port.sent, port.timers, port.delivered) == ({}, [], [])


# --- What a host may withhold -----------------------------------------------------------------------------------------


class WithholdingMesh(GuardedMesh):
    """A mesh in which a broker that does more with what could have been withheld than to count it fails the test."""

    counted = 0

    def restart(self, node: Node) -> None:
        super().restart(node)
        port, broker = self.ports[node], self.brokers[node]
        receive = broker.receive

        def checked(now: Time, sender: Node, message: Message) -> None:
            subject = message.subject(sender)
            if type(message) not in port.withheld or subject is None:
                receive(now, sender, message)
                return
            note, once = port.withheld[type(message)]
            if (type(message), subject) not in port.known:
                if once:
                    port.know(type(message), subject)
                receive(now, sender, message)
                return
            before, tables = everything_said(port), broker.tables()
            receive(now, sender, message)
            if note is not None:
                before[-1][note] += 1
            assert (everything_said(port), broker.tables()) == (before, tables)
            self.counted += 1

        setattr(broker, "receive", checked)  # noqa: B010  # a method, for mypy


def everything_said(port: RecordingPort) -> tuple[Any, ...]:
    queued = list(port.bulks), list(port.timers), dict(port.sent)
    told = list(port.delivered), list(port.facts), dict(port.kept), set(port.known)
    return *queued, *told, Counter(port.work), Counter(port.notes)


def test_what_could_have_been_withheld_is_only_counted() -> None:
    counted = {}
    for name, entry in CATALOGUE.items():
        mesh = busy_network(entry, WithholdingMesh)
        assert isinstance(mesh, WithholdingMesh)
        if any(port.withheld for port in mesh.ports.values()):
            counted[name] = mesh.counted
    assert set(counted) == {"flooding", "gossip", "counter", "odmrp", "opportunistic"}
    assert min(counted.values()) > 20, counted


# --- The same calls, the same answers --------------------------------------------------------------------------------


def transcript(entry: Entry) -> str:
    """All that the brokers of a busy network said, in order."""
    mesh = busy_network(entry)
    said = [
        (node, list(port.sent.items()), port.timers, port.delivered, list(port.notes.items()), list(port.kept.items()))
        for node, port in mesh.ports.items()
    ]
    return repr((mesh.log, said))


@pytest.fixture(scope="module")
def transcripts() -> list[dict[str, str]]:
    """Of two processes that order sets of strings differently."""
    printed = [
        subprocess.run(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    return [json.loads(text) for text in printed]


@every_entry
def test_the_same_calls_get_the_same_answers_however_strings_hash(
    entry: Entry, transcripts: list[dict[str, str]]
) -> None:
    one, other = transcripts
    assert one[entry.name] == other[entry.name] == transcript(entry)


# --- Three times the expected load ------------------------------------------------------------------------------------


def footprint(broker: Broker[Any]) -> int:
    """How many elements all containers hold that a broker can reach, what is not its own left out."""
    seen = set(map(id, (broker.port, broker.rng, broker.params)))
    reached: list[object] = [broker]
    elements = 0
    while reached:
        thing = reached.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType | BuiltinFunctionType):
            continue
        seen.add(id(thing))
        if isinstance(thing, Collection) and not isinstance(thing, str | bytes):
            elements += len(thing)
        reached.extend(gc.get_referents(thing))
    return elements


def renumbered(data: Any, rng: random.Random) -> Any:  # noqa: ANN401  # what MessagePack can hold
    """The same data with other integers, small and large: some fields have bounds."""
    if type(data) is int:
        return rng.choice((data, rng.getrandbits(8), rng.getrandbits(31), rng.getrandbits(62)))
    if isinstance(data, list):
        return [renumbered(item, rng) for item in data]
    return {key: renumbered(item, rng) for key, item in data.items()} if isinstance(data, dict) else data


def strangers(entry: Entry, rng: random.Random) -> Iterator[Message]:
    """What the protocol's brokers say to each other, with other numbers in it."""
    codec = entry.codec()
    heard = [msgspec.msgpack.decode(codec.encode(message)[1:]) for _, _, message in busy_network(entry).log]
    refused = 0
    while refused < 1_000_000:
        frame = bytes((VERSION,)) + msgspec.msgpack.encode(renumbered(rng.choice(heard), rng))
        try:
            yield codec.decode(frame)
        except FrameError:
            refused += 1


LOAD = examples(60_000, share=6)
TREE_LOAD = examples(60_000, share=2)
"""Messages that fill every table; those of routing on a tree, some of which have fixed bounds, take more of them."""
SMALL = {"window": 256, "table": 64, "neighbours": 64, "capacity": 16, "delivered": 64}
"""Parameters that set the size of a table, small enough for that."""


def growth(entry: Entry) -> tuple[int, int]:
    """The footprint and what is kept after the load that fills every table, and after three times that."""
    fields = entry.parameters.__struct_fields__
    small: dict[str, Any] = {name: size for name, size in SMALL.items() if name in fields}
    load = LOAD
    if "routing" in fields:
        small["routing"] = {"window": SMALL["window"]}
        load = TREE_LOAD
    port, rng = RecordingPort(), random.Random(3)
    place(entry, port, 0)
    broker = entry.broker(0, msgspec.convert(small, entry.parameters), port, random.Random(4))
    broker.start(0, {})
    broker.subscribe(0, Subscription(1, EVERYTHING))
    sizes = []
    for number, message in enumerate(itertools.islice(strangers(entry, rng), 3 * load)):
        broker.receive(port.now, rng.getrandbits(31), message)
        port.clear()
        if number + 1 in (load, 3 * load):
            sizes.append(footprint(broker) + len(port.kept))
    once, three_times = sizes
    return once, three_times


@pytest.mark.hypothesis  # so that `make fuzz` tries it with the whole load
@every_entry
def test_tables_that_others_fill_are_bounded(entry: Entry) -> None:
    once, three_times = growth(entry)
    assert three_times <= 1.2 * once


class Hoarder(FloodingBroker):
    """What the test above is there to find."""

    def __init__(self, *args: Any) -> None:  # noqa: ANN401  # a broker's
        super().__init__(*args)
        self.neighbours: set[Node] = set()

    def receive(self, now: int, sender: Node, message: Message) -> None:
        self.neighbours.add(sender)
        super().receive(now, sender, message)


def test_a_table_without_bound_would_be_found() -> None:
    once, three_times = growth(Entry("hoarder", "", Flooding, Hoarder, (Data,)))
    assert three_times > 2 * once


# --- Anything at all -------------------------------------------------------------------------------------------------


def integers(info: inspect.IntType) -> st.SearchStrategy[int]:
    """Small ones, which coincide, and the ends of what a frame can hold."""
    low = info.ge if info.ge is not None else INT_MIN if info.gt is None else info.gt + 1
    high = info.le if info.le is not None else 2**64 - 1 if info.lt is None else info.lt - 1
    ends = [end for end in (low, -1, 0, 1, 2, INT_MAX, 2**63, high) if low <= end <= high]
    return st.sampled_from(ends) | st.integers(low, high)


def floats(info: inspect.FloatType) -> st.SearchStrategy[float]:
    """Small ones, of which most may stand anywhere, and any at all."""
    any_at_all = st.floats(info.ge, info.le, allow_nan=False)
    low, high = -math.inf if info.ge is None else info.ge, math.inf if info.le is None else info.le
    small = [number for number in map(float, (*range(-500, 500, 50), 1, -1, 1e9)) if low <= number <= high]
    return st.sampled_from(small) | any_at_all if small else any_at_all


@functools.cache
def fields_of(cls: type) -> dict[str, st.SearchStrategy[Any]]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return {field.name: anything(field.type) for field in info.fields}


@st.composite
def struct(draw: st.DrawFn, cls: type) -> Any:  # noqa: ANN401  # of the class
    """What its own rules refuse is drawn again. Fields are looked up when it is drawn: a struct may be in itself."""
    for _ in range(8):
        try:
            return cls(**{name: draw(field) for name, field in fields_of(cls).items()})
        except ContentError:
            pass
    raise UnsatisfiedAssumption


def sized(info: Any) -> dict[str, Any]:  # noqa: ANN401  # every type of msgspec that has a length
    longest = 4 if info.max_length is None else info.max_length
    return {"min_size": info.min_length or 0, "max_size": longest}


TEXTS = st.sampled_from(("", "a", "\0", "é")) | st.text(max_size=8) | st.just(2_000).map("x".__mul__)
ANYTHING: dict[type[inspect.Type], Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.NoneType: lambda info: st.none(),
    inspect.BoolType: lambda info: st.booleans(),
    inspect.IntType: integers,
    inspect.FloatType: floats,
    inspect.StrType: lambda info: TEXTS,
    inspect.BytesType: lambda info: st.binary(**sized(info)),
    inspect.EnumType: lambda info: st.sampled_from(info.cls),
    inspect.LiteralType: lambda info: st.sampled_from(info.values),
    inspect.ListType: lambda info: st.lists(anything(info.item_type), **sized(info)),
    inspect.VarTupleType: lambda info: st.lists(anything(info.item_type), **sized(info)).map(tuple),
    inspect.TupleType: lambda info: st.tuples(*map(anything, info.item_types)),
    inspect.DictType: lambda info: st.dictionaries(anything(info.key_type), anything(info.value_type), **sized(info)),
    inspect.UnionType: lambda info: st.one_of(*map(anything, info.types)),
    inspect.StructType: lambda info: struct(info.cls),
    inspect.Metadata: lambda info: anything(info.type),
}


def anything(info: inspect.Type) -> st.SearchStrategy[Any]:
    """Whatever a frame may bring where this type is expected."""
    return ANYTHING[type(info)](info)


NODES = st.sampled_from((0, 1, 2, 2**31 - 1))
KEYS: st.SearchStrategy[Hashable] = st.none() | st.integers() | st.text(max_size=3) | st.tuples(st.text(max_size=3))
SUBSCRIPTIONS = st.sampled_from((0, 1, INT_MAX))
EVENTS = st.builds(Event, type=st.sampled_from("ab"), id=st.sampled_from((1, 2, event_id(0, 1), INT_MAX)))


@functools.cache
def steps(messages: tuple[type[Message], ...]) -> st.SearchStrategy[list[tuple[int, str, tuple[Any, ...]]]]:
    """Calls of a broker, each with the time that passes before it."""
    heard = st.one_of(*(anything(inspect.type_info(kind)) for kind in messages))
    calls = st.one_of(
        st.tuples(st.just("receive"), st.tuples(NODES, heard)),
        st.tuples(st.just("receive"), st.tuples(NODES, heard)),
        st.tuples(st.just("unreachable"), st.tuples(NODES, heard)),
        st.tuples(st.just("timer"), st.tuples(KEYS)),
        st.tuples(st.just("subscribe"), st.tuples(st.builds(Subscription, SUBSCRIPTIONS, filters))),
        st.tuples(st.just("unsubscribe"), st.tuples(SUBSCRIPTIONS)),
        st.tuples(st.just("publish"), st.tuples(st.builds(Publication, EVENTS))),
    )
    waits = st.sampled_from((0, 1, SECOND // 10, 10 * SECOND))
    return st.lists(st.builds(lambda wait, call: (wait, *call), waits, calls), max_size=12)


def pass_time(broker: Broker[Any], port: RecordingPort, until: int) -> None:
    """Lets the timers that were set go off, if not for ever: of those set meanwhile, what is due comes next time."""
    due = sorted((timer for timer in port.timers if timer[0] <= until), key=lambda timer: timer[0])
    port.timers = [timer for timer in port.timers if timer[0] > until]
    for at, key in due:
        port.now = max(port.now, at)
        broker.timer(port.now, key)
    port.now = until


@every_entry
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_sequence_of_calls_and_messages_makes_a_broker_raise(entry: Entry, data: st.DataObject) -> None:
    port = RecordingPort()
    place(entry, port, 0)
    broker = entry.broker(0, entry.parameters(), port, random.Random(5))
    guard(broker)
    broker.start(0, {})
    for wait, call, args in data.draw(steps(entry.messages)):
        pass_time(broker, port, port.now + wait)
        getattr(broker, call)(port.now, *args)
    for message in port.messages:
        check_sendable(entry, message)
    entry.broker(0, entry.parameters(), port, random.Random(6)).start(port.now, dict(port.kept))


@every_entry
def test_generated_messages_are_such_as_a_frame_can_bring(entry: Entry) -> None:
    @given(st.one_of(*(anything(inspect.type_info(kind)) for kind in entry.messages)))
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    def check(message: Message) -> None:
        assume(len(msgspec.msgpack.encode(message)) <= limits_of(type(message)).octets)
        check_sendable(entry, message)

    check()


if __name__ == "__main__":
    print(json.dumps({name: transcript(entry) for name, entry in CATALOGUE.items()}))
