"""The documentation as a site: what `make docs` checks beside Sphinx."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SITE = Path(__file__).parents[1] / "docs/site"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


def test_docstrings_are_shown_as_they_stand() -> None:
    lines = ["Sets `a_b`, *not* c_.", "", "Rules:", "- one,", "  two", "- three", "Then:", "    x = 1", "    y = 2"]
    loaded("docstrings").as_rst(None, "", "", None, None, lines)
    assert lines == [
        *(r"Sets ``a_b``\ , \*not\* c\_.", "", r"Rules\:", "", "- one, two", "", "- three", "", r"Then\:", ""),
        *("::", "", "        x = 1", "        y = 2", ""),
    ]


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><img src="d.png">'
        '<a href="https://example.org/x">4</a><a href="#top">5</a><p id="top">'
    )
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert sorted(loaded("build").dead_links(tmp_path)) == ["a.html: b.html#gone", "a.html: c.html", "a.html: d.png"]


def test_pages_link_to_the_reference_and_to_files(tmp_path: Path) -> None:
    loaded("build").lay_out(tmp_path)
    choose = (tmp_path / "docs/choose.md").read_text()
    assert "[`campaign/decide/race.py`](../api/roamcast.campaign.decide.md#roamcastcampaigndeciderace)" in choose
    writing = (tmp_path / "docs/writing-a-protocol.md").read_text()
    assert "[`examples/my_gossip.py`](../files/examples/my_gossip.py.md)" in writing
    assert "class " in (tmp_path / "files/examples/my_gossip.py.md").read_text()


def test_every_page_has_a_place_in_the_contents(tmp_path: Path) -> None:
    build = loaded("build")
    build.lay_out(tmp_path)
    listed = {name for names in build.PARTS.values() for name in names}
    files = tmp_path / "files"
    pages = (page for page in tmp_path.rglob("*.md") if not page.is_relative_to(files))
    assert {page.relative_to(tmp_path).with_suffix("").as_posix() for page in pages} - listed == {"index"}


def test_every_command_is_in_the_reference() -> None:
    page = loaded("build").commands_page()
    for heading in ("## roamcast run", "### roamcast traces import"):
        assert f"\n{heading}\n" in page
    listed = page.partition("Simulate:")[2].partition("```")[0]
    assert "campaign  Run experiments, measure them, and write a report.\n" in listed
    assert "..." not in listed  # as click cuts a line that is too long


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="Sphinx is not installed: make docs brings it")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SITE / "build.py", tmp_path / "site"], check=True)
    assert "roamcast" in (tmp_path / "site/html/index.html").read_text()
    assert (tmp_path / "site/html/searchindex.js").exists()
