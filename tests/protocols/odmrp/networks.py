"""What tests of ODMRP share: the paper's events and filters, and meshes that have settled."""

from typing import Any

from roamcast.content.event import Event, Scalar, event_id
from roamcast.content.filter import Filter
from roamcast.content.subscription import Publication, Subscription
from roamcast.content.text import parse_filter
from roamcast.protocols.api import Node
from roamcast.protocols.odmrp.broker import ENTRY
from roamcast.protocols.testing import Mesh
from roamcast.units import SECOND

Links = list[tuple[Node, Node]]

SOURCE: Node = 0
R1, R2, R3, R4, R5 = range(5, 10)

# Figure 4 as a tree: the source, four forwarders, five receivers.
#          0
#        1   2
#      3  R3 R4 4
#    R1 R2      R5
TREE: Links = [(0, 1), (0, 2), (1, 3), (2, 4), (3, R1), (3, R2), (1, R3), (2, R4), (4, R5)]

# Figure 3. It prints six filters for five receivers; here R1 has the first and R2 the jazz, the second left out.
FILTERS: dict[Node, str] = {
    R1: 'type = "CD" and category = "jazz" and composer = "Evans"',
    R2: 'type = "CD" and category = "jazz"',
    R3: 'type = "CD" and category = "pop"',
    R4: 'type = "CD" and category = "classic" and composer = "Bach"',
    R5: 'type = "CD" and category = "classic" and price < 20',
}

# Figure 2.
CONTENTS: tuple[dict[str, Scalar], ...] = (
    {"category": "jazz", "composer": "Evans", "price": 18.0},
    {"category": "jazz", "composer": "Davis", "price": 10.0},
    {"category": "classic", "composer": "Bach", "price": 22.0},
)

# Which receivers want which of the three.
WANTED = ({R1, R2}, {R2}, {R4})


def filter_of(node: Node) -> Filter:
    return parse_filter(FILTERS[node])


def cd(number: int, publisher: Node = SOURCE) -> Publication:
    """The number-th message, from 1: the three of Figure 2 in turn."""
    return Publication(Event.of("CD", CONTENTS[(number - 1) % 3], id=event_id(publisher, number)))


def figure_4(links: Links = TREE, seed: int = 0, **parameters: Any) -> Mesh:  # noqa: ANN401  # a protocol's
    mesh = Mesh(ENTRY, range(10), links, parameters, seed=seed)
    for node in FILTERS:
        mesh[node].subscribe(0, Subscription(node, filter_of(node)))
    return mesh


def publish(mesh: Mesh, numbers: range, interval: float = 0.5) -> None:
    """The messages of these numbers, one by one, and time for the last to arrive."""
    for number in numbers:
        mesh[SOURCE].publish(mesh.now, cd(number))
        mesh.run(mesh.now + round(interval * SECOND))
    mesh.run(mesh.now + SECOND)


def received(mesh: Mesh, node: Node) -> list[int]:
    """The serials of the events delivered at a node, in order."""
    return [delivery.event.id & 0xFFFFFFFF for delivery in mesh.ports[node].delivered]


def sent(mesh: Mesh, kind: type, since: int = 0) -> list[Node]:
    """Who sent messages of a class, in order."""
    return [node for time, node, message in mesh.log if type(message) is kind and time >= since]
