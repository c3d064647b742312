"""Detects a file's format: by its name if possible, else by its first lines."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from roamcast.errors import RoamcastError
from roamcast.pipeline.traces import bonnmotion, contact_lists, gpx, ns2, sumo, the_one
from roamcast.pipeline.traces.samples import Read
from roamcast.pipeline.traces.text import files_of, first_lines
from roamcast.sim.mobility.lines import Refused
from roamcast.sim.mobility.samples import SampleColumns

POSITIONS: Final[dict[str, Callable[[SparkSession, str], Read]]] = {
    "sumo-xml": sumo.read_xml,
    "sumo-csv": sumo.read_csv,
    "sumo-parquet": sumo.read_parquet,
    "ns2": ns2.read,
    "bonnmotion": bonnmotion.read,
    "one": the_one.read_movement,
    "gpx": gpx.read,
}
CSV: Final = "csv"
CONTACTS: Final = ("one-connections", "contacts")
_LOOKED_AT: Final = 200


def read_contacts(spark: SparkSession, path: str, format: str, scan: float, observers_only: bool) -> Read:
    if format == "contacts":
        return contact_lists.read(spark, path, scan, observers_only)
    return the_one.read_connections(spark, path)


def tell(path: Path) -> str:
    """The format of a file, or of the first file of a folder."""
    file = _first(path) if path.is_dir() else path
    name = file.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        return "sumo-parquet" if "timestep_time" in pq.read_schema(file).names else CSV
    if name.endswith(".movements"):
        return "bonnmotion"
    if name.endswith(".gpx"):
        return "gpx"
    if name.endswith(".xml"):
        return "sumo-xml"
    first = first_lines(file, _LOOKED_AT)
    for format, pattern in _SIGNS:
        if any(re.search(pattern, line) for line in first):
            return format
    if first and _is_table(first[0]):
        return CSV
    # A line of a contact list may have six numbers, too.
    if len(first) > 1 and re.search(the_one.HEADER, first[0]) and len(first[1].split()) == 4:
        return "one"
    if first and re.search(_CONTACT, first[0]):
        return "contacts"
    if name.endswith((".csv", ".tsv")):
        return CSV  # it says which column is missing
    raise RoamcastError(f"{path}: its format is not known by its name or first lines: give --format")


def _first(folder: Path) -> Path:
    files = files_of(folder)
    if not files:
        raise RoamcastError(f"{folder}: there is no file in it")
    return files[0]


def _is_table(line: str) -> bool:
    try:
        SampleColumns.of_line(line)
    except Refused:
        return False
    return True


_SIGNS: Final = (
    ("sumo-xml", r"^<(\?xml|fcd-export|timestep)"),
    ("ns2", r"^\$(node_|ns_)"),
    ("one-connections", r"^\S+\s+CONN\s+\S+\s+\S+\s+(up|down)\b"),
    ("sumo-csv", r"^[^,]*\btimestep_time\b.*;"),
)
"""The formats, in the order in which to try them."""
_CONTACT: Final = r"^\S+[\s,;]+\S+[\s,;]+[\d.]+([\s,;]+[\d.]+)*$"
