"""`roamcast figure`: one figure of a campaign as a file, for a paper or slides."""

from pathlib import Path
from typing import Final

import click

from roamcast.cli.completion import complete_measures
from roamcast.cli.options import FILE
from roamcast.errors import RoamcastError
from roamcast.files import write_file

FORMATS: Final = ("pdf", "svg", "png", "pgf")


@click.command()
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.argument("name", metavar="MEASURE", shell_complete=complete_measures)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="File format; pgf needs an installed TeX.  [default: as --out ends, else pdf]",
)
@click.option("--width", default="3.5in", metavar="LENGTH", help="Width of the figure, in in, cm, mm or pt.")
@click.option("--height", metavar="LENGTH", help="Height of the figure.  [default: what suits the width]")
@click.option(
    "--font-size", type=click.FloatRange(3, 40), metavar="PT", help="Size of the text.  [default: 8, or the style's]"
)
@click.option("--style", metavar="NAME", help="A style sheet of matplotlib: its name, or a file.  [default: ours]")
@click.option(
    "--scale",
    type=click.Choice(["auto", "fit", "zero", "log"]),
    default="auto",
    help="The y axis: around the data, from 0 (shares: 0 to 1), or logarithmic; auto takes a logarithm if curves "
    "differ by more than 30 times.",
)
@click.option("--over", metavar="AXIS", help="The x axis, if the measure is drawn over several.")
@click.option("--experiment", metavar="NAME", help="The experiment, if several have such a figure.")
@click.option("--out", "file", type=FILE, help="The file to write.  [default: MEASURE.FORMAT]")
def figure(
    out: Path,
    name: str,
    kind: str | None,
    width: str,
    height: str | None,
    font_size: float | None,
    style: str | None,
    scale: str,
    over: str | None,
    experiment: str | None,
    file: Path | None,
) -> None:
    """Draw one figure of a campaign, for a paper.

    OUT is the campaign's folder; the path of the new file is printed. MEASURE is a measure, the id of a figure, or
    `causes`. Curves have the same colours, markers and dashes in every figure of a campaign, and in its report;
    they can be told apart in grey and by colour-blind readers.
    """
    from roamcast.report.find import find_figure
    from roamcast.report.paper import FigureLook, length, render
    from roamcast.report.source import read_report_data

    suffix = file.suffix[1:].lower() if file else ""
    if file and kind is None and suffix not in FORMATS:
        raise RoamcastError(f"--out {file}: ends in none of {', '.join(f'.{one}' for one in FORMATS)}: give --format")
    kind = kind or suffix or "pdf"
    look = FigureLook(length(width), length(height) if height else None, font_size, style, scale)
    drawn = find_figure(read_report_data(out), name, experiment, over)
    target = file or Path(f"{name}.{kind}")
    write_file(target, render(drawn, kind, look))
    click.echo(target)
