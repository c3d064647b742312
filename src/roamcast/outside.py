"""Loads what a user's own Python file defines, such as a protocol or a measure, named as `path/to/file.py:name`."""

import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from roamcast.errors import RoamcastError


def is_file_name(name: str) -> bool:
    return ":" in name


def from_file(name: str, folder: Path, what: str, error: type[RoamcastError] = RoamcastError) -> object:
    """What the file defines under that name; a relative path starts in `folder`. Errors say `what` was expected."""
    file, _, attribute = name.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise error(f"{what} {name!r}: there is no file {path}")
    try:
        contents = _contents(path.resolve(), path.stat().st_mtime_ns)
    except (Exception, SystemExit) as problem:
        raise error(f"{what} {name!r}: {path} raised {type(problem).__name__}: {problem}") from problem
    if attribute not in contents:
        raise error(f"{what} {name!r}: {path} defines no {attribute!r}")
    return contents[attribute]


@functools.cache
def _contents(path: Path, changed: int) -> dict[str, Any]:
    """What a file defines. Runs it once per change, as a module that stays loaded: annotations are looked up in it."""
    module = ModuleType(f"{path}@{changed}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_bytes(), path, "exec"), vars(module))
    return vars(module)
