"""The documentation: its links lead somewhere, the files and functions it names exist, and its examples run."""

import re
from pathlib import Path

from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.facts import Decision
from roamcast.protocols.testing import Mesh
from roamcast.units import SECOND

ROOT = Path(__file__).parents[1]
WRITING = ROOT / "docs/writing-a-protocol.md"


def test_the_second_example_of_the_page_on_protocols_runs() -> None:
    blocks = re.findall(r"^```py\n(.*?)^```$", WRITING.read_text(), re.DOTALL | re.MULTILINE)
    page: dict[str, object] = {}
    exec(compile("\n".join(blocks), WRITING, "exec"), page)
    mesh = Mesh(page["ENTRY"], range(3), [(0, 1), (1, 2)])  # type: ignore[arg-type]  # as the page defines it
    mesh[2].subscribe(0, Subscription(1, EVERYTHING))
    mesh.run(until=SECOND)  # beacons
    mesh.cut(0, 1)
    mesh[1].publish(mesh.now, Publication(Event("alarm", id=7)))
    mesh.run(until=mesh.now)
    assert [delivery.hops for delivery in mesh.ports[2].delivered] == [1]
    decided = [(fact.decision, fact.to) for _, fact in mesh.ports[1].facts if isinstance(fact, Decision)]
    assert decided == [("forwarded", 0), ("forwarded", 2), ("given up", 0)]
    document = page["Document"](Event("map", payload=b"x" * 2500, id=9))  # type: ignore[operator]
    assert [len(document[number].content) for number in range(len(document))] == [1024, 1024, 452]
