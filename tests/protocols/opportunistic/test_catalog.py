"""The catalog: what neighbours want and nothing else, against asking every profile about every document."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING, NOTHING, Constraint, Filter, Operator
from roamcast.protocols.opportunistic.cache import Held
from roamcast.protocols.opportunistic.catalog import MAX_CONSTRAINTS, Catalog, Offer, parts
from roamcast.protocols.opportunistic.documents import Document
from roamcast.protocols.opportunistic.messages import MILLISECOND, Listing

JAZZ, BLUES, FOLK = (Filter.where("topic", "=", topic) for topic in ("jazz", "blues", "folk"))


def document(id: int, topic: str = "jazz") -> Held:
    return Held(Document(Event.of("cd", {"topic": topic}, id=id)), 7 * id * MILLISECOND, 0, 0, True, None, 0)


def listed(catalog: Catalog, budget: int = 0) -> list[int]:
    return [held.document.id for held in catalog.fitted(budget)]


def test_only_what_a_neighbour_wants_is_listed() -> None:
    catalog = Catalog("wanted", lifetime=10, neighbours=4)
    first = document(1)
    for held in (first, document(2, "blues"), document(3)):
        catalog.enter(held)
    assert listed(catalog) == []
    catalog.hear(0, 7, JAZZ)
    assert listed(catalog) == [1, 3]
    catalog.enter(document(4, "jazz"))
    catalog.leave(first)
    assert listed(catalog) == [3, 4]
    catalog.hear(5, 8, BLUES)
    catalog.expire(11)  # 7 is gone
    assert listed(catalog) == [2]
    catalog.hear(12, 8, JAZZ)  # it has changed its mind
    assert listed(catalog) == [3, 4]


def test_what_a_neighbour_has_shown_to_have_is_not_listed_for_it() -> None:
    catalog = Catalog("missing", lifetime=10, neighbours=4)
    for id in (1, 2, 3):
        catalog.enter(document(id))
    catalog.hear(0, 7, JAZZ)
    catalog.has(7, (1, 2))
    assert listed(catalog) == [3]
    catalog.hear(0, 8, JAZZ)
    catalog.has(8, (2, 3))
    assert sorted(listed(catalog)) == [1, 3]  # 1 for 8, 3 for 7; both have 2
    catalog.has(9, (3,))  # who is that?
    assert sorted(listed(catalog)) == [1, 3]


def test_what_did_not_fit_goes_first_next_time() -> None:
    catalog = Catalog("wanted", lifetime=10, neighbours=4)
    for id in range(1, 8):
        catalog.enter(document(id))
    catalog.hear(0, 9, EVERYTHING)
    room = 3 * document(1).document.listed
    said = [listed(catalog, room) for _ in range(3)]
    assert said == [[1, 2, 3], [4, 5, 6], [7, 1, 2]]
    assert listed(catalog, 7 * document(1).document.listed) == [1, 2, 3, 4, 5, 6, 7]


def test_a_profile_with_very_many_constraints_is_taken_for_one_that_wants_everything() -> None:
    catalog = Catalog("wanted", lifetime=10, neighbours=4)
    catalog.enter(document(1))
    catalog.hear(0, 7, Filter(tuple((Constraint("n", Operator.EQ, n),) for n in range(MAX_CONSTRAINTS))))
    assert listed(catalog) == []
    catalog.hear(1, 7, Filter(tuple((Constraint("n", Operator.EQ, n),) for n in range(MAX_CONSTRAINTS + 1))))
    assert listed(catalog) == [1]


def test_a_catalog_in_parts_has_every_document_once_and_no_part_is_too_long() -> None:
    documents = [document(id) for id in range(1, 20)]
    size = documents[0].document.listed
    cut = parts(documents, 2 * size + 1, 5 * size)
    assert [len(part) for part in cut] == [2, 5, 5, 5, 2]
    assert [held for part in cut for held in part] == documents
    assert parts([], 10, 10) == [[]]
    assert [len(part) for part in parts(documents[:3], 0, 1)] == [0, 1, 1, 1]  # one that is too long goes alone


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(("enter", "leave", "hear", "expire")),
        st.integers(1, 8),
        st.sampled_from(("jazz", "blues", "folk")),
        st.sampled_from((JAZZ, BLUES, FOLK, JAZZ | FOLK, EVERYTHING, NOTHING)),
    ),
    max_size=40,
)


@given(CHANGES)
@settings(deadline=None)
def test_it_lists_what_asking_everybody_about_everything_would(
    changes: list[tuple[str, int, str, Filter]],
) -> None:
    catalog = Catalog("wanted", lifetime=3, neighbours=3)
    here: dict[int, Held] = {}
    wants: dict[int, tuple[int, Filter]] = {}
    for now, (change, number, topic, filter) in enumerate(changes):
        if change == "enter" and number not in here:
            here[number] = document(number, topic)
            catalog.enter(here[number])
        elif change == "leave" and number in here:
            catalog.leave(here.pop(number))
        elif change == "hear":
            wants.pop(number, None)
            if len(wants) == 3:
                del wants[min(wants, key=lambda node: wants[node][0])]
            wants[number] = now, filter
            catalog.hear(now, number, filter)
        else:
            wants = {node: known for node, known in wants.items() if now - known[0] <= 3}
            catalog.expire(now)
        expected = {
            id for id, held in here.items() if any(filter.matches(held.document.event) for _, filter in wants.values())
        }
        assert sorted(listed(catalog)) == sorted(expected)
        assert catalog.profiles <= 6
        offer = catalog.everything_wanted()
        ids = [descriptor.event.id for descriptor in offer.listing.catalog]
        assert sorted(ids) == sorted(expected)
        assert offer == Offer(offer.listing, [7 * id for id in ids], [None] * len(ids) if offer.expires else [])
        assert offer.listing.contents == Listing.of(offer.listing.catalog).contents
        assert offer.listing.size == Listing.of(offer.listing.catalog).size


def test_the_same_is_announced_as_the_same_until_something_changes() -> None:
    catalog = Catalog("wanted", lifetime=10, neighbours=4)
    first = document(1)
    catalog.enter(first)
    catalog.enter(document(2, "blues"))
    catalog.hear(0, 7, JAZZ)
    offer = catalog.everything_wanted()
    catalog.hear(1, 8, JAZZ)  # nobody new wants anything else
    assert catalog.everything_wanted() is offer
    catalog.hear(2, 9, BLUES)
    assert [descriptor.event.id for descriptor in catalog.everything_wanted().listing.catalog] == [1, 2]
    catalog.leave(first)
    assert [descriptor.event.id for descriptor in catalog.everything_wanted().listing.catalog] == [2]
    catalog.enter(document(3, "folk"))  # in the place of jazz, which nobody must take for wanted
    assert [descriptor.event.id for descriptor in catalog.everything_wanted().listing.catalog] == [2]
    catalog.enter(first)
    assert [descriptor.event.id for descriptor in catalog.everything_wanted().listing.catalog] == [2, 1]
