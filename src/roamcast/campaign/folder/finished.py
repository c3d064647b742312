"""The finished runs of a campaign that is still at work: their records and facts, in files of their own or packed.

The manifest and the index of packed facts are written when all runs are done; until then, `done/` has everything.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa

from roamcast.analysis.run import Run, Worlds
from roamcast.campaign.folder.layout import done_file
from roamcast.campaign.folder.packs import read_packs
from roamcast.campaign.folder.run_file import Record, read_facts, read_record
from roamcast.campaign.folder.stored import INDEX_ARROW, Stored
from roamcast.sim.scenario.scenario import Scenario
from roamcast.storage import Store


class FinishedRuns:
    """Those in a folder. A run that is packed meanwhile raises FileNotFoundError once: ask again."""

    def __init__(self, out: Path) -> None:
        self._out: Final = out

    @cached_property
    def _packed(self) -> tuple[dict[str, Record], Stored]:
        packs = read_packs(self._out).values()
        index = pa.Table.from_pylist([row for one in packs for row in one.index()], INDEX_ARROW)
        records = {run: record for one in packs for run, record in one.runs.items()}
        return records, Stored(Store.at(self._out), index)

    def open(self, name: str, scenario: Scenario, worlds: Worlds | None = None) -> tuple[Record, Run] | None:
        """A run's record, and the run as measures see it; None if it is not there."""
        path = done_file(self._out, name)
        record = read_record(path)
        if record is None:
            records, stored = self._packed
            record = records.get(name)
        if record is None:
            return None
        own = record if "blocks" in record else None

        def read(table: str, columns: Sequence[str] | None, dictionaries: Sequence[str]) -> pa.Table:
            if own is None:
                return stored.read(table, name, columns, dictionaries)
            rows = read_facts(path, own, table)
            return rows if columns is None else rows.select(list(columns))

        tables = [table for table, rows in record["row"]["rows"].items() if rows]
        return record, Run(name, scenario, tables, read, worlds)
