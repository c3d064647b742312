"""What is printed on a terminal: its width, tables whose cells are folded, never cut, and files to start from."""

import shutil
from collections.abc import Collection, Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

NARROWEST: Final = 80
WIDEST: Final = 120


def screen_width() -> int:
    """The terminal's width, limited to what reads well; the minimum without a terminal."""
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns))


def example(name: str) -> str:
    """A small, commented file to start from, which `--example` prints."""
    return (resources.files("roamcast.cli") / "examples" / f"{name}.toml").read_text(encoding="utf-8")


def plain_console(*, stderr: bool = False) -> "Console":
    """A console that prints text as it is: names may have brackets."""
    from rich.console import Console

    return Console(markup=False, highlight=False, stderr=stderr)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[str] = (),
    *,
    unbroken: Collection[str] = (),
    title: str | None = None,
    caption: str | None = None,
) -> "Table":
    """A table with the columns named in `right` flush right; those in `unbroken` stay on one line."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    made.caption, made.caption_justify = caption, "left"
    for name in head:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in unbroken)
    for row in rows:
        made.add_row(*row)
    return made
