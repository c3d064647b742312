"""Paths on the command line: all may begin with `file:`, those only read with `s3:`; other schemes are refused."""

from pathlib import Path
from typing import Any

import click

from roamcast.storage import Store, local_path


class LocalPath(click.ParamType[Path]):
    """A file or folder that this machine sees."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401  # as click has it
        return value if isinstance(value, Path) else local_path(str(value))


class Folder(click.ParamType[Store]):
    """The folder of a finished campaign, here or in an object store."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Store:  # noqa: ANN401  # as click has it
        return Store.at(value)
