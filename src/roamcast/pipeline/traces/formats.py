"""Detects a file's format: by its name if possible, else by its first lines."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from roamcast.errors import RoamcastError
from roamcast.pipeline.traces import bonnmotion, contact_lists, csv, gpx, ns2, sumo, the_one
from roamcast.pipeline.traces.samples import Read

POSITIONS: Final[dict[str, Callable[[SparkSession, str], Read]]] = {
    "sumo-xml": sumo.read_xml,
    "sumo-csv": sumo.read_csv,
    "sumo-parquet": sumo.read_parquet,
    "ns2": ns2.read,
    "bonnmotion": bonnmotion.read,
    "one": the_one.read_movement,
    "csv": csv.read,
    "gpx": gpx.read,
}
CONTACTS: Final = ("one-connections", "contacts")
FORMATS: Final = (*POSITIONS, *CONTACTS)
_LOOKED_AT: Final = 200


def read_contacts(spark: SparkSession, path: str, format: str, scan: float, observers_only: bool) -> Read:
    if format == "contacts":
        return contact_lists.read(spark, path, scan, observers_only)
    return the_one.read_connections(spark, path)


def tell(path: Path) -> str:
    """The format of a file, or of the first file of a folder."""
    file = min(one for one in path.rglob("*") if one.is_file() and one.name[0] not in "._") if path.is_dir() else path
    name = file.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        return "sumo-parquet" if {"vehicle_id", "timestep_time"} & set(pq.read_schema(file).names) else "csv"
    if name.endswith(".movements"):
        return "bonnmotion"
    if name.endswith(".gpx"):
        return "gpx"
    if name.endswith(".xml"):
        return "sumo-xml"
    first = _first_lines(file)
    for format, pattern in _SIGNS:
        if any(re.search(pattern, line) for line in first):
            return format
    # A line of a contact list may have six numbers, too.
    if len(first) > 1 and re.search(the_one.HEADER, first[0]) and len(first[1].split()) == 4:
        return "one"
    if first and re.search(_CONTACT, first[0]):
        return "contacts"
    raise RoamcastError(f"{path}: its format is not known by its name or first lines: give --format")


_SIGNS: Final = (
    ("sumo-xml", r"^<(\?xml|fcd-export|timestep)"),
    ("ns2", r"^\$(node_|ns_)"),
    ("one-connections", r"^\S+\s+CONN\s+\S+\s+\S+\s+(up|down)\b"),
    ("sumo-csv", r"^[^,]*\btimestep_time\b.*;"),
    ("csv", r"(?i)^(?=.*\b(id|node|user|vehicle)\w*\b)(?=.*\b(x|lat|latitude)\b).*[,;\t]"),
)
"""The formats, in the order in which to try them."""
_CONTACT: Final = r"^\S+[\s,;]+\S+[\s,;]+[\d.]+([\s,;]+[\d.]+)*$"


def _first_lines(file: Path) -> list[str]:
    opened = gzip.open if file.name.endswith(".gz") else open
    with opened(file, "rt", errors="replace") as lines:
        found = [line.strip() for _, line in zip(range(_LOOKED_AT), lines, strict=False)]
    return [line for line in found if line and not line.startswith("#")]
