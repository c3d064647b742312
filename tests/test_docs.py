"""The documentation: its links lead somewhere, the files and functions it names exist, and its examples run."""

import ast
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from roamcast.cli.main import main
from roamcast.content.event import Event
from roamcast.content.filter import EVERYTHING
from roamcast.content.subscription import Publication, Subscription
from roamcast.protocols.facts import Decision
from roamcast.protocols.testing import Mesh
from roamcast.sim.core.compilation import load_kernel
from roamcast.sim.mobility import ScenarioError
from roamcast.sim.scenario.scenario import check
from roamcast.units import SECOND

ROOT = Path(__file__).parents[1]
WRITING = ROOT / "docs/writing-a-protocol.md"
ARCHITECTURE = ROOT / "docs/architecture.md"
PICTURES = ROOT / "docs/pictures"
FOUND = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("studies/**/*.md"))
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in FOUND)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


MADE = ("docs/ledger/verdicts.md", "docs/ledger/readings.md", "docs/measures/table.md", "studies/map/tables.md")
"""Pages that a command makes from data: linked to, not read through."""


def test_the_pages_to_read_stay_within_60000_words() -> None:
    """Everything that somebody has to read, and keep true. Cut before you add."""
    read = [name for name in PAGES if name.startswith(("docs/", "studies/")) and name not in MADE]
    assert len(read) > 25
    assert sum(len((ROOT / name).read_text(encoding="utf-8").split()) for name in read) <= 60_000


@pytest.mark.parametrize("name", MADE)
def test_a_made_page_says_what_makes_it(name: str) -> None:
    head = (ROOT / name).read_text(encoding="utf-8").split("\n## ")[0]
    command = re.search(r"Made by `python (?:-m (\S+)|(\S+))`", head)
    assert command is not None
    assert (ROOT / (command[2] or f"{command[1].replace('.', '/')}.py")).is_file()


def test_readme_fits_on_two_screens_before_the_protocols() -> None:
    before = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Protocols\n")[0]
    assert before.count("\n") <= 100


def anchors(page: Path) -> set[str]:
    """What a link can name in a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{name}: {link}"
        assert not anchor or anchor in anchors(place), f"{name}: {link}"


COMMAND = re.compile(r"^(?:    |\$ |)(?:sudo )?(?:\.venv/bin/)?(roamcast [a-z].*?)(?:   .*)?$", re.MULTILINE)


def verb_of(words: list[str]) -> click.Command:
    """The command that a line calls."""
    group: click.Command = main
    context = click.Context(main)
    for word in words:
        if not isinstance(group, click.Group):
            break
        found = group.get_command(context, word)
        assert found is not None, f"roamcast has no command {word!r}"
        group = found
    return group


@pytest.mark.parametrize("name", PAGES)
def test_every_command_exists_with_the_options_and_files_it_names(name: str) -> None:
    for line in COMMAND.findall((ROOT / name).read_text()):
        words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
        verb = verb_of(words)
        known = {option for parameter in verb.params for option in parameter.opts} | {"--help"}
        for word in words:
            if word.startswith("--"):
                assert word in known, f"{name}: {line}"
            elif word.startswith(("examples/", "src/")):
                assert (ROOT / word).exists(), f"{name}: {line}"


def defined(file: Path) -> set[str]:
    """The functions and classes of a module, and the methods of its classes as `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


def test_the_walks_name_functions_that_exist() -> None:
    rows = re.findall(r"^\| \d+ \| \[`\S+`\]\((\S+)\) \| (.*?) \|", ARCHITECTURE.read_text(), re.MULTILINE)
    assert len(rows) > 40
    for file, functions in rows:
        named = set(re.findall(r"`([\w.]+)`", functions))
        assert named, file
        assert named <= defined(ARCHITECTURE.parent / file), file


def test_paths_in_the_text_of_the_architecture_exist() -> None:
    named = re.findall(r"`([\w/]+(?:/|\.py|\.toml|\.txt))`", ARCHITECTURE.read_text())
    assert len(named) > 60
    for path in named:
        places = [ROOT / path, ROOT / "src/roamcast" / path, ROOT / "docs" / path]
        assert any(place.exists() for place in places), path


def test_pages_count_the_laws_of_a_broker_as_they_are() -> None:
    last = re.findall(r"^(\d)\. \*\*", (ROOT / "src/roamcast/protocols/api.py").read_text(), re.MULTILINE)[-1]
    counted = [word for page in (ARCHITECTURE, WRITING) for word in re.findall(r"(\w+) laws", page.read_text())]
    assert counted == [{"7": "seven"}[last]] * 2


def test_files_that_docstrings_and_comments_name_exist() -> None:
    sources = [
        path.relative_to(ROOT).as_posix()
        for part in ("src", "bench", "tests", "examples")
        for path in ROOT.glob(f"{part}/**/*.py")
    ]
    named = {(name, file) for name in sources for file in re.findall(r"`([\w/]+\.py)`", (ROOT / name).read_text())}
    assert len(named) > 100
    assert not [(name, file) for name, file in named if not any(f"/{one}".endswith(f"/{file}") for one in sources)]


@pytest.mark.parametrize("name", sorted(path.stem for path in PICTURES.glob("*.txt")))
def test_a_picture_is_drawn_from_its_text(name: str) -> None:
    draw = runpy.run_path(str(PICTURES / "draw.py"))["draw"]
    assert (PICTURES / f"{name}.svg").read_text() == draw((PICTURES / f"{name}.txt").read_text())


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
    suppressing = Mesh(page["SUPPRESSING"], range(4), [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])  # type: ignore[arg-type]
    suppressing.run(until=SECOND)
    suppressing[0].publish(suppressing.now, Publication(Event("alarm", id=8)))
    suppressing.run(until=3 * SECOND)
    decisions = [
        fact.decision for node in (1, 2) for _, fact in suppressing.ports[node].facts if isinstance(fact, Decision)
    ]
    assert sorted(decisions) == ["forwarded", "suppressed"]  # 1 and 2 heard it at once, and each other
    document = page["Document"](Event.of("map", payload=b"x" * 2500, id=9))  # type: ignore[operator]
    assert [len(document[number].content) for number in range(len(document))] == [1024, 1024, 452]


SCENARIO = ROOT / "docs/scenario.md"
SMALL = {"nodes": 20, "duration": 60, "area": {"width": 1000, "height": 1000}}


def shown_under(heading: str) -> dict[str, Any]:
    """The TOML that stands indented under a heading of the page on scenarios."""
    section = SCENARIO.read_text().split(f"# {heading}\n")[1].split("\n#")[0]
    lines = re.findall(r"^(?:    (?!error:).*)?$", section, re.MULTILINE)
    return tomllib.loads("\n".join(lines))


def test_the_absences_by_place_of_the_page_on_scenarios_are_understood(tmp_path: Path) -> None:
    shown = shown_under("Nodes that are not always there")
    moving = {"movement": {"model": "buildings"}}
    scenario = check(SMALL | moving | shown, "page", tmp_path)
    assert [(group.nodes, group.where) for group in scenario.away] == [((8, 9), "travelling")]


def test_the_lifetimes_of_the_page_on_scenarios_are_understood_or_refused_as_it_says(tmp_path: Path) -> None:
    shown = SMALL | shown_under("Lifetimes")
    scenario = check(shown, "page", tmp_path)
    assert (scenario.workload.publishers[0].lifetimes, scenario.protocol.name) == ((30.0,), "opportunistic")
    with pytest.raises(ScenarioError) as refusal:
        check(shown | {"protocol": {"name": "flooding"}}, "mine.toml", tmp_path)
    told = str(refusal.value).splitlines()
    assert f"error: {told[-1]}\n" in SCENARIO.read_text()


def test_the_contexts_of_the_page_on_scenarios_are_refused_only_for_lack_of_a_protocol(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as refusal:
        check(SMALL | shown_under("Contexts"), "mine.toml", tmp_path)
    reasons = {line.split(": ", 2)[2].partition(",")[0] for line in str(refusal.value).splitlines()}
    assert reasons == {"flooding does not understand contexts", "flooding does not understand domains"}


# --- What the pages say is printed ----------------------------------------------------------------------------------

CONSOLE = re.compile(
    r"^(<!-- not run: (?P<reason>.+?) -->\n)?```console\n(?P<lines>.*?)^```$", re.DOTALL | re.MULTILINE
)
ANYTHING = "…"


def console_blocks(name: str) -> list[tuple[str | None, str]]:
    """The console blocks of a page: why it is not run (None: it is), and its lines."""
    return [(match["reason"], match["lines"]) for match in CONSOLE.finditer((ROOT / name).read_text())]


@pytest.mark.parametrize("name", PAGES)
def test_every_console_block_is_marked_or_begins_with_a_command(name: str) -> None:
    blocks = console_blocks(name)
    assert len(blocks) == (ROOT / name).read_text().count("```console\n")
    for reason, lines in blocks:
        assert reason or lines.startswith("$ "), f"{name}: {lines}"


def said_by(command: str) -> str:
    """What a command of a page prints."""
    line, _, file = command.partition(" > ")
    words = shlex.split(line, comments=True)
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr
    assert words[0] == "roamcast", command
    result = CliRunner().invoke(main, words[1:], env={"COLUMNS": "100"})
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    if file:
        Path(file.strip()).write_text(result.stdout)
        return result.stderr
    return result.output


def as_shown(shown: str, said: str) -> bool:
    """Whether a text is what was printed: `…` stands for anything. A page may wrap long lines, so spaces and ends of
    lines are alike."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split(ANYTHING)]
    pattern = ".*?".join(parts)
    return re.fullmatch(pattern, " ".join(said.split())) is not None


@pytest.mark.parametrize("name", [name for name in PAGES if any(not reason for reason, _ in console_blocks(name))])
def test_commands_print_what_the_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    load_kernel()  # a first run would say that it compiles, which no page shows
    for reason, lines in console_blocks(name):
        if reason:
            continue
        for command, _, shown in (part.partition("\n") for part in lines.removeprefix("$ ").split("\n$ ")):
            said = said_by(command)
            assert not shown.strip() or as_shown(shown, said), f"{name}: {command}\n{said}"
