"""The other verbs, the help texts, and what a wrong request is answered with."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from roamcast.cli.main import GROUPS, VERBS, main
from roamcast.cli.protocols import SUMMARIES
from roamcast.cli.screen import example
from roamcast.facts.schema import tables_of
from roamcast.protocols.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]

GOOD = """
nodes = 3
duration = 10
[area]
width = 500
height = 100
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def roamcast(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


# --- What is refused ------------------------------------------------------------------------------------------------

FILES = {
    "unknown.toml": (
        GOOD + "[radio]\nrnage = 5\n",
        "error: unknown.toml: radio.rnage: there is no such field; did you mean 'range'?\n",
    ),
    "zero.toml": (GOOD + "[radio]\nrange = 0\n", "error: zero.toml: radio.range: 0 m: it must be above 0\n"),
    "negative.toml": (
        "duration = -1\nnodes = 3\n",
        "error: negative.toml: duration: expected a number above 0 and at most 10000000; got -1\n",
    ),
    "crowd.toml": (
        GOOD + "[[workload.publishers]]\ncount = 4\nrate = 1\n",
        "error: crowd.toml: workload.publishers: 4 of them, but there are only 3 nodes\n",
    ),
    "outside.toml": (
        GOOD + "[movement]\nmodel = 'static'\npositions = [[0, 0], [1, 101], [2, 2]]\n",
        "error: outside.toml: movement.positions: node 1 at (1, 101): it must lie in the area of 500 m × 100 m\n",
    ),
    "nowhere.toml": (
        "nodes = 3\nduration = 10\n",
        "error: nowhere.toml: area: is missing: two-ray needs positions ([area] with width and height in m)\n",
    ),
    "parameter.toml": (
        GOOD + "[protocol.parameters]\njitter = 'long'\n",
        "error: parameter.toml: protocol.parameters.jitter: expected a number from 0 to 60; got the text 'long'\n",
    ),
    "filter.toml": (
        GOOD + "[[workload.subscribers]]\ncount = 1\nfilter = 'price < < 3'\n",
        "error: filter.toml: workload.subscribers[0].filter: at position 8: expected a value: a number, a quoted "
        "string, true or false; found '<'\n  price < < 3\n          ^\n",
    ),
    "two.toml": (
        "warmup = 10\n" + GOOD + "[mac]\nrate = 3\n",
        "error: two.toml: warmup: 10 s of a run of 10 s leave nothing to measure\n"
        "two.toml: mac.rate: 3 Mb/s: 802.11b has 1, 2, 5.5 and 11\n",
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verb", [("run",), ("scenario", "--check")], ids=" ".join)
def test_a_wrong_scenario_is_refused_in_one_message(name: str, verb: tuple[str, ...]) -> None:
    content, words = FILES[name]
    Path(name).write_text(content)
    result = roamcast(*verb, name)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", words)
    assert [path.name for path in Path().iterdir()] == [name]


@pytest.mark.parametrize("verb", [("run",), ("scenario", "--check")], ids=" ".join)
def test_files_that_cannot_be_read(verb: tuple[str, ...]) -> None:
    Path("folder").mkdir()
    Path("broken.toml").write_text("nodes = 3\nduration = = 10\n")
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    missing, folder, broken, binary = (
        roamcast(*verb, name) for name in ("missing.toml", "folder", "broken.toml", "binary.toml")
    )
    assert missing.stderr == "error: missing.toml: cannot be read: No such file or directory\n"
    assert folder.stderr == "error: folder: cannot be read: Is a directory\n"
    assert broken.stderr == "error: broken.toml: is not TOML: Invalid value (at line 2, column 12)\n"
    assert binary.stderr.startswith("error: binary.toml: is not TOML: ")
    assert {result.exit_code for result in (missing, folder, broken, binary)} == {2}


@pytest.mark.parametrize("verb", [("run", "s.toml", "--set", "protocol.name=floding"), ("protocols", "floding")])
def test_an_unknown_protocol_is_refused_with_the_nearest_name(verb: tuple[str, ...]) -> None:
    Path("s.toml").write_text(GOOD)
    result = roamcast(*verb)
    assert result.exit_code == 2
    assert "no protocol is named 'floding'; did you mean 'flooding'? known are " in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "radio.rnage=5",
            "s.toml with --set radio.rnage=5: radio.rnage: there is no such field; did you mean 'range'?",
        ),
        ("nodes=0", "s.toml with --set nodes=0: nodes: expected a whole number from 1 to 100000; got 0"),
        (
            "nodes=many",
            "s.toml with --set nodes=many: nodes: expected a whole number from 1 to 100000; got the text 'many'",
        ),
        ("nodes", "--set nodes: expected FIELD=VALUE, such as radio.range=100"),
        ("=5", "--set =5: expected FIELD=VALUE, such as radio.range=100"),
        ("radio..range=5", "--set radio..range=5: expected FIELD=VALUE, such as radio.range=100"),
        ("nodes.x=5", "--set nodes.x=5: nodes.x: there is no nodes.x in the scenario"),
        ("nodes[0]=5", "--set nodes[0]=5: nodes[0]: there is no nodes[0] in the scenario"),
        (
            "workload.publishers[0].rate=5",
            "--set workload.publishers[0].rate=5: workload.publishers[0].rate: "
            "there is no workload.publishers[0] in the scenario",
        ),
    ],
)
def test_a_wrong_change_is_refused_by_its_name(change: str, words: str) -> None:
    Path("s.toml").write_text(GOOD)
    result = roamcast("run", "s.toml", "--set", change)
    assert (result.exit_code, result.stderr) == (2, f"error: {words}\n")


EXPERIMENT = 'name = "e"\nmeasures = ["delivary"]\n[scenario]\n' + GOOD.replace("[area]", "[scenario.area]")


@pytest.mark.parametrize(
    "verb", [("run",), ("scenario", "--check"), ("lab",), ("choose", "--at-least", "delivery=0.9")]
)
def test_an_experiment_is_no_scenario(verb: tuple[str, ...]) -> None:
    Path("e.toml").write_text(EXPERIMENT)
    result = roamcast(*verb, "e.toml")
    words = "error: e.toml: this is an experiment, not a scenario: roamcast campaign e.toml\n"
    assert (result.exit_code, result.stderr) == (2, words)


def test_a_scenario_is_no_experiment() -> None:
    Path("s.toml").write_text(GOOD)
    result = roamcast("campaign", "s.toml", "--plan")
    words = "error: s.toml: this is a scenario, not an experiment: roamcast run s.toml\n"
    assert (result.exit_code, result.stderr) == (2, words)


def test_a_check_says_that_it_executes_the_file_of_a_protocol() -> None:
    Path("mine.py").write_text("from roamcast.protocols.flooding import ENTRY\nopen('executed', 'w').close()\n")
    Path("s.toml").write_text(GOOD + '[protocol]\nname = "mine.py:ENTRY"\n')
    result = roamcast("scenario", "--check", "s.toml")
    assert (result.exit_code, Path("executed").exists()) == (0, True)
    assert result.stderr == "protocol.name: mine.py was executed for this check\n"
    told = " ".join(roamcast("scenario", "--help").stdout.split())
    assert "If its protocol is in a Python file (file.py:NAME), that file is executed" in told
    Path("s.toml").write_text(GOOD)
    assert roamcast("scenario", "--check", "s.toml").stderr == ""


def test_recordings_are_opened_when_a_scenario_is_checked_and_a_campaign_planned() -> None:
    missing = '[movement]\nmodel = "recorded"\nfile = "walk.csv"\n'
    Path("s.toml").write_text(GOOD + missing)
    Path("e.toml").write_text(EXPERIMENT + missing.replace("[movement]", "[scenario.movement]"))
    checked, planned = roamcast("scenario", "--check", "s.toml"), roamcast("campaign", "e.toml", "--plan")
    words = "movement.file: walk.csv: cannot be read: No such file or directory\n"
    assert (checked.exit_code, checked.stderr) == (2, f"error: s.toml: {words}")
    assert (planned.exit_code, planned.stderr) == (2, f"error: e.toml: {words}")
    Path("walk.csv").write_text("time,node,x,y\n0,0,1,1\n0,1,2,2\n")
    words = "movement.file: walk.csv: node 2 has no samples; the scenario has nodes 0 to 2\n"
    assert roamcast("scenario", "--check", "s.toml").stderr == f"error: s.toml: {words}"
    assert roamcast("campaign", "e.toml", "--plan").stderr == f"error: e.toml: {words}"


def test_contacts_are_opened_too() -> None:
    links = '[radio]\npropagation = "links"\n[links]\nfile = "met.trace"\n'
    Path("s.toml").write_text("nodes = 3\nduration = 10\n" + links)
    words = "met.trace: is not a trace (trace.json is missing): make one with roamcast traces import\n"
    assert roamcast("scenario", "--check", "s.toml").stderr == f"error: s.toml: links.file: {words}"


@pytest.mark.parametrize("verb", [("campaign", "x.toml"), ("measure", "out"), ("sql", "out", "select 1")], ids=" ".join)
def test_a_master_that_spark_would_answer_with_a_stack_trace(verb: tuple[str, ...]) -> None:
    result = roamcast(*verb, "--master", "sprak://here:7077")
    expected = "expected spark://HOST:PORT, k8s://URL, yarn, or local[CORES]"
    assert (result.exit_code, result.stderr) == (2, f"error: --master sprak://here:7077: {expected}\n")


def test_measures_are_checked_when_a_campaign_is_planned() -> None:
    Path("e.toml").write_text(EXPERIMENT)
    result = roamcast("campaign", "e.toml", "--plan")
    words = "error: e.toml: measures: there is no measure 'delivary'; did you mean 'delivery'?\n"
    assert (result.exit_code, result.stderr) == (2, words)


def test_a_goal_is_checked_when_a_campaign_is_planned() -> None:
    Path("e.toml").write_text(roamcast("campaign", "--example").stdout)
    result = roamcast("campaign", "e.toml", "--plan", "--until", "memory within 1")
    words = "error: until memory: the campaign does not measure it; it measures delivery, overhead, delay_p95\n"
    assert (result.exit_code, result.stderr) == (2, words)
    assert "expected 'MEASURE within WIDTH'" in roamcast("campaign", "e.toml", "--plan", "--until", "delivery").stderr


def test_the_plan_tells_the_whole_time() -> None:
    Path("e.toml").write_text(roamcast("campaign", "--example").stdout)
    result = roamcast("campaign", "e.toml", "--plan")
    assert result.exit_code == 0, result.output
    assert "30 runs planned, 30 of them distinct, 30 to do\nabout " in result.stdout
    told = json.loads(roamcast("campaign", "e.toml", "--plan", "--json").stdout)
    assert told["to_do"] == 30
    assert told["total_s"] > 10 > told["cpu_s"] > 1  # Spark takes longer than these runs


@pytest.mark.parametrize("change", ["radio.rnage=5", "nodes=0", "nodes", "=5"])
def test_a_wrong_change_of_a_campaign_is_refused_by_its_name(change: str) -> None:
    Path("e.toml").write_text(roamcast("campaign", "--example").stdout)
    result = roamcast("campaign", "e.toml", "--plan", "--set", change)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert f"--set {change}: " in result.stderr


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("roamcast ca", ["campaign"]),
        ("roamcast scenario --ex", ["--explain", "--example"]),
        ("roamcast protocols co", ["counter", "coman", "context"]),
    ],
)
def test_the_shell_completes_verbs_and_options(line: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    result = CliRunner().invoke(main, prog_name="roamcast", env={"_ROAMCAST_COMPLETE": "bash_complete"})
    assert result.stdout.splitlines() == [f"plain,{word}" for word in found]


@pytest.mark.parametrize("options", [[], ["--explain", "--check", "x"], ["--example", "--check", "x"]])
def test_scenario_wants_one_task(options: list[str]) -> None:
    result = roamcast("scenario", *options)
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: give exactly one of --explain, --example and --check FILE\n")


# --- What is said ---------------------------------------------------------------------------------------------------


def test_a_right_scenario_is_ok() -> None:
    Path("s.toml").write_text(GOOD)
    result = roamcast("scenario", "--check", "s.toml")
    assert (result.exit_code, result.stdout) == (
        0,
        'ok: s.toml: "unnamed", seed 1: 3 nodes in 500 m × 100 m for 10 s, flooding; '
        "groups of subscribers: 0, of publishers: 0\n",
    )


def test_the_example_runs() -> None:
    Path("example.toml").write_text(roamcast("scenario", "--example").stdout)
    result = roamcast("run", "example.toml", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)["summary"]
    assert summary["events"] == 50  # 2 publishers, one event in 2 s, for 50 s
    assert summary["pairs_delivered"] > 0
    assert all(len(line) <= 80 for line in example("scenario").splitlines())


def test_explain_fits_without_a_terminal() -> None:
    result = roamcast("scenario", "--explain")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (
        "    duration: a number above 0 and at most 10000000; required\n"
        "        simulated time, s, with warm-up and cooldown\n" in result.stdout
    )


def test_protocols_are_listed_with_their_summaries() -> None:
    lines = roamcast("protocols").stdout.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[entry.name, entry.summary] for entry in CATALOGUE.values()]


def test_protocols_for_scripts() -> None:
    listed = json.loads(roamcast("protocols", "--json").stdout)
    assert listed == [{"name": entry.name, "summary": entry.summary} for entry in CATALOGUE.values()]
    flooding = json.loads(roamcast("protocols", "flooding", "--json").stdout)
    assert flooding["parameters"][1] == {
        "path": "protocol.parameters.jitter",
        "values": "a number from 0 to 60",
        "default": "0.01",
        "description": "longest random wait before passing on, s",
    }


def test_the_short_help_of_every_verb_is_its_first_sentence() -> None:
    for verbs in GROUPS.values():
        for name, listed in verbs.items():
            command = main.get_command(click.Context(main), name)
            assert command is not None
            assert listed == command.get_short_help_str(limit=80)
    for words in (("traces",), ("key",)):
        assert "..." not in roamcast(*words, "--help").stdout.partition("Options:")[2]


def test_the_list_has_each_protocols_own_summary() -> None:
    assert list(SUMMARIES.items()) == [(name, entry.summary) for name, entry in CATALOGUE.items()]


def test_a_protocols_parameters_are_explained() -> None:
    assert roamcast("protocols", "flooding").stdout == (
        "flooding: every node that hears an event for the first time passes it on\n"
        "\n"
        "[protocol.parameters]\n"
        "Parameters of flooding.\n"
        "    protocol.parameters.delivered: a whole number of at least 1; default 1024\n"
        "        how many events a node remembers having delivered, beyond those it\n"
        "        holds, across restarts too\n"
        "    protocol.parameters.jitter: a number from 0 to 60; default 0.01\n"
        "        longest random wait before passing on, s\n"
        "    protocol.parameters.window: a whole number of at least 1; default 4096\n"
        "        how many events a node remembers having seen\n"
    )


def test_help_has_examples_and_says_what_every_option_does() -> None:
    assert "roamcast run first.toml" in roamcast("--help").stdout
    assert "[default: out/NAME-SEED]" in roamcast("run", "--help").stdout
    assert "with context: 0" in " ".join(roamcast("pub", "--help").stdout.split())
    for name in VERBS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                told = (option.help or "").split("  [")[0]
                assert told[:1].isupper(), f"{name} {option.opts}"
                assert told.endswith("."), f"{name} {option.opts}"


def test_the_version_is_told() -> None:
    assert roamcast("--version").stdout.startswith("roamcast, version ")


# --- The pages ------------------------------------------------------------------------------------------------------


def test_the_page_on_facts_has_every_table_and_column() -> None:
    parts = (ROOT / "docs/facts.md").read_text().split("\n## ")
    sections = {part.split("\n", 1)[0].strip("` "): part for part in parts[1:]}
    declared = [tables_of(entry.facts) for entry in CATALOGUE.values()]
    for table, schema in {name: schema for tables in declared for name, schema in tables.items()}.items():
        rows = [line.split("|")[1] for line in sections[table].splitlines() if line.startswith("| `")]
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]  # a row may be about several columns
        assert sorted(named) == sorted(schema.names), table


def test_the_scenario_of_the_guided_tour_runs() -> None:
    page = (ROOT / "docs/scenario.md").read_text()
    scenario = "\n".join(block.split("```")[0] for block in page.split("```toml\n")[1:])
    Path("tour.toml").write_text(scenario)
    result = roamcast("run", "tour.toml", "--json", "--reference")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["summary"]["pairs_delivered"] > 0


@pytest.mark.parametrize("words", [("--help",), ("pub", "-h"), ("sub", "-h"), ("status", "-h"), ("protocols",)])
def test_what_people_type_most_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    """Each takes a fifth of a second; any of these libraries would double that."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    code += "from roamcast.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    loaded = set(done.stderr.split())
    assert "roamcast.cli.main" in loaded
    assert not {"aiohttp", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich"} & loaded
    assert "roamcast.protocols.hint" not in loaded


def test_a_node_loads_nothing_that_only_simulates_and_measures() -> None:
    """They would take half of its memory: with 64 MB of documents it is to stay below 150 MB."""
    loaded = "import sys, roamcast.cli.node, roamcast.cli.main, roamcast.live.node; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    assert "roamcast.live.node" in modules
    assert not {"pyarrow", "numpy", "numba", "pyspark"} & set(modules)
