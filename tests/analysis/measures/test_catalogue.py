"""The catalogue of measures: what is known of each, what its page says, and measures from outside."""

import json
import re
import runpy
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import roamcast
from pipeline.measured import Run, S, tables
from roamcast.analysis.measures.catalogue import CATALOGUE, FAMILIES, MeasureCatalogue
from roamcast.analysis.measures.causes import causes
from roamcast.analysis.measures.measure import (
    Family,
    Measure,
    Measures,
    OverAllRuns,
    Pooled,
    as_family,
    family,
    measure,
    read_about,
    write_about,
)
from roamcast.analysis.run import Run as AnyRun
from roamcast.errors import RoamcastError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "measures.md"


# --- What there is --------------------------------------------------------------------------------------------------


def test_every_measure_has_a_title_a_description_and_one_way_to_its_values() -> None:
    for name in CATALOGUE:
        declared = CATALOGUE[name]
        assert declared.name == name
        assert declared.title
        assert declared.description, name
        way = CATALOGUE.way(name)
        assert declared in (way.measures if isinstance(way, Family) else (way.measure,))


def test_pooled_measures_have_parts_that_are_measured_in_each_run() -> None:
    pooled = [way for name in CATALOGUE if isinstance(way := CATALOGUE.way(name), Pooled)]
    assert [(one.measure.name, one.part, one.whole) for one in pooled] == [
        ("delivery_context", "context_delivered", "context_pairs")
    ]
    assert all(isinstance(CATALOGUE.way(name), Family) for one in pooled for name in (one.part, one.whole))


def test_a_measure_without_a_title_is_called_by_its_name() -> None:
    assert Measure("hops_mean").title == "hops mean"
    assert Measure("hops_mean", "hops").title == "hops"


@pytest.mark.parametrize(
    ("declared", "bounds"),
    [
        (Measure("m"), (0.0, float("inf"))),
        (Measure("m", share=True), (0.0, 1.0)),
        (Measure("m", signed=True), (float("-inf"), float("inf"))),
    ],
)
def test_the_ends_of_intervals_stay_within_the_possible(declared: Measure, bounds: tuple[float, float]) -> None:
    assert declared.bounds == bounds
    assert (declared.clipped(-2.0), declared.clipped(0.5), declared.clipped(2.0)) == (
        max(-2.0, bounds[0]),
        0.5,
        min(2.0, bounds[1]),
    )


def test_what_is_declared_is_kept_in_the_folder(tmp_path: Path) -> None:
    assert read_about(tmp_path) == {}
    (tmp_path / "measures").mkdir()
    write_about(tmp_path, [CATALOGUE["delivery"], CATALOGUE["tree_connected"]])
    known = read_about(tmp_path)
    assert known == {name: CATALOGUE[name] for name in ("delivery", "tree_connected")}
    assert isinstance(known, Measures)
    assert known["unheard_of"] == Measure("unheard_of")
    (tmp_path / "measures" / "about.json").write_text("[{]")
    with pytest.raises(RoamcastError, match=r"about\.json: cannot be read"):
        read_about(tmp_path)


def test_an_unknown_measure_is_refused_with_a_suggestion() -> None:
    assert CATALOGUE.check(["delivery", "events", "delivery"]) == ["delivery", "events"]
    with pytest.raises(RoamcastError, match=r"there is no measure 'delivry'; did you mean 'delivery'\?"):
        CATALOGUE.check(["events", "delivry"])


def test_a_group_stands_for_its_members() -> None:
    found = CATALOGUE.names(["delivery", "causes"], Path(), "e.toml")
    assert found == ("delivery", *(one.name for one in causes.measures))


def test_a_deadline_makes_measures_of_its_own_once() -> None:
    known = MeasureCatalogue()
    known.within(7)
    known.within(7.0)
    known.within(600)  # is there already
    assert set(known) - set(CATALOGUE) == {
        f"{what}_7" for what in ("satisfaction", "possible", "delivered_of_possible", "delay_restricted")
    }


def test_the_table_of_the_documentation_is_made_from_the_declarations() -> None:
    made = runpy.run_path(str(PAGE.parent / "measures" / "make.py"))["page"]()
    assert (PAGE.parent / "measures" / "table.md").read_text(encoding="utf-8") == made, "run docs/measures/make.py"
    assert set(re.findall(r"^\| `(\w+)`", made, re.MULTILINE)) == set(MeasureCatalogue())


# --- Functions as measures ------------------------------------------------------------------------------------------


def late(run: AnyRun) -> float | None:
    """Time of the last delivery.

    The rest is for those who read the code.
    """
    times = run.column("deliver", "time")
    return float(times.max()) / S if len(times) else None


def test_a_plain_function_is_a_measure_with_its_name_and_the_first_line_of_its_docstring() -> None:
    made = as_family(late, "here")
    assert isinstance(made, Family)
    assert made.measures == (Measure("late", "late", "Time of the last delivery"),)
    run = Run("r", tables(deliver=[(2 * S, 0, 1, 1, S, 1, "data"), (3 * S, 1, 1, 1, S, 1, "data")]))
    assert made(run.in_memory()) == {"late": 3.0}
    assert made(Run("r", {}).in_memory()) == {"late": None}


def test_a_measure_says_what_its_function_does_not() -> None:
    made = measure(title="last delivery (s)", unit="s", share=False, signed=True, floor=0.5, good="low")(late)
    (declared,) = made.measures
    assert declared == Measure(
        "late", "last delivery (s)", "Time of the last delivery", unit="s", signed=True, floor=0.5, good="low"
    )
    (shared,) = measure(share=True, whole=True)(late).measures
    assert shared == Measure("late", "late", "Time of the last delivery", share=True, whole=True)


def test_a_family_gives_several_values_and_all_families_together_give_all() -> None:
    @family(Measure("rows"), Measure("nodes"))
    def counts(run: AnyRun) -> dict[str, float | None]:
        return {"rows": run.table("note").num_rows, "nodes": run.nodes}

    run = Run("r", tables(note=[(0, "duplicate", 1)]), nodes=5).in_memory()
    late_too = as_family(late, "here")
    assert isinstance(late_too, Family)
    assert {**counts(run), **late_too(run)} == {"rows": 1, "nodes": 5, "late": None}


# --- From outside ---------------------------------------------------------------------------------------------------


def entry(value: str, name: str = "mine") -> EntryPoint:
    return EntryPoint(name, value, "roamcast.measures")


Installed = Callable[[str, str], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Installs a module."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")

    return install


def page_blocks(language: str) -> list[str]:
    own = PAGE.read_text(encoding="utf-8").partition("## A measure of your own")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", own, re.DOTALL | re.MULTILINE)


def test_the_example_of_the_page_is_a_measure(installed: Installed) -> None:
    installed("my_measures", "".join(page_blocks("python")))
    (block,) = page_blocks("toml")
    header, declared = block.strip().splitlines()
    assert header == '[project.entry-points."roamcast.measures"]'
    name, value = declared.split(" = ")
    known = MeasureCatalogue([entry(json.loads(value), name)])
    assert set(known) == {*CATALOGUE, "busiest"}
    assert known["busiest"].description == "Share of the time that the busiest node spends sending"
    counted = [(0, "data", 0, 1, 1, S, *[0] * 6), (0, "ack", 0, 1, 1, S, *[0] * 6), (1, "data", 0, 1, 1, S, *[0] * 6)]
    way = known.way("busiest")
    assert isinstance(way, Family)
    assert way(Run("a", tables(transmit=counted), simulated=10.0).in_memory()) == {"busiest": 0.2}
    assert way(Run("b", tables()).in_memory()) == {"busiest": None}


def test_the_other_examples_of_the_page_are_measures_too(installed: Installed) -> None:
    installed("our_measures", "".join(page_blocks("python")))
    known = MeasureCatalogue([entry(f"our_measures:{name}", name) for name in ("busy", "ways", "OF_THE_MOST")])
    assert set(known) - set(CATALOGUE) == {"busy", "hops_least", "hops_most", "of_the_most"}
    assert isinstance(known.way("of_the_most"), OverAllRuns)
    facts = tables(
        transmit=[(node, "data", 0, 1, 1, S, *[0] * 6) for node in (0, 2, 2)],
        deliver=[(2 * S, 1, 1, 1, S, hops, "data") for hops in (3, 2, 4)],
    )
    run = Run("r", facts, nodes=4).in_memory()
    assert known.values(run, ["busy", "hops_least", "hops_most"]) == {"busy": 0.5, "hops_least": 2, "hops_most": 4}
    assert known.values(run, ["hops_most"]) == {"hops_most": 4}


def test_a_measure_is_tried_on_a_run_without_a_campaign() -> None:
    module = ModuleType("tried")
    exec(page_blocks("python")[0], vars(module))
    ran = roamcast.run(ROOT / "examples/line.toml")
    share = vars(module)["busiest"](ran)
    # Nobody sends more than all, nor than all the time.
    total: Any = ran.column("transmit", "airtime").sum()
    assert 0 < share <= total / ran.end < 1


def test_a_measure_of_a_file_is_known_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def late(run):\n    return 1.0\n")
    known = MeasureCatalogue()
    assert known.names(["delivery", "mine.py:late"], tmp_path, "e.toml") == ("delivery", "late")
    assert known.names(["mine.py:late"], tmp_path, "e.toml") == ("late",)
    assert "late" in known
    with pytest.raises(RoamcastError, match=r"e.toml: measure 'gone.py:late': there is no file"):
        known.names(["gone.py:late"], tmp_path, "e.toml")
    with pytest.raises(RoamcastError, match=r"e.toml: measure 'mine.py:early': .* defines no 'early'"):
        known.names(["mine.py:early"], tmp_path, "e.toml")


def test_what_cannot_be_a_measure_is_refused(installed: Installed, tmp_path: Path) -> None:
    installed("bad_measures", "NUMBER = 7\ndef delivery(run):\n    return 1.0\n")
    with pytest.raises(RoamcastError, match=r"bad_measures:NUMBER of roamcast.measures is 7, not a measure"):
        MeasureCatalogue([entry("bad_measures:NUMBER")])
    with pytest.raises(RoamcastError, match=r"bad_measures:delivery .* 'delivery' is the name of another"):
        MeasureCatalogue([entry("bad_measures:delivery")])
    with pytest.raises(RoamcastError, match=r"e.toml: measure 'bad_measures.py:NUMBER' is 7, not a measure"):
        MeasureCatalogue().names(["bad_measures.py:NUMBER"], tmp_path, "e.toml")


def test_our_own_families_have_different_names() -> None:
    names = [one.name for every in FAMILIES for one in every.measures]
    assert len(names) == len(set(names))
