"""Rows of `tree` for tests."""

from pipeline.measured import MS

Place = tuple[int, int, str, int, int | None, list[int], int | None]
"""A row of `tree`."""


def place(at: int, node: int, change: str, cause: int, parent: int | None, *children: int) -> Place:
    """At so many milliseconds; the leader does not matter here."""
    return at * MS, node, change, cause, parent, list(children), None
