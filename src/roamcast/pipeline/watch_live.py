"""A network of live nodes, from the parts of facts that they write: who is silent, and what arrived so far.

The rules this file owns:

* **A fact counts once.** A fact is its row, put on one clock by its node's epoch; the same row from a part and from the
  part that it was merged into is one fact.
* **The watermark** is the time up to which every node that is not silent has written its facts. An event counts, as
  delivered or missed, when the watermark has passed its publication by its lifetime, or by `wait` if it has none. Until
  then it is under way: to count what arrived early, and not what may still arrive, would flatter.
* A node is **silent** when its next part is overdue three times over, by the time between its last two.
* Only events of the last `window` seconds before the watermark are kept and counted, so that a network may run for
  years.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from roamcast.analysis.measures.catalogue import CATALOGUE
from roamcast.analysis.run import Run
from roamcast.campaign.folder.recorded import RUN_FILE
from roamcast.errors import RoamcastError
from roamcast.facts.schema import TABLES
from roamcast.live.parts import EPOCH, NAME
from roamcast.pipeline.spread import slots, spread
from roamcast.pipeline.watch import File, Snapshot, Tables, decoded, encoded
from roamcast.sim.scenario.scenario import Scenario
from roamcast.units import SECOND

_KEPT: Final = ("subscribe", "publish", "event_attribute", "deliver")
_READ: Final = (*_KEPT, "series", "transmit", "tree")
_TIMES: Final = ("time", "published")
_NODES: Final = pa.schema(
    [
        ("folder", pa.string()),
        ("node", pa.int64()),
        ("until", pa.int64()),
        ("written", pa.float64()),
        ("gap", pa.float64()),
    ]
)
"""A folder of parts: its node; until when its facts are there, ns since 1970; when its latest part was written, and how
many seconds after the one before."""
_TREE: Final = pa.schema(
    [("time", pa.int64()), ("node", pa.int64()), ("parent", pa.int64()), ("children", pa.list_(pa.int64()))]
)
"""Each node's latest position in a tree."""
_PARTS: Final = pa.schema([("folder", pa.string()), ("table", pa.string()), ("content", pa.binary())])
_LEAST_GAP: Final = 5.0
_OVERDUE: Final = 3
SHOWN: Final = ("delivery", "delay_mean", "delay_p95", "pairs_expected", "pairs_delivered", "events", "hops_mean")


class LiveWatched:
    """Folders of parts, or folders with such folders in them."""

    pattern = "*-*.parquet"

    def __init__(self, folders: Sequence[Path], wait: float, window: float) -> None:
        self.folders: Sequence[Path] = sorted({folder.resolve() for folder in folders})
        self._wait, self._window = round(wait * SECOND), round(window * SECOND)
        for folder in self.folders:
            if not folder.is_dir():
                raise RoamcastError(
                    f"{folder}: is not a folder: name a campaign's, or those of `roamcast node --facts`"
                )
            if (folder / RUN_FILE).is_file():
                raise RoamcastError(f"{folder}: is a finished run: `roamcast replay` and `roamcast why` show it")

    def absorb(self, spark: SparkSession, known: Tables, files: Sequence[File]) -> Tables:
        named = [(file, match) for file in files if (match := NAME.fullmatch(file.path.name))]
        paths = [str(file.path) for file, match in named if match["table"] in _READ]
        nodes = {row["folder"]: row for row in known.get("nodes", _NODES.empty_table()).to_pylist()}
        for folder, written in groupby(
            sorted((str(file.path.parent), file.written) for file, _ in named), lambda at: at[0]
        ):
            _heard(
                nodes.setdefault(folder, dict.fromkeys(_NODES.names) | {"folder": folder}), [at for _, at in written]
            )
        rows: dict[str, list[pa.Table]] = {table: [known[table]] if table in known else [] for table in _KEPT}
        trees = known.get("tree", _TREE.empty_table()).to_pylist()
        for one in self._parts(spark, paths).to_pylist():
            part = decoded(one["content"])
            if one["table"] in _KEPT:
                rows[one["table"]].append(part)
            _note(nodes[one["folder"]], one["table"], part)
            if one["table"] == "tree":
                trees += part.to_pylist()
        made = {table: _distinct(some, TABLES[table]) for table, some in rows.items()}
        made["nodes"] = pa.Table.from_pylist([nodes[folder] for folder in sorted(nodes)], _NODES)
        latest = {row["node"]: row for row in sorted(trees, key=lambda row: int(row["time"]))}
        made["tree"] = pa.Table.from_pylist([latest[node] for node in sorted(latest)], _TREE)
        return self._recent(made)

    def _parts(self, spark: SparkSession, paths: Sequence[str]) -> pa.Table:
        """The rows of these parts, read in Spark's tasks."""
        if not paths:
            return _PARTS.empty_table()
        tasks = min(len(paths), 4 * slots(spark))
        return spread(spark, [pa.table({"path": paths[task::tasks]}) for task in range(tasks)], _read_all, _PARTS)

    def _recent(self, known: Tables) -> Tables:
        """Without the events before the window, and what belongs to them."""
        latest = pc.max(known["nodes"]["until"]).as_py()
        if latest is None:
            return known
        published = known["publish"]
        old = published.filter(pc.field("time") < latest - self._window)["event"].combine_chunks()
        of_events = {table: known[table] for table in ("publish", "event_attribute", "deliver")}
        kept = {table: rows.filter(pc.invert(pc.is_in(rows["event"], old))) for table, rows in of_events.items()}
        kept["deliver"] = kept["deliver"].filter(pc.field("time") >= latest - self._window)
        return {**known, **kept}

    # --- What to show -----------------------------------------------------------------------------------------------

    def snapshot(self, known: Tables, now: float, looked: float) -> Snapshot:
        nodes = known.get("nodes", _NODES.empty_table()).to_pylist()
        for row in nodes:
            row["silent"] = looked - row["written"] > _OVERDUE * max(_LEAST_GAP, row["gap"] or 0)
        until = [row["until"] for row in nodes if row["until"] is not None]
        speaking = [row["until"] for row in nodes if row["until"] is not None and not row["silent"]]
        watermark = min(speaking) if speaking else max(until, default=0)
        publish = known.get("publish", TABLES["publish"].empty_table())
        due = pc.add(publish["time"], pc.fill_null(publish["lifetime"], self._wait))
        settled = publish.filter(pc.less_equal(due, watermark))
        return {
            "watched": "network",
            "folders": [str(folder) for folder in self.folders],
            "time": now,
            "watermark": watermark / SECOND if until else None,
            "window_s": self._window / SECOND,
            "wait_s": self._wait / SECOND,
            "nodes": [
                {
                    "node": row["node"],
                    "folder": row["folder"],
                    "silent": row["silent"],
                    "seconds_since_part": max(0.0, now - row["written"]),
                }
                for row in nodes
            ],
            "events": {
                "published": publish.num_rows,
                "settled": settled.num_rows,
                "under_way": publish.num_rows - settled.num_rows,
            },
            "measures": _measures(known, settled),
            "islands": _islands(known, {row["node"] for row in nodes if not row["silent"]}),
        }


def _measures(known: Tables, settled: pa.Table) -> dict[str, float | None]:
    """Of the settled events, by the functions that measure every run."""
    if not settled.num_rows:
        return dict.fromkeys(SHOWN)
    deliver = known["deliver"]
    place = pc.index_in(deliver["event"], settled["event"].combine_chunks())
    deliver = deliver.filter(place.is_valid())
    published = settled["time"].take(place.drop_null())
    column = deliver.schema.get_field_index("published")
    # Only the publisher's node knows when. Clocks of two devices differ: nothing arrives before it was published.
    deliver = deliver.set_column(column, "published", pc.min_element_wise(published, deliver["time"]))
    tables = {
        "publish": settled,
        "deliver": deliver,
        **{name: known[name] for name in ("subscribe", "event_attribute")},
    }
    nodes = int(max(pc.max(tables[name]["node"]).as_py() or 0 for name in ("publish", "deliver", "subscribe"))) + 1
    run = Run.over(tables, Scenario(nodes=nodes, duration=1.0), "live")
    return CATALOGUE.values(run, SHOWN)


def _islands(known: Tables, speaking: set[int | None]) -> int | None:
    """How many parts the links of the tree leave of the nodes that are not silent; None: no node says. Both ends must
    agree on a link."""
    trees = [row for row in known.get("tree", _TREE.empty_table()).to_pylist() if row["node"] in speaking]
    children = {row["node"]: set(row["children"] or ()) for row in trees}
    island = {node: node for node in children}

    def find(node: int) -> int:
        while island[node] != node:
            node = island[node]
        return node

    for row in trees:
        node, parent = row["node"], row["parent"]
        if node in children.get(parent, ()):
            island[find(node)] = find(parent)
    return sum(island[node] == node for node in island) or None


def _heard(node: dict[str, Any], written: Sequence[float]) -> None:
    """Notes when parts of a node were written; files of one part differ by milliseconds."""
    for at in sorted(written):
        if node["written"] is None:
            node["written"] = at
        elif at > node["written"]:
            node["gap"] = at - node["written"] if at - node["written"] > 1 else node["gap"]
            node["written"] = at


def _note(node: dict[str, Any], table: str, part: pa.Table) -> None:
    """Notes which node it is, and until when its facts are there."""
    if "node" in part.column_names and part.num_rows:
        node["node"] = part["node"][0].as_py()
    times = part["until"] if table == "series" else part["time"] if "time" in part.column_names else None
    if times is not None and len(times):
        node["until"] = max(node["until"] or 0, pc.max(times).as_py())


def _distinct(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Each row once, in an order of their own."""
    whole = pa.concat_tables([part.select(schema.names).cast(schema) for part in parts] or [schema.empty_table()])
    once = whole.group_by(schema.names).aggregate([]).cast(schema)
    first = [name for name in ("time", "event") if name in schema.names]
    return once.sort_by([(name, "ascending") for name in dict.fromkeys([*first, *schema.names])])


def _read_all(work: pa.Table) -> pa.Table:
    found = []
    for path in map(Path, work["path"].to_pylist()):
        named = NAME.fullmatch(path.name)
        assert named is not None
        try:
            rows = _on_one_clock(pq.read_table(path, partitioning=None), named["table"])
        except (OSError, pa.ArrowException):
            continue  # merged meanwhile, and its rows come with the merged part; or damaged, as its node has logged
        found.append({"folder": str(path.parent), "table": named["table"], "content": encoded(rows)})
    return pa.Table.from_pylist(found, _PARTS)


def _on_one_clock(rows: pa.Table, table: str) -> pa.Table:
    """A part whose times are ns since 1970; of the counters, only until when they go and whose they are."""
    epoch = int((rows.schema.metadata or {}).get(EPOCH, 0))
    if table == "series":
        seconds = rows.group_by([]).aggregate([("second", "max")])["second_max"].drop_null()
        return pa.table({"until": pa.array([(one + 1) * SECOND + epoch for one in seconds.to_pylist()], pa.int64())})
    if table == "transmit":
        return rows.select(["node"]).slice(0, 1)
    for name in _TIMES:
        if name in rows.column_names:
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pc.add(rows[name], epoch))
    return rows
