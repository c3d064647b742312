"""The recorder: rows and columns of a table reach the sink in the order in which they were added."""

from roamcast.facts.recorder import Recorder
from roamcast.facts.sinks import MemorySink


def test_rows_and_columns_keep_their_order() -> None:
    sink = MemorySink()
    recorder = Recorder(sink)
    recorder.add("note", 0, "first", 1)
    recorder.add_columns("note", (1, 2), ("second", "third"), (2, 3))
    recorder.add("note", 3, "fourth", 4)
    recorder.close()
    rows = [tuple(row.values()) for row in sink.table("note").to_pylist()]
    assert rows == [(0, "first", 1), (1, "second", 2), (2, "third", 3), (3, "fourth", 4)]
