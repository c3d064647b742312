"""Summaries and digests: the paper's example, each structure by hand, and never a false negative."""

import math
import random
from collections.abc import Callable
from hashlib import blake2b
from itertools import chain
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content.strategies import attribute_names, conjunctions, events, filters, strings
from content.test_xpath import BACH, DAVIS, EVANS, fig_2
from roamcast.content.event import Event, Scalar
from roamcast.content.filter import EVERYTHING, NOTHING, Filter
from roamcast.content.summary import association, hashing
from roamcast.content.summary.arithmetic import MAX_EQUALITIES, MAX_RANGES, Arithmetic
from roamcast.content.summary.bloom import MAX_BITS, VectorBuilder, contains
from roamcast.content.summary.columns import BY_NAME, MAX_COLUMNS, Columns
from roamcast.content.summary.digest import MAX_ELEMENTS, MAX_VALUES, Affixes, EventDigest
from roamcast.content.summary.element import Element, ElementCondition
from roamcast.content.summary.entry import MAX_ROWS, TypeEntry
from roamcast.content.summary.params import DEFAULTS, MAX_BUDGET, SummaryParams
from roamcast.content.summary.strings import Strings, Text
from roamcast.content.summary.summary import MAX_TYPES, Summary
from roamcast.content.text import parse_filter
from roamcast.content.xml import Schema
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError

# The paper's example: Figs. 2 and 3, section IV

FIG_3 = {
    "R1": '/CD[category="jazz"][composer="Evans"]',
    "R2": '/CD[category="jazz"][composer="Davis"]',
    "R3": '/CD[category="pop"]',
    "R4": '/CD[category="classic"][composer="Bach"]',
    "R5": '/CD[category="classic" and price<"20"]',
}
CD = 0xBB0B98F4
"""printf CD | b2sum -l 32"""

CD_COLUMNS = Columns(("category", "composer", "price"))
JAZZ_BY_BACH = fig_2("004", "2004", "jazz", "Bach", "18.00")
CHEAP_BACH = fig_2("005", "2004", "classic", "Brahms", "19.99")


REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What the codec of messages catches."""

T = TypeVar("T", Summary, EventDigest)


def decoded(shape: type[T], encoded: bytes) -> T:
    return msgspec.msgpack.decode(encoded, type=shape)


def wanted(*receivers: str, params: SummaryParams = DEFAULTS, columns: Columns = BY_NAME) -> Summary:
    return Summary.of([filter_from_xpath(FIG_3[receiver]) for receiver in receivers], params, columns)


@pytest.mark.parametrize("columns", [BY_NAME, CD_COLUMNS], ids=["by name", "columns"])
@pytest.mark.parametrize(
    ("receiver", "passing"),
    [("R1", [EVANS]), ("R2", [DAVIS]), ("R3", []), ("R4", [BACH]), ("R5", [])],
)
def test_the_papers_receivers(receiver: str, passing: list[Event], columns: Columns) -> None:
    summary = wanted(receiver, columns=columns)
    assert [event for event in (EVANS, DAVIS, BACH) if summary.passes(EventDigest.of(event, columns))] == passing


def test_the_papers_four_structures() -> None:
    (entry,) = wanted("R1", "R2", "R4", "R5", columns=CD_COLUMNS).entries
    assert entry.type == CD  # ETN
    assert entry.rows == bytes((0b011, 0b101))  # EAL: category with composer (once), category with price
    category, composer, price = entry.elements
    assert (category.key, composer.key, price.key) == (0, 1, 2)
    assert price.aec == Arithmetic(ranges=(None, 20))  # AEC
    assert price.sec is None
    assert category.aec is None
    assert composer.sec is not None  # SEC: three vectors, of which those in use have m bits
    assert [len(vector) for vector in (composer.sec.equal, composer.sec.prefix, composer.sec.suffix)] == [32, 0, 0]


def test_equalities_stand_beside_ranges() -> None:
    """The second array of an AEC is for values that are "not in the existing sub-ranges"."""
    (entry,) = Summary.of(
        [parse_filter("p >= 10 and p <= 20 or p = 10 or p = 20 or p = 30 or p = 9 or p = 30.0")]
    ).entries
    assert entry.elements[0].aec == Arithmetic(ranges=(10, 20), after=0b10, equalities=(9, 30))


def test_rows_recombine_unless_values_are_associated() -> None:
    assert wanted("R1", "R4").passes(EventDigest.of(JAZZ_BY_BACH))
    associated = wanted("R1", "R4", params=SummaryParams(association=True))
    assert not associated.passes(EventDigest.of(JAZZ_BY_BACH))
    assert associated.passes(EventDigest.of(EVANS))
    assert associated.passes(EventDigest.of(BACH))


def test_rows_keep_elements_together() -> None:
    """R4 and R5 share the category. Without rows it alone is enough."""
    both = wanted("R4", "R5")
    assert both.passes(EventDigest.of(CHEAP_BACH))
    assert not both.passes(EventDigest.of(fig_2("006", "2004", "classic", "Brahms", "20")))
    assert wanted("R4", "R5", params=SummaryParams(use_eal=False)).passes(
        EventDigest.of(fig_2("006", "2004", "classic", "Brahms", "20"))
    )


def test_columns_come_from_a_schema() -> None:
    schema = Schema.from_xsd(
        """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
          <xs:element name="CD"><xs:complexType><xs:sequence>
            <xs:element name="category" type="xs:string"/>
            <xs:element name="info"><xs:complexType><xs:sequence>
              <xs:element name="label" type="xs:string"/>
            </xs:sequence><xs:attribute name="year" type="xs:int"/></xs:complexType></xs:element>
            <xs:element name="part" type="part" minOccurs="0"/>
          </xs:sequence><xs:attribute name="id" type="xs:string"/></xs:complexType></xs:element>
          <xs:complexType name="part"><xs:sequence>
            <xs:element name="title" type="xs:string"/><xs:element name="part" type="part" minOccurs="0"/>
          </xs:sequence></xs:complexType>
        </xs:schema>"""
    )
    names = ("@id", "category", "info/@year", "info/label", "part/title", "part/part/title")
    assert schema.names("CD") == names
    assert schema.names("CD", most=2) == names[:2]
    assert [Columns(names).key(name) for name in ("info/label", "@id")] == [3, 0]
    with pytest.raises(ContentError, match="no root element 'LP'; it has CD"):
        schema.names("LP")


# What passes, by hand. Vectors are large, so that nothing collides.

LARGE = SummaryParams(bits=MAX_BITS, hashes=4)
BIG = 2**53


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        ("p < 20", [19.99, -math.inf, 0], [20, 20.0, 21, "19", True]),
        ("p <= 20", [20, 20.0], [20.000001, 21]),
        ("p > 20", [20.000001, math.inf], [20, 19]),
        ("p >= 20", [20], [19.999]),
        ("p > 10 and p <= 20", [11, 20], [10, 21]),
        ("p = 18", [18, 18.0], [17, 18.5, "18", True]),
        (f"p = {BIG + 1}", [BIG + 1], [float(BIG), BIG, BIG + 2]),
        ("p = 0", [0, -0.0], [1, False]),
        ("p < 10 or p > 20 or p = 15", [9, 15, 21], [10, 14, 16, 20]),
        ("p = 15 and p < 20", [15], [14, 16]),
        ("p = 1 and q = 1", [], [1]),
        ('p = "jazz"', ["jazz"], ["jaz", "jazzy", "", 1]),
        ('p = ""', [""], ["a", 0, False]),
        ('p ^= "jazz"', ["jazz", "jazzy"], ["jaz", "xjazz", 1]),
        ('p ^= "jazz rock"', ["jazz rock", "jazz roc"], ["jazz ro", "jazz"]),  # eight characters are kept
        ('p $= "ers"', ["Members", "rs"], ["sr", "s", ""]),  # two are kept
        ('p ^= "ja" and p $= "zz-rock"', ["xxrock"], ["ja"]),  # the longer is kept
        ('p = "jazz" and p ^= "ja"', ["jazz"], ["ja"]),
        ("p = true", [True], [False, 1, "true"]),
        ("p != true", [False], [True, 0]),
        ('p = "x" or p = 1 or p = true', ["x", 1, True], ["y", 2, False]),
        # No structure holds these: the element has to be there.
        ("exists p", [1, "x", False], []),
        ("p != 1", [1, "x"], []),
        ('p *= "a"', ["b", 1], []),
        ('p > "a"', ["a", 1], []),
        ('p ^= ""', ["a", 1], []),
        # But beside one that is held they do no harm.
        ("p != 7 and p < 10", [9, 7], [11, "x"]),
    ],
)
def test_what_passes(text: str, passing: list[Scalar], failing: list[Scalar]) -> None:
    summary = Summary.of([parse_filter(text)], LARGE)
    answers = {value: summary.passes(EventDigest.of(Event.of("t", {"p": [value]}))) for value in passing}
    assert all(answers.values()), answers
    refused = [value for value in failing if summary.passes(EventDigest.of(Event.of("t", {"p": [value]})))]
    assert refused == []
    assert not summary.passes(EventDigest.of(Event.of("t", {"q": 1})))


@pytest.mark.parametrize(
    ("text", "values", "passes"),
    [
        ("p >= 1 and p <= 5", [0, 9], True),  # each value satisfies one of the two
        ("p >= 1 and p <= 5", [6, 9], False),
        ("p < 3 and p > 5", [2, 7], True),
        ("p < 3 and p > 5", [1, 2], False),
        ("p < 3 and p > 5", [4], False),
        ("p < 5 and p >= 5", [4, 5], True),
        ("p < 5 and p >= 5", [5, 6], False),
        ("p >= 5 and p <= 5", [4, 6], True),
        ("p = 5", [4, 6], False),  # one constraint: one value has to satisfy it
        ("p = 1 and p = 2", [2, 1], True),
        ('p = "a" and p = 1', ["a", 1], True),
        ('p = "a"', ["b", "a"], True),
        ('p = "a"', ["b", "c"], False),
        ("p = true", [False, True], True),
        ("p = true", [1, True], True),  # Python takes them for equal
        ("p = 0", [False, 0], True),
        ('p = "a"', [f"b{number}" for number in range(MAX_VALUES + 1)], True),  # too many to list: unknown
    ],
)
def test_several_values(text: str, values: list[Scalar], passes: bool) -> None:
    event = Event.of("t", {"p": values})
    assert Summary.of([parse_filter(text)], LARGE).passes(EventDigest.of(event)) is passes
    assert passes or not parse_filter(text).matches(event)


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        ('type = "a"', ["a"], ["b", ""]),
        ('type = "a" or type = "b"', ["a", "b"], ["ab"]),
        ("true", ["a", ""], []),
        ('type ^= "a"', ["a", "b"], []),  # other constraints on the type are not kept
        ('type = "a" and type = "b"', [], ["a", "b"]),
        ('type = "ab" and type ^= "b"', [], ["ab", "b"]),
        ("type = 1", [], ["1", ""]),
        ("type > 1", [], ["1", "2"]),
        ("false", [], ["a"]),
    ],
)
def test_types(text: str, passing: list[str], failing: list[str]) -> None:
    summary = Summary.of([parse_filter(text)])
    assert [name for name in passing if not summary.passes(EventDigest.of(Event.of(name)))] == []
    assert [name for name in failing if summary.passes(EventDigest.of(Event.of(name)))] == []


def test_a_filter_without_a_type_applies_to_every_type() -> None:
    summary = Summary.of([parse_filter('type = "a" and p = 1'), parse_filter("p = 2")])
    passing = [(name, p) for name in "ab" for p in (1, 2) if summary.passes(EventDigest.of(Event.of(name, {"p": p})))]
    assert passing == [("a", 1), ("a", 2), ("b", 2)]
    assert Summary.of([parse_filter('type = "a" and p = 1'), EVERYTHING]).entries == (TypeEntry(None),)


def test_affixes_that_a_digest_does_not_carry_pass() -> None:
    summary = Summary.of([parse_filter('p ^= "ja" or q $= "zz" or r = "x"')])
    p, q = BY_NAME.key("p"), BY_NAME.key("q")
    assert summary.affixes == Affixes(frozenset({p}), frozenset({q}))
    for attribute, value in (("p", "rock"), ("q", "rock"), ("r", "rock")):
        event = Event.of("t", {attribute: value})
        assert not summary.passes(EventDigest.of(event))
        assert not summary.passes(EventDigest.of(event, affixes=summary.affixes))
        assert summary.passes(EventDigest.of(event, affixes=Affixes())) is (attribute != "r")


def test_an_association_of_several_values() -> None:
    summary = Summary.of(
        [parse_filter('a = "x" and b = 1'), parse_filter('a = "y" and b = 2')], SummaryParams(association=True)
    )
    assert summary.passes(EventDigest.of(Event.of("t", {"a": ["z", "x"], "b": [2.0, 1.0]})))
    assert not summary.passes(EventDigest.of(Event.of("t", {"a": "x", "b": 2})))
    # Too many combinations to look up.
    assert summary.passes(EventDigest.of(Event.of("t", {"a": ["x", *map(str, range(4))], "b": [*range(2, 6)]})))


def test_an_association_of_ranges_and_affixes() -> None:
    """Evans in the fifties and Bach in the eighties do not make Bach in the fifties."""
    filters = [
        parse_filter('composer = "Evans" and year >= 1958 and year <= 1961'),
        parse_filter('composer = "Bach" and year > 1980 and year < 1982'),
        parse_filter('title ^= "Kind" and label $= "bia" and year = 1959'),
        parse_filter('title ^= "Toccata" and label $= "non" and price < 20'),
    ]
    plain, associated = Summary.of(filters), Summary.of(filters, SummaryParams(association=True))

    def passing(**values: Scalar) -> list[bool]:
        digest = EventDigest.of(Event.of("t", values))
        return [summary.passes(digest) for summary in (plain, associated)]

    assert passing(composer="Evans", year=1959) == passing(composer="Bach", year=1981.5) == [True, True]
    assert passing(composer="Bach", year=1959) == [True, False]
    assert passing(title="Kind of Blue", label="Columbia", year=1959) == [True, True]
    assert passing(title="Toccata", label="Columbia", year=1959) == [True, False]
    assert passing(title="Toccata", label="Nonon", price=5) == [True, True]
    assert passing(title="Kind of Blue", label="Nonon", price=5) == [True, False], "price has no lower bound"
    several = EventDigest.of(Event.of("t", {"composer": "Bach", "year": [1959, 1985]}))
    assert associated.passes(several), "numbers may satisfy two bounds together"
    bare = EventDigest.of(Event.of("t", {"title": "Toccata", "label": "Columbia", "year": 1959}), affixes=Affixes())
    assert associated.passes(bare), "the digest says nothing of affixes"


finite = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=3, max_size=3), st.booleans(), st.booleans())
def test_a_number_in_a_range_is_in_one_of_its_places(numbers: list[int | float], after: bool, before: bool) -> None:
    low, inside, high = sorted(numbers)
    found = association.wanted(ElementCondition(range=((low, int(after)), (high, int(before)))))
    if found is None:
        assert max(-low, high) > 2.0**93, "only far from 0"
        return
    assert len(found.tokens) <= 2
    (place,) = association.known((inside,), found.step) or (b"",)
    assert place in found.tokens


@pytest.mark.parametrize(("value", "passes"), [(0, True), (0.0, True), (-0.0, True), (math.inf, False)])
def test_zero_and_infinity_have_their_places(value: float, passes: bool) -> None:
    """A range that is narrower than any grid, and a number beyond all grids."""
    narrow = parse_filter("t = 1 and v < 1e-300 and v > -1e-300")
    summary = Summary.of([narrow, parse_filter("v > 100 and u = 2")], SummaryParams(association=True))
    event = Event.of("t", {"t": 1, "v": value})
    assert narrow.matches(event) == passes
    assert summary.passes(EventDigest.of(event)) == passes


# Hashes, which every machine must agree on. The expected ones come from `printf ... | b2sum -l 32`.


def test_hashes_are_blake2b() -> None:
    assert hashing.type_hash("CD") == CD
    assert hashing.string_hash("jazz") == bytes.fromhex("a9ab2948")
    assert hashing.prefix_hashes("ja") == blake2b(b"j", digest_size=2).digest() + bytes.fromhex("810c")
    assert hashing.suffix_hashes("ja")[2:] == bytes.fromhex("810c")
    assert BY_NAME.key("info/label") == 0x7F00A51B | 1 << 31


def test_a_digest_and_a_summary_byte_by_byte() -> None:
    """So that what is stored or sent today is understood tomorrow."""
    digest = EventDigest.of(fig_2("001", "1999", "jazz", "Evans", "18.00"), CD_COLUMNS, Affixes())
    assert digest.present == bytes((0b111,))
    assert digest.values[0] == (bytes.fromhex("a9ab2948"),)
    assert digest.values[2] == (18,)
    summary = Summary.of([parse_filter('type = "CD" and p > 20 and p <= 30 or type = "CD" and exists p')])
    key = BY_NAME.key("p").to_bytes(4, "big")
    assert (
        msgspec.msgpack.encode(summary)
        == (
            b"\x93"  # entries, hashes, columns
            b"\x91\x94\xce\xbb\x0b\x98\xf4"  # one entry: the type,
            b"\x92"  # two elements:
            b"\x93\xce" + key + b"\xc0\xc0"  # one that must only be there,
            b"\x93\xce" + key + b"\x94\x92\x14\x1e\x03\x90\x00\xc0"  # one from just after 20 to just after 30;
            b"\xc4\x02\x01\x02\xc0"  # two rows, no association
            b"\x03\x00"
        )
    )


def test_the_rows_of_an_association_byte_by_byte() -> None:
    """Two elements, both looked up: one by its value, one on the grid of 4, which is wider than 3."""
    params = SummaryParams(association=True)
    (entry,) = Summary.of([parse_filter('a = "x" and p >= 1 and p <= 4')], params).entries
    steps = {BY_NAME.key("a"): b"\x00", BY_NAME.key("p"): bytes([association.GRID + 2])}
    assert entry.rows == b"\x03\x03" + b"".join(steps[key] for key in sorted(steps))


@pytest.mark.parametrize(("bits", "hashes"), [(256, 3), (512, 4), (1024, 2)])
def test_a_vector_errs_as_often_as_the_formula_says(bits: int, hashes: int) -> None:
    builder = VectorBuilder(bits, hashes)
    for number in range(60):
        builder.add(hashing.string_hash(f"in {number}"))
    vector = builder.build()
    assert all(contains(vector, hashing.string_hash(f"in {number}"), hashes) for number in range(60))
    found = sum(contains(vector, hashing.string_hash(f"out {number}"), hashes) for number in range(10_000))
    assert found / 10_000 == pytest.approx((1 - (1 - 1 / bits) ** (hashes * 60)) ** hashes, rel=0.3)


# Never a false negative

PARTS = {
    "all": SummaryParams(),
    "no EAL": SummaryParams(use_eal=False),
    "no AEC": SummaryParams(use_aec=False),
    "no SEC": SummaryParams(use_sec=False),
    "association": SummaryParams(association=True),
    "no EAL, association": SummaryParams(use_eal=False, association=True),
    "small": SummaryParams(bits=8, hashes=1),
    "tight": SummaryParams(budget=100),
}
column_lists = st.sampled_from([BY_NAME, Columns(("price", "a/b")), Columns(("ü",))])
affix_choices = st.sampled_from([None, Affixes(), Affixes(frozenset({0}), frozenset({1}))])
params = st.builds(
    SummaryParams,
    bits=st.sampled_from([8, 64, 512]),
    hashes=st.integers(1, 4),
    use_eal=st.booleans(),
    use_aec=st.booleans(),
    use_sec=st.booleans(),
    association=st.booleans(),
    budget=st.sampled_from([64, 200, 1000]),
)
# One or more constraints on the attributes of the event at hand: the empty conjunction would hide the others.
narrow_filters = st.lists(conjunctions.filter(bool), min_size=1, max_size=3).map(lambda them: Filter(tuple(them)))
filter_lists = st.lists(narrow_filters | narrow_filters | filters, max_size=4)


def sent(digest: EventDigest) -> EventDigest:
    return decoded(EventDigest, msgspec.msgpack.encode(digest))


@given(filter_lists, events, column_lists, affix_choices)
def test_what_matches_passes(wanted: list[Filter], event: Event, columns: Columns, affixes: Affixes | None) -> None:
    """With each part switched off in turn."""
    digest = sent(EventDigest.of(event, columns, affixes))
    matching = any(filter.matches(event) for filter in wanted)
    for part, params in PARTS.items():
        summary = Summary.of(wanted, params, columns)
        assert decoded(Summary, msgspec.msgpack.encode(summary)) == summary
        assert summary.size <= params.budget
        assert summary.passes(digest) >= matching, part


@given(filter_lists, filter_lists, events, params, params, column_lists, column_lists, affix_choices)
def test_a_union_passes_what_its_parts_pass(
    mine: list[Filter],
    theirs: list[Filter],
    event: Event,
    my_params: SummaryParams,
    their_params: SummaryParams,
    my_columns: Columns,
    their_columns: Columns,
    affixes: Affixes | None,
) -> None:
    """Whatever the parameters and the columns of the parts and of the digest."""
    one, other = Summary.of(mine, my_params, my_columns), Summary.of(theirs, their_params, their_columns)
    union = one.union(other)
    assert union == other.union(one)
    assert union.union(one) == union
    assert decoded(Summary, msgspec.msgpack.encode(union)) == union
    for columns in (my_columns, their_columns):
        digest = sent(EventDigest.of(event, columns, affixes))
        assert union.passes(digest) >= (one.passes(digest) or other.passes(digest))
        assert union.passes(digest) >= any(filter.matches(event) for filter in (*mine, *theirs))


@settings(max_examples=50)
@given(st.lists(filter_lists, max_size=3), st.sampled_from(sorted(set(PARTS) - {"tight"})), st.randoms())
def test_a_union_is_the_summary_of_all_filters(parts: list[list[Filter]], part: str, rng: random.Random) -> None:
    together = list(chain.from_iterable(parts))
    rng.shuffle(together)
    summaries = [Summary.of(wanted, PARTS[part]) for wanted in parts]
    expected = Summary.of(together, PARTS[part])
    assert Summary().union(*summaries) == expected
    one_by_one = Summary()
    for summary in summaries:
        one_by_one = one_by_one.union(summary)
    assert one_by_one == expected


def test_names_whose_hashes_collide_are_one_element() -> None:
    first, second = "n35911", "n121462"
    assert BY_NAME.key(first) == BY_NAME.key(second)
    for params in (SummaryParams(), SummaryParams(association=True)):
        summary = Summary.of([parse_filter(f"{first} = 1 and {second} = 2 and q = 3")], params)
        digest = sent(EventDigest.of(Event.of("t", {first: 1, second: 2, "q": 3})))
        assert summary.passes(digest)
        assert len(digest.values) == 2


def test_different_columns_compare_by_type() -> None:
    digest = EventDigest.of(BACH, CD_COLUMNS)
    assert wanted("R1").passes(digest)
    assert not Summary.of([parse_filter('type = "LP"')]).passes(digest)
    union = wanted("R1").union(wanted("R1", columns=CD_COLUMNS))
    assert union == Summary((TypeEntry(CD),))
    # Without elements there is nothing that columns could mean.
    assert wanted("R1").union(union).entries == (TypeEntry(CD),)
    assert wanted("R1", columns=CD_COLUMNS).union(Summary.of([parse_filter('type = "LP"')])).columns == (
        CD_COLUMNS.fingerprint
    )


# Bounds


def bands(count: int) -> list[Filter]:
    """Ranges with gaps that grow."""
    return [parse_filter(f"p > {number**2} and p < {number**2 + 1}") for number in range(count)]


def test_the_narrowest_gaps_are_closed() -> None:
    filters = bands(MAX_RANGES + 2)
    (entry,) = Summary.of(filters).entries
    (element,) = entry.elements
    assert element.aec is not None
    assert len(element.aec.ranges) == 2 * MAX_RANGES
    assert element.aec.ranges[:4] == (0, 5, 9, 10)  # 0-1, 1-2 and 4-5: the first two gaps are 0 and 2 wide
    assert element.aec.after & 0b1111 == 0b0101


def test_many_equalities_become_ranges() -> None:
    some = Summary.of([Filter.where("p", "=", number * number) for number in range(MAX_EQUALITIES)])
    many = Summary.of([Filter.where("p", "=", number * number) for number in range(200)])
    assert some.passes(EventDigest.of(Event.of("t", {"p": 9})))
    assert not some.passes(EventDigest.of(Event.of("t", {"p": 10})))
    for number in range(200):
        assert many.passes(EventDigest.of(Event.of("t", {"p": number * number})))
    assert many.size < 300


def test_infinite_bounds_are_no_trouble_when_gaps_are_closed() -> None:
    filters = [*bands(40), *(Filter.where("p", sign, way * math.inf) for sign in "<>=" for way in (-1, 1))]
    summary = Summary.of(filters)
    for value in (-math.inf, math.inf, 0.5):
        assert summary.passes(EventDigest.of(Event.of("t", {"p": value})))


def test_too_many_rows_are_given_up() -> None:
    pairs = [(a, b) for a in range(24) for b in range(a)]
    filters = [parse_filter(f"n{a} = 1 and n{b} = 1") for a, b in pairs]
    assert len(filters) > MAX_ROWS
    few, many = Summary.of(filters[:MAX_ROWS]), Summary.of(filters)
    assert few.entries[0].rows
    assert not few.passes(EventDigest.of(Event.of("t", {"n1": 1})))
    assert many.entries[0].rows == b""
    assert many.passes(EventDigest.of(Event.of("t", {"n1": 1})))  # one element is enough now
    assert not many.passes(EventDigest.of(Event.of("t", {"n1": 2})))
    assert few.union(Summary.of(filters[MAX_ROWS:])) == many


def test_elements_that_few_rows_name_are_left_out() -> None:
    filters = [parse_filter(f"common = 1 and n{number} = 1") for number in range(MAX_ELEMENTS + 100)]
    (entry,) = Summary.of(filters, SummaryParams(budget=MAX_BUDGET)).entries
    assert len(entry.elements) == MAX_ELEMENTS
    summary = Summary((entry,))
    assert summary.passes(EventDigest.of(Event.of("t", {"common": 1})))
    assert not summary.passes(EventDigest.of(Event.of("t", {"common": 2, "n1": 1})))
    assert Summary.of([Filter.where(f"n{number}", "=", 1) for number in range(MAX_ELEMENTS + 1)]).entries == (
        TypeEntry(None),
    )


def test_a_budget_costs_the_largest_types_first() -> None:
    large = [parse_filter(f'type = "large" and n{number} = "x"') for number in range(20)]
    small = parse_filter('type = "small" and n = "x"')
    summary = Summary.of([*large, small], SummaryParams(budget=200))
    assert summary.size <= 200
    assert summary.passes(EventDigest.of(Event.of("large")))
    assert not summary.passes(EventDigest.of(Event.of("small")))
    assert Summary.of(large).union(Summary.of([small]), budget=200) == summary
    many = [parse_filter(f'type = "{number}"') for number in range(MAX_TYPES + 1)]
    assert Summary.of(many).entries == (TypeEntry(None),)
    assert len(Summary.of(many[:MAX_TYPES]).entries) == MAX_TYPES


def test_a_digest_of_too_many_elements_leaves_them_open() -> None:
    event = Event.of("t", {f"n{number}": number for number in range(MAX_ELEMENTS + 50)})
    digest = sent(EventDigest.of(event))
    assert len(digest.values) == MAX_ELEMENTS
    for name in event.attributes:
        assert Summary.of([Filter.where(name, "=", event.attributes[name][0])]).passes(digest)


def test_nothing_is_wanted() -> None:
    for summary in (Summary(), Summary.of([]), Summary.of([NOTHING]), Summary().union(Summary())):
        assert summary == Summary()
        assert not summary.passes(EventDigest.of(Event.of("t")))


# Bad input

WHOLE = b"four"


@pytest.mark.parametrize(
    "make",
    [
        lambda: SummaryParams(bits=100),
        lambda: SummaryParams(bits=2 * MAX_BITS),
        lambda: SummaryParams(hashes=0),
        lambda: SummaryParams(budget=10),
        lambda: Summary().union(budget=MAX_BUDGET + 1),
        lambda: Columns([""]),
        lambda: Columns(["\ud800"]),
        lambda: Columns(map(str, range(MAX_COLUMNS + 1))),
        lambda: Arithmetic((1,)),
        lambda: Arithmetic((2, 1)),
        lambda: Arithmetic((1, 3, 2, 4)),
        lambda: Arithmetic((1, None, 2, 3)),
        lambda: Arithmetic((1, 1), 0b01),
        lambda: Arithmetic((1, 2), 0b100),
        lambda: Arithmetic((1, math.nan)),
        lambda: Arithmetic((1, 2**63)),
        lambda: Arithmetic(tuple(range(2 * MAX_RANGES + 2))),
        lambda: Arithmetic(equalities=tuple(range(MAX_EQUALITIES + 1))),
        lambda: Arithmetic(equalities=(2, 1)),
        lambda: Arithmetic(bools=4),
        lambda: Strings(bytes(3)),
        lambda: Strings(bytes(MAX_BITS // 4)),
        lambda: Element(1, Arithmetic()),
        lambda: Element(1, None, Strings()),
        lambda: Element(-1),
        lambda: Element(2**32),
        lambda: TypeEntry(2**32),
        lambda: TypeEntry(1, (), b"\x01"),
        lambda: TypeEntry(1, (Element(1),), b"\x02"),
        lambda: TypeEntry(1, (Element(1),), b"\x00"),
        lambda: TypeEntry(1, (Element(1),), b"\x01" * (MAX_ROWS + 1)),
        lambda: TypeEntry(1, (Element(1),), b"\x01\x02", b""),
        lambda: TypeEntry(1, (Element(1),), b"\x01\x01", b""),
        lambda: TypeEntry(1, (Element(1),), b"\x01\x01\x00\x01", b""),
        lambda: TypeEntry(1, (Element(1),), b"\x01", b"abc"),
        lambda: TypeEntry(1, (Element(2), Element(1))),
        lambda: TypeEntry(1, (Element(1), Element(1))),
        lambda: TypeEntry(1, tuple(Element(key) for key in range(MAX_ELEMENTS + 1))),
        lambda: Summary((TypeEntry(1), TypeEntry(1))),
        lambda: Summary((TypeEntry(1), TypeEntry(None))),
        lambda: Summary(tuple(map(TypeEntry, range(MAX_TYPES + 1)))),
        lambda: Summary((), 0),
        lambda: Summary((), 3, -1),
        lambda: Text(b"abc"),
        lambda: Text(WHOLE, b"x"),
        lambda: Text(WHOLE, None, bytes(10)),
        lambda: EventDigest(-1),
        lambda: EventDigest(1, 0, b"", b"", ((),)),
        lambda: EventDigest(1, 0, b"\x01"),
        lambda: EventDigest(1, 0, bytes(MAX_COLUMNS // 8 + 1)),
        lambda: EventDigest(1, 0, b"", b"\xff", ()),
        lambda: EventDigest(1, 0, b"", b"\x00\x00\x00\x01", ((),)),
        lambda: EventDigest(1, 0, b"", b"\xff\x00\x00\x02\xff\x00\x00\x01", ((), ())),
        lambda: EventDigest(1, 0, b"\x01", b"", ((b"abc",),)),
        lambda: EventDigest(1, 0, b"\x01", b"", ((math.nan,),)),
        lambda: EventDigest(1, 0, b"\x01", b"", ((2**63,),)),
        lambda: EventDigest(1, 0, b"\x01", b"", (tuple(range(MAX_VALUES + 1)),)),
    ],
)
def test_what_cannot_be(make: Callable[[], object]) -> None:
    with pytest.raises(ContentError):
        make()


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\xc1",
        b"\x91",
        b"\x93\xc0\x03\x00",
        msgspec.msgpack.encode(["x"]),
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
    ],
)
def test_what_cannot_be_decoded(encoded: bytes) -> None:
    with pytest.raises(REFUSED):
        decoded(Summary, encoded)
    with pytest.raises(REFUSED):
        decoded(EventDigest, encoded)


changes = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6)


@given(filter_lists, events, params, changes, changes)
def test_changed_bytes_are_refused_or_harmless(
    wanted: list[Filter],
    event: Event,
    params: SummaryParams,
    in_summary: list[tuple[int, int]],
    in_digest: list[tuple[int, int]],
) -> None:
    honest, event_digest = Summary.of(wanted, params), EventDigest.of(event)
    encodings = []
    for honest_value, changed in ((honest, in_summary), (event_digest, in_digest)):
        altered = bytearray(msgspec.msgpack.encode(honest_value))
        for place, byte in changed:
            altered[place % len(altered)] = byte
        encodings.append(bytes(altered))
    try:
        summary, digest = decoded(Summary, encodings[0]), decoded(EventDigest, encodings[1])
    except REFUSED:
        return
    summary.passes(digest)
    union = honest.union(summary)
    assert decoded(Summary, msgspec.msgpack.encode(union)) == union
    assert union.passes(event_digest) >= honest.passes(event_digest)
    assert union.passes(digest) >= summary.passes(digest)


@given(attribute_names, strings)
def test_digests_and_summaries_are_fields_of_messages(name: str, text: str) -> None:
    class Join(msgspec.Struct, frozen=True, array_like=True):
        digest: EventDigest
        summary: Summary

    join = Join(EventDigest.of(Event.of("t", {name: text})), Summary.of([Filter.where(name, "=", text)]))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(join), type=Join) == join
    assert len({join, join}) == 1


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("use_aec", 'type = "CD" and price < 20'),
        ("use_aec", 'type = "CD" and price = 18'),
        ("use_aec", 'type = "CD" and sold = true'),
        ("use_sec", 'type = "CD" and category = "jazz"'),
        ("use_sec", 'type = "CD" and category ^= "ja"'),
        ("use_sec", 'type = "CD" and category $= "zz"'),
    ],
)
def test_a_part_that_is_switched_off_lets_through_what_it_would_have_kept(part: str, text: str) -> None:
    filters = [parse_filter(text)]
    other = EventDigest.of(Event.of("CD", {"price": 22.0, "sold": False, "category": "classic"}))
    bare = EventDigest.of(Event.of("CD", {"title": "x"}))  # has none of the elements: those must still be present
    assert not Summary.of(filters).passes(other)
    off = Summary.of(filters, msgspec.convert({part: False}, SummaryParams))
    assert off.passes(other)
    assert not off.passes(bare)


@pytest.mark.parametrize(("asked", "has"), [("18", 18.0), ("18.0", 18), ("1e3", 1000)])
def test_the_association_takes_a_whole_float_for_the_integer(asked: str, has: Scalar) -> None:
    wanted = parse_filter(f'type = "CD" and category = "jazz" and price = {asked}')
    digest = EventDigest.of(Event.of("CD", {"category": "jazz", "price": has}))
    assert Summary.of([wanted], SummaryParams(association=True)).passes(digest)
