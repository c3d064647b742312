"""Paths on the command line: `file:` may stand before one, and other schemes are refused by name."""

from pathlib import Path
from typing import Any

import click

from roamcast.pipeline.storage import local_path


class LocalPath(click.ParamType[Path]):
    """A file or folder that this machine sees."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401  # as click has it
        return value if isinstance(value, Path) else local_path(str(value))
