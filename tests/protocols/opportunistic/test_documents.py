"""Documents: cut into pieces and put together again, however they come."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication
from roamcast.errors import ContentError
from roamcast.protocols.messages import MAX_PIECES
from roamcast.protocols.opportunistic.broker import ENTRY
from roamcast.protocols.opportunistic.documents import (
    Document,
    assembled,
    described,
    false_pieces,
    pieces_of_head,
)
from roamcast.protocols.opportunistic.messages import Announce, Chunk, Header, Piece, chunks, joined, masks
from roamcast.protocols.pieces import Cut, Partial, Partials

EVENTS = st.builds(
    lambda topic, payload: Event.of("news", {"topic": topic, "keywords": ("a", "b")}, payload, id=7),
    st.text(max_size=30),
    st.binary(max_size=300),
)


def header(document: Document, size: int, chunk: int, sent: int) -> Header:
    return Header(1, 2, 1, (), document.id, document.length, size, chunk, sent, 0, None, 0)


def bulks(document: Document, size: int) -> list[Chunk]:
    pieces = Cut(document.length, size).all
    return [Chunk(header(document, size, chunk, sent), document) for chunk, sent in chunks(pieces)]


def put_together(pieces: list[Piece]) -> Partial[Document]:
    partials: Partials[int, Document] = Partials(1, 1 << 20)
    for piece in pieces:
        head = piece.header
        assert partials.add(7, head.cut, head.first + piece.number, piece.octets) is not None
    partial = partials.get(7)
    assert partial is not None
    return partial


@given(EVENTS, st.integers(1, 90))
def test_the_pieces_make_the_document(event: Event, size: int) -> None:
    document = Document(event)
    sent = bulks(document, size)
    pieces = [bulk[number] for bulk in sent for number in range(len(bulk))]
    assert [len(piece.octets) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    assert all(len(bulk) <= MAX_PIECES and bulk.header.valid for bulk in sent)
    partial = put_together(pieces[::-1])
    assert partial.complete
    again = assembled(7, partial)
    assert again is not None
    assert again.event == event
    assert again.descriptor == document.descriptor


@given(EVENTS, st.integers(8, 90))
def test_the_first_pieces_tell_what_it_is_about_and_fewer_do_not(event: Event, size: int) -> None:
    document = Document(event)
    head = document.head_pieces(Cut(document.length, size)).bit_length()
    pieces = [bulk[number] for bulk in bulks(document, size) for number in range(len(bulk))]
    assert described(7, put_together(pieces[:head])) == document.descriptor
    if head > 1:
        assert described(7, put_together(pieces[: head - 1])) is None
        assert described(7, put_together(pieces[1:])) is None
    assert document.descriptor.event == Event(event.type, event.attributes, b"", 7)


def test_a_descriptor_takes_about_50_bytes_and_its_document_what_the_event_takes() -> None:
    event = Event.of("document", {"topic": 3}, bytes(50_000), id=5 << 32 | 17)
    document = Document(event)
    assert document.listed < 60
    assert abs(document.length - event.size) < 16
    assert Cut(document.length, 1250).pieces == 41


def test_a_bulk_of_some_pieces_says_which_have_arrived() -> None:
    document = Document(Event.of("t", payload=bytes(200 * 10), id=7))
    bulk = Chunk(header(document, 10, chunk=1, sent=0b101100), document)
    assert [bulk[number].number for number in range(len(bulk))] == [2, 3, 5]
    assert bulk.pieces(0b111) == 0b101100 << MAX_PIECES
    assert bulk.pieces(0b101) == 0b100100 << MAX_PIECES
    assert bulk[0].octets == document.octets(10 * (MAX_PIECES + 2), 10 * (MAX_PIECES + 3))


def test_all_pieces_of_a_bulk_but_the_last_are_equally_long() -> None:
    document = Document(Event.of("t", payload=bytes(1000 * 10), id=7))
    for bulk in bulks(document, 10):
        sizes = {len(str(bulk[number].header)) + len(bulk[number].octets) for number in range(len(bulk) - 1)}
        assert len(sizes) <= 1


@pytest.mark.parametrize("size", [100, 255, 256, 1250, 60_000, 70_000])
@pytest.mark.parametrize(("first", "sent"), [(0, 0b1), (0, 0b111), (0, 0b1010), (1, 0b11)])
def test_a_bulk_knows_the_length_of_its_pieces_encodings(size: int, first: int, sent: int) -> None:
    octets = (first * MAX_PIECES + sent.bit_length()) * size - 70  # the last piece is shorter
    document = Document(Event.of("t", payload=bytes(octets - len(Document(Event("t")).octets(0, 99))), id=7))
    bulk = Chunk(header(document, size, first, sent), document)
    codec = ENTRY.codec()
    assert bulk.sizes(codec.size) == (len(codec.encode(bulk[0])), len(codec.encode(bulk[len(bulk) - 1])))


@given(st.integers(0, 1 << 200))
def test_masks_of_a_document_and_of_its_bulks(pieces: int) -> None:
    assert joined(masks(pieces)) == pieces
    assert sum(mask << chunk * MAX_PIECES for chunk, mask in chunks(pieces)) == pieces


def test_what_is_no_document_is_none() -> None:
    for octets in (b"", b"\0\0\0", b"\0\0\0\5abcde", b"\xff\xff\xff\xffabc", b"\0\0\0\2\x92\xa1"):
        partials: Partials[int, Document] = Partials(1, 1000)
        partial = partials.add(7, Cut(len(octets), 100), 0, octets)
        assert partial is not None
        assert assembled(7, partial) is None


@pytest.mark.parametrize("listed", [0, 1, 15, 16, 300])
def test_an_announce_knows_the_length_of_its_encoding(listed: int) -> None:
    catalog = tuple(
        Document(Event.of("cd", {"n": number, "topic": "jazz" * (number % 9)}, bytes(number), number)).descriptor
        for number in range(1, listed + 1)
    )
    announce = Announce(1, 0, 2, (), (5,), EVERYTHING, (1, 2), (), catalog, tuple(range(listed)), ())
    codec = ENTRY.codec()
    assert codec.size(announce) == len(codec.encode(announce))


# --- Signed documents -----------------------------------------------------------------------------------------------


def signed(payload: bytes, block: int) -> Event:
    return Publication(Event.of("t", {"a": 1}, payload, 7)).to_be_signed(5, block).event


def pieces_of(document: Document, size: int, changed: dict[int, bytes] | None = None) -> Partial[Document]:
    """All pieces of a document, some of them changed."""
    partial: Partial[Document] = Partial(Cut(document.length, size))
    for number in range(partial.cut.pieces):
        partial.octets[number] = (changed or {}).get(number) or document.octets(*partial.cut.span(number))
    partial.have = partial.cut.all
    return partial


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 1000])
def test_a_signed_document_is_put_together_as_it_was_and_its_head_says_its_root(length: int) -> None:
    event = signed(bytes(range(256))[:1] * length, 100)
    document = Document(event)
    partial = pieces_of(document, 100)
    whole = assembled(7, partial)
    assert whole is not None
    assert whole.event == event
    listed = described(7, partial)
    assert listed == document.descriptor
    assert listed is not None
    bare = listed.event.signed
    assert bare is not None
    assert (bare.payload, len(bare.root)) == (b"", 32)
    assert false_pieces(7, partial) == 0


def test_a_false_piece_is_found_with_those_that_share_a_block_with_it() -> None:
    document = Document(signed(bytes(1000), 100))
    cut = Cut(document.length, 100)
    for number in range(cut.pieces):
        octets = document.octets(*cut.span(number))
        false = pieces_of(document, 100, {number: octets[:-1] + b"!"})
        head = false.prefix()[: 4 + int.from_bytes(false.prefix()[:4], "big")]
        found = false_pieces(7, false)
        if number * 100 + 99 < len(head):
            continue  # the head itself is false: its signature shows that
        assert found >> number & 1
        assert found.bit_count() <= 3
        assert found & ~(0b111 << max(0, number - 1)) == 0


def test_of_a_document_in_part_the_blocks_that_are_here_are_judged() -> None:
    document = Document(signed(bytes(1000), 100))
    cut = Cut(document.length, 100)
    for missing in range(3, cut.pieces):
        partial = pieces_of(document, 100, {cut.pieces - 2: b"!" * 100})
        assert false_pieces(7, partial) >> cut.pieces - 2 & 1
        del partial.octets[missing]
        partial.have &= ~(1 << missing)
        found = false_pieces(7, partial)
        assert not found >> missing & 1
        assert found or missing >= cut.pieces - 3
        assert found & ~(0b111 << cut.pieces - 3) == 0


def test_the_pieces_of_a_head() -> None:
    document = Document(signed(bytes(1000), 100))
    partial = pieces_of(document, 100)
    head = 4 + int.from_bytes(partial.prefix()[:4], "big")
    assert pieces_of_head(partial) == document.head_pieces(partial.cut) == (1 << -(-head // 100)) - 1
    partial.octets[0] = b"\xff" * 100
    assert pieces_of_head(partial) == partial.cut.all  # by the length that it claims


def test_a_head_has_neither_payload_nor_root() -> None:
    event = signed(b"payload", 0)
    assert event.signed is not None
    for change in ({"payload": b"x"}, {"root": bytes(32)}):
        body = msgspec.structs.replace(event.signed, **({"payload": b""} | change))
        described_as = msgspec.msgpack.encode(("t", {"a": (1,)}, body, bytes(16)))
        octets = len(described_as).to_bytes(4, "big") + described_as
        partial: Partial[Document] = Partial(Cut(len(octets), len(octets)))
        partial.octets[0], partial.have = octets, 1
        with pytest.raises(ContentError, match="twice"):
            described(7, partial)
