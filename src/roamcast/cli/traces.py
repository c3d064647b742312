"""`roamcast traces`: imports, describes and exports recorded movement and contacts."""

import json
import re
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from roamcast.cli.options import SparkOptions, spark_options
from roamcast.cli.paths import LocalPath
from roamcast.errors import ConfigError
from roamcast.files import write_file
from roamcast.sim.mobility.export import FORMATS as EXPORTS
from roamcast.sim.mobility.export import ExportOptions, taken
from roamcast.sim.mobility.samples import NAMES
from roamcast.sim.mobility.trace import TraceDescription, read_about
from roamcast.sim.scenario.scenario import load

IMPORTS: Final = (
    "auto",
    "sumo-xml",
    "sumo-csv",
    "sumo-parquet",
    "ns2",
    "bonnmotion",
    "one",
    "csv",
    "gpx",
    "one-connections",
    "contacts",
)
_PATH: Final = LocalPath()
_LARGE: Final = 200_000_000
"""Bytes to read from which on the JVM's better compiler saves more time than it takes."""


@click.group()
def traces() -> None:
    """Import, describe and export recorded movement and contacts.

    \b
    Examples:
      roamcast traces import rides.fcd.xml.gz --out rides.trace
      roamcast traces describe rides.trace --range 250
      roamcast traces contacts rides.trace --range 250 --out meetings.trace
      roamcast traces export first.toml --format ns2 --out first.tcl
    """


def _is_large(source: Path) -> bool:
    files = source.rglob("*") if source.is_dir() else [source]
    return sum(file.stat().st_size for file in files if file.is_file()) > _LARGE


_tick: Final = click.option(
    "--tick", type=click.FloatRange(0.001), default=1.0, help="Sample positions every so many seconds."
)


@traces.command("import")
@click.argument("source", type=_PATH, metavar="FILE")
@click.option("--out", type=_PATH, required=True, help="The trace to make: a folder, such as rides.trace.")
@click.option("--format", type=click.Choice(IMPORTS), default="auto", help="What FILE is.")
@click.option(
    "--gap",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="Seconds of silence after which a node counts as away.",
)
@click.option("--from", "start", type=float, help="Leave out what is earlier, in seconds of FILE's own time.")
@click.option("--to", "end", type=float, help="Leave out what is later, in seconds of FILE's own time.")
@click.option("--box", metavar="W,S,E,N", help="Leave out what is outside, in FILE's own coordinates.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=0.0,
    help="Leave out positions that lie within this many metres of a straight line.",
)
@click.option(
    "--geo", "geographic", is_flag=True, help="x and y of SUMO are degrees (fcd-output.geo).  [default: metres]"
)
@click.option(
    "--scan",
    type=click.FloatRange(0),
    default=120.0,
    help="For contact lists: seconds from one scan to the next; contacts are extended by half of it at each end.",
)
@click.option("--observers-only", is_flag=True, help="For contact lists: leave out devices that were only seen.")
@click.option(
    "--columns",
    metavar="WHAT=NAME,...",
    help='For CSV: which column is id, t, x, y, lat or lon, where its name does not tell: id="Device ID",t=when.',
)
@click.option(
    "--timezone",
    metavar="ZONE",
    help="For CSV: the time zone of dates and times without an offset, such as Europe/Rome.  [default: UTC]",
)
@click.option("--force", is_flag=True, help="Make a trace even of an implausible recording, with a warning.")
@spark_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: text]")
def import_(
    source: Path,
    out: Path,
    gap: float,
    start: float | None,
    end: float | None,
    box: str | None,
    tolerance: float,
    columns: str | None,
    spark: SparkOptions,
    as_json: bool,
    **options: Any,  # noqa: ANN401  # of Options
) -> None:
    """Make a trace from a recording.

    Positions in FILE become legs, contacts become links. What came out is described at the end. A recording that cannot
    be right (no legs, an area of 1,000 km, many legs of 150 m/s, most lines refused) is an error; with --force, a
    warning.

    \b
    Formats: SUMO's FCD (XML, CSV, Parquet), ns-2 setdest, BonnMotion, the ONE (movement and
    connection events), GPX, CSV with metres or latitude and longitude, contact lists. .gz is read
    as well; FILE may be a folder of such files.
    """
    from roamcast.pipeline.traces.importing import Options, import_trace  # Spark takes a second to import
    from roamcast.pipeline.traces.samples import Selection
    from roamcast.pipeline.traces.verdict import doubts, refused_share

    kept = Selection(gap, tolerance, start, end, _box(box))
    wanted = Options(cut=kept, columns=_columns(columns), **options)
    with spark.session("roamcast traces import", heavy=_is_large(source)) as session:
        about = import_trace(session, source, out, wanted)
    if as_json:
        click.echo(json.dumps({"out": str(out), **msgspec.to_builtins(about)}))
        return
    _show(out, about)
    if (speeds := about.speeds) is not None:
        words = f"median {speeds.median:.3g}, 95 % up to {speeds.p95:.3g}, most {speeds.most:.3g}"
        click.echo(f"speeds of legs, m/s: {words}")
    refused = sum(about.refused.values())
    click.echo(f"refused: {refused} ({refused_share(about):.1%})" + (f", in {out / 'refused'}" if refused else ""))
    for reason, count in about.refused.items():
        click.echo(f"  {count} × {reason}")
    click.echo(_scenario(out, about))
    if found := doubts(about):
        click.echo("\n".join(["\nwarning: this is implausible:", *found]), err=True)


def _box(text: str | None) -> tuple[float, float, float, float] | None:
    if text is None:
        return None
    try:
        west, south, east, north = map(float, re.split(r"[,\s]+", text.strip()))
    except ValueError:
        raise ConfigError(f"--box {text}: expected four numbers: west, south, east, north") from None
    if west == east or south >= north:
        raise ConfigError(f"--box {text}: west must not be east, and south must be below north")
    return west, south, east, north


def _columns(text: str | None) -> dict[str, str]:
    """`id=Device ID,t=when`; a shell may have left the quotation marks."""
    named = {}
    for part in text.split(",") if text else ():
        what, _, name = part.partition("=")
        if what.strip() not in NAMES or not name.strip(" \"'"):
            raise ConfigError(f"--columns {text}: expected WHAT=NAME,…, where WHAT is one of {', '.join(NAMES)}")
        named[what.strip()] = name.strip(" \"'")
    return named


def _show(out: Path, about: TraceDescription) -> None:
    what = f"{about.rows} legs" if about.kind == "positions" else f"{about.rows} contacts"
    place = f", {about.width:.0f} m × {about.height:.0f} m" if about.kind == "positions" else ""
    click.echo(f"{out}: {about.nodes} nodes, {about.span:g} s{place}, {what}")


def _scenario(out: Path, about: TraceDescription) -> str:
    """The lines to copy into a scenario."""
    if about.kind == "contacts":
        return f'\n[radio]\npropagation = "links"\n\n[links]\nfile = "{out}"'
    width, height = (max(1, -int(-side // 1)) for side in (about.width, about.height))
    return f'\n[area]\nwidth = {width}\nheight = {height}\n\n[movement]\nmodel = "recorded"\nfile = "{out}"'


@traces.command()
@click.argument("trace", type=_PATH, metavar="TRACE")
@click.option(
    "--range",
    "reach",
    type=click.FloatRange(0, min_open=True),
    help="Radio range in m: with it, also describe degrees, islands and contacts of a trace of positions.",
)
@_tick
@click.option("--figure", type=_PATH, help="Draw how long contacts last, and the times between them, as an SVG file.")
@spark_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.  [default: text]")
def describe(
    trace: Path, reach: float | None, tick: float, figure: Path | None, spark: SparkOptions, as_json: bool
) -> None:
    """Describe a trace.

    Nodes, span and speeds of TRACE; with a range, also degree and islands over time, contacts and the times between
    them.
    """
    from roamcast.pipeline.traces.describe import describe as tell
    from roamcast.report.distribution import distribution

    if read_about(trace).kind == "positions" and figure is not None and reach is None:
        raise ConfigError("--figure needs --range: without it there are no contacts")
    with spark.session("roamcast traces describe", heavy=_is_large(trace)) as session:
        found = tell(session, trace, reach, tick)
    if figure is not None:
        curves = {"contacts": found["contact"]["longer"], "until the next": found["between_contacts"]["longer"]}
        title, share = f"Contacts of {found['trace']}", "share that lasts longer"
        write_file(figure, distribution(title, curves, x="time (s)", y=share, logarithmic=True))
    click.echo(json.dumps(found) if as_json else "\n".join(_lines(found)))


_OVER_TIME: Final = {
    "nodes": "nodes that are there",
    "degree": "degree",
    "islands": "islands",
    "largest": "share of the nodes in the largest island",
}


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['trace']}: {found['nodes']} nodes, {found['span']:g} s"]
    if found["kind"] == "positions":
        lines.append(f"area: {found['width']:.0f} m × {found['height']:.0f} m")
        lines.append(f"there: {found['there']:.1%} of the time, as a mean over nodes")
        speed = found["speed"]
        lines.append(f"speed, m/s: mean {speed['mean']:.2f}, {_quantiles(speed)}, most {speed['most']:.2f}")
        lines.append(f"standing: {speed['still']:.1%} of the time")
    if "over_time" in found:
        moments = [row for row in found["over_time"] if row["nodes"]]
        lines.append(f"within {found['range']:g} m, as means over {len(moments)} instants:")
        for name, words in _OVER_TIME.items():
            lines.append(f"  {words}: {sum(row[name] for row in moments) / max(1, len(moments)):.3g}")
    if "contacts" in found:
        lines.append(f"contacts: {found['contacts']} of {found['pairs']} pairs")
        if found["contacts"]:
            lines.append(f"  length, s: mean {found['contact']['mean']:.1f}, {_quantiles(found['contact'])}")
        between = found["between_contacts"]
        if between["count"]:
            lines.append(f"  until the next, s: mean {between['mean']:.1f}, {_quantiles(between)}")
    return lines


def _quantiles(values: dict[str, Any]) -> str:
    return f"median {values['p50']:.2f} ({values['p5']:.2f} to {values['p95']:.2f} for 90 %)"


@traces.command()
@click.argument("trace", type=_PATH, metavar="TRACE")
@click.option("--range", "reach", type=click.FloatRange(0, min_open=True), required=True, help="Radio range in m.")
@click.option("--out", type=_PATH, required=True, help="The trace of contacts to make.")
@spark_options
def contacts(trace: Path, reach: float, out: Path, spark: SparkOptions) -> None:
    """Make a trace of contacts from positions.

    When which nodes of TRACE are within range of each other.
    """
    from roamcast.pipeline.traces.importing import contacts_trace

    read_about(trace, "positions")
    with spark.session("roamcast traces contacts", heavy=_is_large(trace)) as session:
        about = contacts_trace(session, trace, reach, out)
    _show(out, about)
    click.echo(_scenario(out, about))


@traces.command()
@click.argument("scenario", type=_PATH, metavar="SCENARIO.toml")
@click.option("--format", "form", type=click.Choice(tuple(EXPORTS)), required=True, help="Format of the file.")
@click.option("--out", type=_PATH, required=True, help="The file to write.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the movement.  [default: the scenario's]")
@_tick
@click.option(
    "--corner",
    type=(click.FloatRange(-89, 89), click.FloatRange(-180, 180)),
    default=(0.0, 0.0),
    show_default=False,
    metavar="LAT LON",
    help="For GPX: where on Earth the area's south-west corner is.  [default: 0 0]",
)
def export(scenario: Path, form: str, out: Path, seed: int | None, tick: float, corner: tuple[float, float]) -> None:
    """Write movement for other programmes.

    The movement of a scenario for ns-2 and ns-3, the ONE, BonnMotion, or a map (GPX).
    """
    one = load(scenario)
    if one.area is None or one.links is not None:
        raise ConfigError(f"{scenario}: has links and no positions: there is no movement to export")
    walks = one.moving.walks(one.area, one.nodes, one.seed if seed is None else seed, scenario.parent)
    lines = EXPORTS[form](taken(walks, one.end), one.end, ExportOptions(tick, corner))
    write_file(out, "".join(f"{line}\n" for line in lines))
    click.echo(f"{out}: {one.nodes} nodes, {one.duration:g} s")
