"""`roamcast measures`: lists the measures by topic."""

import sys

import click
import msgspec

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.measures.measure import Family, Measure
from roamcast.cli.completion import complete_measures
from roamcast.cli.screen import plain_console, table
from roamcast.config.errors import suggestion
from roamcast.errors import RoamcastError


@click.command()
@click.argument("words", nargs=-1, metavar="[WORD]...", shell_complete=complete_measures)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.  [default: a table for each topic]")
def measures(words: tuple[str, ...], as_json: bool) -> None:
    """List the measures, by topic: what each is, and its unit.

    With a WORD, only those with it in their name, title or description.
    """
    found = {topic: [one for one in known if _has(one, words)] for topic, known in _topics().items()}
    found = {topic: known for topic, known in found.items() if known}
    if not found:
        raise RoamcastError(f"no measure has the word {words[0]!r}; {suggestion(words[0], CATALOGUE)}")
    if as_json:
        rows = [{"topic": topic, **msgspec.to_builtins(one)} for topic, known in found.items() for one in known]
        click.echo(msgspec.json.encode(rows))
        return
    for topic, known in found.items():
        lines = [(one.name, one.unit or ("share" if one.share else ""), one.description) for one in known]
        plain_console().print(table(("measure", "unit", "what it is"), lines, (), title=topic))


def _topics() -> dict[str, list[Measure]]:
    """By the first line of the file that declares them."""
    topics: dict[str, list[Measure]] = {}
    for name in CATALOGUE:
        way = CATALOGUE.way(name)
        module = way.function.__module__ if isinstance(way, Family) else type(way).__module__
        words = (sys.modules[module].__doc__ or module).partition("\n\n")[0]
        topics.setdefault(" ".join(words.split()), []).append(CATALOGUE[name])
    return topics


def _has(one: Measure, words: tuple[str, ...]) -> bool:
    text = f"{one.name} {one.title} {one.description}".lower()
    return all(word.lower() in text for word in words)
