"""The broker, step by step: the exchanges of section 2 of the paper, on meshes moved by hand."""

import random
from typing import Any

import msgspec
import pytest

from roamcast.content.event import Event, event_id
from roamcast.content.filter import EVERYTHING, Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.facts import Decision
from roamcast.protocols.messages import MAX_PIECES, Message
from roamcast.protocols.opportunistic import announcing
from roamcast.protocols.opportunistic.broker import ENTRY, OpportunisticBroker
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.facts import CacheChanged
from roamcast.protocols.opportunistic.messages import Announce, Chunk, Header, Piece, Request
from roamcast.protocols.opportunistic.outgoing import MAX_PASSING
from roamcast.protocols.opportunistic.params import Opportunistic, for_node
from roamcast.protocols.pieces import cut_of
from roamcast.protocols.testing import Mesh, RecordingPort
from roamcast.units import SECOND

JAZZ, BLUES = Filter.where("topic", "=", "jazz"), Filter.where("topic", "=", "blues")
A, B, C, D = 0, 1, 2, 3
CYCLE = 16 * SECOND
"""Longer than the time between two announces."""


def news(
    number: int, topic: str = "jazz", publisher: int = A, size: int = 3000, life: int | None = None
) -> Publication:
    event = Event.of("news", {"topic": topic}, bytes(number % 256 for _ in range(size)), event_id(publisher, number))
    return Publication(event, life)


def mesh(nodes: int, links: list[tuple[int, int]], wants: dict[int, Filter], **parameters: Any) -> Mesh:  # noqa: ANN401
    made = Mesh(ENTRY, range(nodes), links, parameters)
    for node, wanted in wants.items():
        made[node].subscribe(0, Subscription(node, wanted))
    return made


def got(mesh: Mesh, node: int) -> list[int]:
    return [delivery.event.id & 0xFFFFFFFF for delivery in mesh.ports[node].delivered]


def sent(mesh: Mesh, kind: type, node: int | None = None) -> list[Any]:
    return [said for _, sender, said in mesh.log if isinstance(said, kind) and node in (None, sender)]


# --- The paper's own story ------------------------------------------------------------------------------------------


def test_a_document_is_announced_asked_for_broadcast_once_and_kept() -> None:
    """Section 2.1: A has a document that B and C want, and D does not; all hear each other."""
    links = [(a, b) for a in range(4) for b in range(a)]
    made = mesh(4, links, {B: JAZZ, C: JAZZ, D: BLUES}, scope=1, asking="everyone")
    made.run(CYCLE)  # A knows what its neighbours want
    made[A].publish(made.now, news(1))
    made.run(made.now + CYCLE)
    assert (got(made, B), got(made, C), got(made, D)) == ([1], [1], [])
    assert [delivery.hops for node in (B, C) for delivery in made.ports[node].delivered] == [1, 1]
    (announce,) = [said for said in sent(made, Announce, A) if said.catalog]
    assert [listed.event.id for listed in announce.catalog] == [event_id(A, 1)]
    assert [said.documents for said in sent(made, Request)] == [(event_id(A, 1),)] * 2
    assert len(sent(made, Piece)) == 3  # 3 kB in three pieces, sent once though two have asked
    made.cut(A, B)
    made.cut(A, C)
    made.cut(A, D)
    made[D].subscribe(made.now, Subscription(9, JAZZ))
    made.run(made.now + 2 * CYCLE)
    assert got(made, D) == [1]  # from B or C, who carry it now
    assert made.ports[D].delivered[0].hops == 2


def test_who_overhears_a_document_it_wants_keeps_it_without_asking() -> None:
    made = mesh(3, [(A, B)], {B: JAZZ, C: JAZZ}, scope=1)
    made.run(CYCLE)
    made[A].publish(made.now, news(1))
    made.run(next(at for at, key in made.ports[A].timers if at > made.now) - 1)
    made.link(A, C)  # it comes just before the announce, and loses it
    receive = made[C].receive

    def deaf(now: int, sender: int, message: Message) -> None:
        if not isinstance(message, Announce):
            receive(now, sender, message)

    made[C].receive = deaf  # type: ignore[method-assign]
    made.run(made.now + CYCLE)
    assert (got(made, C), sent(made, Request, C)) == ([1], [])


def test_a_carrier_brings_it_where_its_publisher_never_was() -> None:
    """Store, carry, forward: A and C never meet."""
    made = mesh(3, [(A, B)], {B: JAZZ, C: JAZZ})
    made[A].publish(0, news(1))
    made.run(3 * CYCLE)
    made.cut(A, B)
    made.run(made.now + 100 * SECOND)
    assert got(made, C) == []
    made.link(B, C)
    made.run(made.now + 3 * CYCLE)
    assert got(made, C) == [1]
    assert [delivery.hops for delivery in made.ports[C].delivered] == [2]


def test_only_the_interested_carry_unless_they_are_told_to() -> None:
    for carry, expected in (("interests", []), ("everything", [1]), ('topic = "jazz"', [1]), ('topic = "folk"', [])):
        made = mesh(3, [(A, B)], {B: BLUES, C: JAZZ}, carry=carry)
        made[A].publish(0, news(1))
        made.run(3 * CYCLE)
        made.cut(A, B)
        made.link(B, C)
        made.run(made.now + 3 * CYCLE)
        assert (got(made, B), got(made, C)) == ([], expected), carry


# --- Several hops ---------------------------------------------------------------------------------------------------

LINE = [(A, B), (B, C), (C, D)]
LINE_BACK = {B: (), C: (A,), D: (B, A)}
"""What is left of a request's way to A after its first hop."""


@pytest.mark.parametrize("scope", [1, 2, 3])
@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("relaying", ["relays", "flooding"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_document_goes_as_far_as_its_scope(scope: int, hops: int, relaying: str, whole: bool) -> None:
    """The only node that wants it is so many hops from A, and nobody carries it there."""
    made = mesh(4, LINE, {hops: JAZZ}, scope=scope, relaying=relaying, whole=whole)
    made.run(4 * CYCLE)  # relays are known after two announces
    made[A].publish(made.now, news(1))
    made.run(made.now + 2 * CYCLE)
    assert [delivery.hops for delivery in made.ports[hops].delivered] == ([hops] if hops <= scope else [])
    assert [said.route for said in sent(made, Request, hops)] == ([LINE_BACK[hops]] if hops <= scope else [])


def test_a_request_goes_back_the_way_the_announce_came_and_gives_up_where_it_breaks() -> None:
    made = mesh(4, LINE, {D: JAZZ}, scope=3, relaying="flooding")
    made.run(2 * CYCLE)
    made[A].publish(made.now, news(1))
    while not sent(made, Request, D):
        made.run(made.now + SECOND // 1000)
        if any(said.catalog for said in sent(made, Announce, A)):
            made.cut(A, B)
    made.run(made.now + SECOND)
    assert got(made, D) == []
    assert made.ports[B].notes["request given up"] == 1
    made.link(A, B)
    made.run(made.now + 2 * CYCLE)
    assert got(made, D) == [1]  # with the next announce, and a new request


def test_only_relays_pass_on_and_everybody_floods() -> None:
    """A is in the middle of B, C and D, which all hear each other; only D hears node 4."""
    links = [(a, b) for a in range(4) for b in range(a)] + [(D, 4)]
    passed: dict[str, set[int]] = {}
    for relaying in ("relays", "flooding"):
        made = mesh(5, links, {4: JAZZ}, scope=2, relaying=relaying)
        made.run(4 * CYCLE)
        made[A].publish(made.now, news(1))
        made.run(made.now + 2 * CYCLE)
        assert got(made, 4) == [1]
        passed[relaying] = {node for _, node, said in made.log if isinstance(said, Piece) and node != A}
    assert passed == {"relays": {D}, "flooding": {B, C, D}}


def test_a_relay_passes_on_the_pieces_that_it_has() -> None:
    made = mesh(3, [(A, B), (B, C)], {C: JAZZ}, scope=2)
    made.run(4 * CYCLE)
    document = news(1, size=10_000)
    receive = made[B].receive

    def lossy(now: int, sender: int, message: Any) -> None:  # noqa: ANN401
        if not (isinstance(message, Piece) and message.number in (2, 5) and sender == A and not lost[message.number]):
            receive(now, sender, message)
        elif isinstance(message, Piece):
            lost[message.number] = True

    lost = {2: False, 5: False}
    made[B].receive = lossy  # type: ignore[method-assign]
    made[A].publish(made.now, document)
    while not got(made, C):
        made.run(made.now + CYCLE)
        assert made.now < 12 * CYCLE
    passed = sent(made, Piece, B)
    assert [said.number for said in passed[:7]] == [0, 1, 3, 4, 6, 7, 8]
    requests = sent(made, Request, C)
    assert requests[-1].missing == {document.event.id: (0b100100,)}  # and then only those are sent
    assert [said.number for said in sent(made, Piece, A)][9:] == [2, 5]
    assert made.ports[C].delivered[0].event == document.event


def _bare(event: Event) -> Event:
    return Document(event).descriptor.event if event.payload else event


def forged_at_the_relay(publication: Publication, place: int, *, headless: bool = False) -> Mesh:
    """A line; the relay in the middle gets one forged piece, under the publisher's header, ahead of the true ones. If
    it is to be headless, it loses the first copy of the first piece."""
    made = mesh(3, [(A, B), (B, C)], {C: JAZZ}, scope=2)
    if publication.event.signed is not None:
        true = Document(publication.event).descriptor.event
        for port in (made.ports[B], made.ports[C]):  # a signature covers the root of the payload
            port.authentic = lambda event: _bare(event) == true  # type: ignore[method-assign]
    made.run(4 * CYCLE)
    receive, forged = made[B].receive, list[Piece]()

    def attacked(now: int, sender: int, message: Any) -> None:  # noqa: ANN401
        if isinstance(message, Piece) and not forged:
            octets = Document(publication.event).octets(*message.header.cut.span(place))
            forged.append(Piece(message.header, place, b"forged" + octets[6:]))
            receive(now, D, forged[0])
            if headless:
                return
        receive(now, sender, message)

    made[B].receive = attacked  # type: ignore[method-assign]
    made[A].publish(made.now, publication)
    while not got(made, C):
        made.run(made.now + CYCLE)
        assert made.now < 12 * CYCLE
    return made


@pytest.mark.parametrize("place", [1, 4, 8])
def test_a_relay_does_not_pass_on_a_forged_piece_which_costs_only_those_beside_it(place: int) -> None:
    publication = news(1, size=10_000).to_be_signed(5, 1250)
    made = forged_at_the_relay(publication, place)
    assert not [said for said in sent(made, Piece, B) if said.octets.startswith(b"forged")]
    assert made.ports[B].notes["forged"] == 1
    assert made.ports[C].notes["forged"] == 0
    again = [said.number for said in sent(made, Piece, A)][9:]  # nine pieces, and then what was beside it
    assert again
    assert set(again) <= {place - 1, place, place + 1}
    assert made.ports[C].delivered[0].event == publication.event


def test_a_relay_without_the_head_passes_on_a_forged_piece_which_costs_the_receiver_only_those_beside_it() -> None:
    publication = news(1, size=10_000).to_be_signed(5, 1250)
    made = forged_at_the_relay(publication, 4, headless=True)
    assert [said.number for said in sent(made, Piece, B) if said.octets.startswith(b"forged")] == [4]
    assert made.ports[C].notes["forged"] == 1
    again = [said.number for said in sent(made, Piece, A)][9:]  # nine pieces, and then what was lost or dropped
    assert again[0] == 0
    assert set(again) == {0, 3, 4}  # what is forged is in a block that begins in the piece before
    assert made.ports[C].delivered[0].event == publication.event


def test_without_signatures_a_relay_passes_on_a_forged_piece_and_it_is_believed() -> None:
    made = forged_at_the_relay(news(1, size=10_000), 4)
    assert [said for said in sent(made, Piece, B) if said.octets.startswith(b"forged")]
    assert b"forged" in made.ports[C].delivered[0].event.payload


@pytest.mark.parametrize("life", [None, 10**9, 3_600_000])
def test_a_document_lives_no_longer_than_its_author_has_signed_whatever_passes_it_on(life: int | None) -> None:
    """A member says that an hour, a month or any time is left of a lifetime of 100 s."""
    unsigned = news(1, publisher=B, life=100 * SECOND)
    for publication in (unsigned.to_be_signed(5, 1250), unsigned):
        document = Document(publication.event)
        broker, port = lonely(scope=1)
        broker.subscribe(0, Subscription(1, JAZZ))
        whole = cut_of(document.length, 1250).all
        header = Header(B, 1, 1, (), document.id, document.length, 1250, 0, whole, 0, life, 0)
        broker.receive_bulk(5, B, Chunk(header, document), whole)
        assert len(port.delivered) == 1
        held = broker._holdings.cache.get(document.id)
        assert held is not None
        if document.event.signed is not None:
            assert held.expires == 5 + 100 * SECOND
        else:  # without signatures it is believed
            assert held.expires is None or held.expires > 1000 * SECOND


def test_whole_documents_only_means_that_pieces_are_not_kept() -> None:
    made = mesh(2, [(A, B)], {B: JAZZ}, scope=1, whole=True)
    made.run(CYCLE)
    receive = made[B].receive
    lost: list[Piece] = []

    def lossy(now: int, sender: int, message: Any) -> None:  # noqa: ANN401
        if isinstance(message, Piece) and message.number == 1 and not lost:
            lost.append(message)
        else:
            receive(now, sender, message)

    made[B].receive = lossy  # type: ignore[method-assign]
    made[A].publish(made.now, news(1))
    made.run(made.now + 3 * CYCLE)
    assert got(made, B) == [1]
    assert [said.number for said in sent(made, Piece, A)] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(("whole", "kept"), [(True, 0), (False, 1)])
def test_what_came_in_part_is_kept_only_if_it_can_be_completed(whole: bool, kept: int) -> None:
    """A piece is lost for good, and A leaves: with whole documents only, no other broadcast can add that piece."""
    made = mesh(2, [(A, B)], {B: JAZZ}, scope=1, whole=whole)
    made.run(CYCLE)
    receive = made[B].receive

    def lossy(now: int, sender: int, message: Any) -> None:  # noqa: ANN401
        if not (isinstance(message, Piece) and message.number == 1):
            receive(now, sender, message)

    made[B].receive = lossy  # type: ignore[method-assign]
    made[A].publish(made.now, news(1))
    while not made[B].tables()["partial documents"]:
        made.run(made.now + SECOND)
    made.cut(A, B)
    made.run(made.now + 2 * CYCLE)
    assert made[B].tables()["partial documents"] == kept


@pytest.mark.parametrize("whole", [True, False])
def test_a_relay_passes_on_what_a_later_copy_completes_though_that_does_not_name_it(whole: bool) -> None:
    """The first copy decides; pieces of any copy are of the same broadcast."""
    document = Document(news(1).event)
    cut = cut_of(document.length, 1250)
    relay, port = lonely(scope=3, whole=whole)
    relay.node = relay._forwarding._node = B
    first = Header(A, 1, 3, (B,), document.id, document.length, 1250, 0, cut.all, 0, None, 0)
    relay.receive_bulk(5, A, Chunk(first, document), 0b011)
    assert port.bulks == []
    later = msgspec.structs.replace(first, scope=2, relays=(D,), hops=1)
    relay.receive_bulk(6, C, Chunk(later, document), 0b111)
    ((_, passed),) = port.bulks
    assert isinstance(passed, Chunk)
    assert (passed.header.sent, passed.header.scope, passed.header.hops) == (cut.all, 2, 1)
    relay.receive_bulk(7, C, Chunk(later, document), 0b111)
    assert len(port.bulks) == 1, "once"


def test_what_is_not_passed_on_after_all_is_decided_too() -> None:
    """The 65th that waits finds no room; one whose life ends while it waits is not sent."""
    relay, port = lonely(scope=3)
    relay.node = relay._forwarding._node = B
    for serial in range(1, 2 + MAX_PASSING + 1):
        document = Document(news(serial).event)
        life = 1000 if serial == 2 else None  # ms, while others wait in front of it
        whole = cut_of(document.length, 1250).all
        header = Header(A, serial, 3, (B,), document.id, document.length, 1250, 0, whole, 0, life, 0)
        relay.receive_bulk(serial, A, Chunk(header, document), whole)
    first, second, last = (Document(news(serial).event).id for serial in (1, 2, 2 + MAX_PASSING))
    assert [fact for _, fact in port.facts if isinstance(fact, Decision) and fact.event == last] == [
        Decision(last, "given up")
    ]
    assert port.notes["too busy to pass on"] == 1
    ((_, bulk),) = port.bulks
    assert isinstance(bulk, Chunk)
    assert bulk.header.document == first
    relay.left(2 * SECOND, bulk)
    decided = [fact.decision for _, fact in port.facts if isinstance(fact, Decision) and fact.event == second]
    assert decided == ["forwarded", "expired"]


# --- Caches ---------------------------------------------------------------------------------------------------------


def test_an_expired_document_is_neither_offered_nor_delivered() -> None:
    made = mesh(3, [(A, B)], {B: JAZZ}, scope=1)
    made.run(CYCLE)
    made[A].publish(made.now, news(1, life=60 * SECOND))
    published = made.now
    made.run(made.now + CYCLE)
    assert got(made, B) == [1]
    made.run(published + 59 * SECOND)
    made[B].subscribe(made.now, Subscription(8, EVERYTHING))
    assert made.ports[B].delivered[-1].subscriptions == (8,)  # it is still held, and still lives
    made.run(published + 60 * SECOND)
    made[B].subscribe(made.now, Subscription(9, EVERYTHING))
    assert len(made.ports[B].delivered) == 2
    left = [fact for _, fact in made.ports[B].facts if isinstance(fact, CacheChanged) and not fact.entered]
    assert left == [CacheChanged(event_id(A, 1), False, "expired", 0, 0)]
    made.link(B, C)
    made[C].subscribe(made.now, Subscription(1, JAZZ))
    made.run(made.now + 3 * CYCLE)
    assert got(made, C) == []


@pytest.mark.parametrize(("remember", "fetched"), [(True, 1), (False, 2)])
def test_what_was_dropped_is_fetched_again_only_if_it_is_not_remembered(remember: bool, fetched: int) -> None:
    made = mesh(
        2, [(A, B)], {B: JAZZ}, scope=1, capacity={"0": 10, "others": 1}, policy="oldest arrival", remember=remember
    )
    made.run(CYCLE)
    made[A].publish(made.now, news(1))
    made.run(made.now + CYCLE)
    made[A].publish(made.now, news(2))
    made.run(made.now + CYCLE)
    assert got(made, B) == [1, 2]
    made.run(made.now + CYCLE)
    entered = [fact.event for _, fact in made.ports[B].facts if isinstance(fact, CacheChanged) and fact.entered]
    assert entered.count(event_id(A, 1)) == fetched
    assert got(made, B) == [1, 2]  # delivered once, whatever is fetched


def test_what_the_policy_would_drop_is_not_asked_for() -> None:
    made = mesh(2, [], {B: JAZZ}, scope=1, capacity={"0": 0, "1": 1}, remember=False)
    made[A].publish(0, news(1))
    made.run(5 * SECOND)
    made[B].publish(made.now, news(1, publisher=B))  # newer, and it fills B's cache
    made.link(A, B)
    made.run(4 * CYCLE)
    assert (got(made, B), sent(made, Request, B)) == ([1], [])
    assert made.ports[B].delivered[0].via == "local"


def test_policies_differ_by_node() -> None:
    """B and C have room for one document, and have a newer one than A offers."""
    policies = {"1": "oldest arrival", "others": "oldest"}
    made = mesh(3, [], {B: JAZZ, C: JAZZ}, scope=1, capacity={"0": 0, "others": 1}, policy=policies)
    made[A].publish(0, news(1))
    made.run(5 * SECOND)
    for node in (B, C):
        made[node].publish(made.now, news(2, publisher=node))
        made.link(A, node)
    made.run(4 * CYCLE)
    assert [said.documents for said in sent(made, Request, B)] == [(event_id(A, 1),)]
    assert sent(made, Request, C) == []


def test_a_cache_survives_its_node() -> None:
    made = mesh(3, [(A, B)], {B: JAZZ, C: JAZZ})
    made[A].publish(0, news(1, life=500 * SECOND))
    made.run(3 * CYCLE)
    made.cut(A, B)
    made.restart(B)
    assert made[B].tables()["documents"] == 1
    made[B].subscribe(made.now, Subscription(B, JAZZ))
    assert got(made, B) == [1]  # not again
    made.link(B, C)
    made.run(made.now + 3 * CYCLE)
    assert made.ports[C].delivered[0].event == news(1).event
    made.run(501 * SECOND)
    made.restart(B)
    assert made[B].tables()["documents"] == 0
    assert [key for key in made.ports[B].kept if not key.startswith("delivered/")] == []


def test_a_smaller_cache_takes_over_what_it_can_hold() -> None:
    port = RecordingPort()
    first = OpportunisticBroker(A, Opportunistic(), port, random.Random(1))
    first.start(0, {})
    for number in range(1, 6):
        port.now = number * SECOND
        first.publish(port.now, news(number))
    kept = dict(port.kept)
    second = OpportunisticBroker(A, Opportunistic(capacity=2), port, random.Random(1))
    second.start(port.now, kept)
    assert second.tables()["documents"] == 2
    assert sorted(key for key in port.kept if key.startswith("document/")) == [
        f"document/{event_id(A, number)}" for number in (4, 5)
    ]


def test_records_that_are_not_understood_are_left_alone() -> None:
    broker = OpportunisticBroker(A, Opportunistic(), RecordingPort(), random.Random(1))
    broker.start(0, {"document/1": b"?", "payload/1": b"", "document/2": b"\x90", "payload/2": b"", "document/x": b""})
    assert broker.tables()["documents"] == 0


# --- Announces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missed", [1, 3])
def test_a_neighbour_is_forgotten_after_some_missed_announces(missed: int) -> None:
    made = mesh(2, [(A, B)], {B: JAZZ}, interval=15.0, jitter=0.0, missed=missed)
    made[A].publish(0, news(1, topic="blues"))
    made.run(2 * CYCLE)
    heard = max(at for at, sender, said in made.log if sender == B and isinstance(said, Announce))
    made.cut(A, B)
    made.run(heard + missed * 15 * SECOND)
    assert made[A].tables()["neighbours"] == made[A].tables()["direct neighbours"] == 1
    made.run(made.now + CYCLE)  # A looks when it announces
    assert made[A].tables()["neighbours"] == made[A].tables()["direct neighbours"] == 0


def test_a_part_of_an_announce_is_useful_without_the_others() -> None:
    broker, port = lonely()
    broker.subscribe(0, Subscription(1, JAZZ))
    listed = Document(news(1, publisher=B).event).descriptor
    broker.receive(0, B, Announce(1, 2, 1, (), (), None, (), (), (listed,), (0,), ()))
    ((to, asked_for),) = [(sent.to, sent.message) for sent in port.sent.values()]
    assert to == B
    assert isinstance(asked_for, Request)
    assert asked_for.documents == (event_id(B, 1),)


def test_a_catalog_without_a_limit_goes_in_as_many_messages_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "MAX_LISTED", 3)
    made = mesh(2, [(A, B)], {B: EVERYTHING}, scope=1, listed=0, cut=False)
    made.run(CYCLE)
    for number in range(1, 8):
        made[A].publish(made.now, news(number))
    made.run(made.now + 2 * CYCLE)
    assert sorted(got(made, B)) == [1, 2, 3, 4, 5, 6, 7]
    lengths = [(said.part, len(said.catalog)) for said in sent(made, Announce, A) if said.catalog or said.part]
    assert lengths[:3] == [(0, 3), (1, 3), (2, 1)]


# --- Pace -----------------------------------------------------------------------------------------------------------


def asked(broker: OpportunisticBroker, port: RecordingPort, numbers: range, size: int = 3000) -> None:
    for number in numbers:
        broker.publish(port.now, news(number, size=size))
    ids = tuple(event_id(A, number) for number in numbers)
    broker.receive(port.now, B, Request((), ids, broker.params.piece, {}))


def lonely(**parameters: Any) -> tuple[OpportunisticBroker, RecordingPort]:  # noqa: ANN401
    port = RecordingPort()
    broker = OpportunisticBroker(A, msgspec.convert(parameters, Opportunistic), port, random.Random(1))
    broker.start(0, {})
    port.timers.clear()
    return broker, port


def documents(port: RecordingPort) -> list[int]:
    return [bulk.header.document & 0xFFFF for _, bulk in port.bulks if isinstance(bulk, Chunk)]


def test_the_next_document_goes_when_the_one_before_has_left() -> None:
    broker, port = lonely()
    asked(broker, port, range(1, 4))
    assert documents(port) == [1]
    broker.left(port.now, port.bulks[0][1])
    assert documents(port) == [1, 2]
    broker.left(port.now, port.bulks[0][1])  # an old one
    assert documents(port) == [1, 2]
    broker.left(port.now, port.bulks[1][1])
    broker.left(port.now, port.bulks[2][1])
    assert documents(port) == [1, 2, 3]


def test_or_after_its_time_where_nobody_tells() -> None:
    broker, port = lonely(pace=1e6)
    asked(broker, port, range(1, 3))
    ((at, key),) = port.timers
    assert at == 3 * 1350 * 8 * 1000  # three frames at 1 Mb/s, in ns
    broker.timer(at, key)
    assert documents(port) == [1, 2]
    broker.timer(at, key)  # a stale one
    assert documents(port) == [1, 2]


def test_a_long_document_goes_in_several_bulks() -> None:
    broker, port = lonely(piece=100)
    asked(broker, port, range(1, 2), size=15_000)
    while len(port.bulks) < 3:
        broker.left(port.now, port.bulks[-1][1])
    broker.left(port.now, port.bulks[-1][1])
    assert [len(bulk) for _, bulk in port.bulks] == [MAX_PIECES, MAX_PIECES, 151 - 2 * MAX_PIECES]


def test_what_found_the_queue_full_can_be_asked_for_again_and_the_node_pauses() -> None:
    broker, port = lonely()
    asked(broker, port, range(1, 3))
    broker.dropped(port.now, port.bulks[0][1])
    timers = iter(port.timers)  # one may be set again when it is over
    while documents(port) == [1]:
        at, key = next(timers)
        broker.timer(at, key)
    assert (at, documents(port)) == (port.now + SECOND // 5, [1, 2])
    broker.left(at, port.bulks[1][1])
    broker.receive(at, B, Request((), (event_id(A, 1), event_id(A, 2)), broker.params.piece, {}))
    assert documents(port) == [1, 2, 1]  # 2 was sent since the last announce


@pytest.mark.parametrize("before", [0, 1])
def test_all_of_a_long_document_that_was_not_sent_can_be_asked_for_again(before: int) -> None:
    """Of three bulks the first or the second found the queue full: those after it are not sent either."""
    broker, port = lonely(piece=100)
    asked(broker, port, range(1, 2), size=15_000)
    for _ in range(before):
        broker.left(port.now, port.bulks[-1][1])
    broker.dropped(port.now, port.bulks[-1][1])
    port.now += SECOND
    for at, key in list(port.timers):
        broker.timer(max(at, port.now), key)
    port.bulks.clear()
    broker.receive(port.now, B, Request((), (event_id(A, 1),), broker.params.piece, {}))
    for _ in range(3):
        broker.left(port.now, port.bulks[-1][1])
    assert [bulk.header.chunk for _, bulk in port.bulks if isinstance(bulk, Chunk)] == [0, 1, 2][before:]


# --- A bulk is its pieces -------------------------------------------------------------------------------------------


def test_a_bulk_and_its_pieces_mean_the_same() -> None:
    sender, port = lonely(scope=2, relaying="flooding")
    asked(sender, port, range(1, 2), size=6000)
    bulk = port.bulks[0][1]
    said = []
    for received in (0b1, 0b11111, 0b11110, 0b01010):
        for at_once in (True, False):
            hearer, ear = lonely(scope=2, relaying="flooding")
            hearer.node = B
            hearer.subscribe(0, Subscription(1, JAZZ))
            if at_once:
                hearer.receive_bulk(5, A, bulk, received)
            else:
                for number in range(len(bulk)):
                    if received >> number & 1:
                        hearer.receive(5, A, bulk[number])
            ear.now = 10 * SECOND
            for at, key in list(ear.timers):
                hearer.timer(max(at, 5 + SECOND), key)
            bulks = [[bulk[number] for number in range(len(bulk))] for _, bulk in ear.bulks]
            said.append((bulks, ear.delivered, hearer.tables()["partial documents"]))
    assert said[0::2] == said[1::2]


# --- Parameters -----------------------------------------------------------------------------------------------------


def test_a_table_by_node() -> None:
    table = {"7": 1, "0-9": 2, "others": 3}
    assert [for_node(table, node, 0) for node in (7, 0, 9, 10)] == [1, 2, 2, 3]
    assert [for_node({"7": 1}, 8, 0), for_node(5, 8, 0)] == [0, 5]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"capacity": {"a-b": 1}}, "capacity: 'a-b' is not a node"),
        ({"carry": "topic ="}, "topic ="),
        ({"scope": 0}, "scope"),
        ({"policy": "newest"}, "policy"),
        ({"policy": {"0": "newest"}}, "policy"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(wrong, Opportunistic)
    assert said in str(caught.value)
