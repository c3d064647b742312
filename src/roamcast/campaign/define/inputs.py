"""The files that runs read besides their scenarios: named by their contents, and stored once in a campaign's folder.

The rules this file owns:

* An input is identified by the hash of its contents. A run has that hash and a name, never the contents: however many
  runs read a recording of 200 MB, it is stored once, in `files/<hash>/<name>`, and every task reads it there.
* What runs is what was planned: a file that changes between planning and storing is refused.
* A folder, such as an imported trace, is an input like a file. Its hash is that of its files' names and contents.
"""

import functools
import hashlib
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from roamcast.errors import RoamcastError

FILES: Final = "files"
"""The folder of stored inputs in a campaign's folder."""
_DIGITS: Final = 16
_SMALL: Final = 1 << 20
"""Inputs up to this many bytes stay in memory after planning, so that their files may be edited or moved."""


@dataclass(frozen=True)
class Input:
    """What a run knows about a file that it reads."""

    name: str
    digest: str
    imports: tuple[str, ...] = ()
    """For a Python file: roamcast's modules that it imports."""

    @property
    def place(self) -> str:
        """Where it is stored, below `FILES`."""
        return f"{self.digest[:_DIGITS]}/{self.name}"


Files = Mapping[str, Input]
"""The inputs of a run, by their role in it."""


@dataclass
class Sources:
    """Where the inputs of a plan come from; for the process that plans, not for tasks."""

    _found: dict[Input, Path | bytes] = field(default_factory=dict)

    def add(self, known: Input, path: Path) -> None:
        if known not in self._found:
            small = path.is_file() and path.stat().st_size <= _SMALL
            self._found[known] = path.read_bytes() if small else path

    def store(self, out: Path) -> None:
        """Copies every input into the folder, unless it is there. Each is copied whole or not at all."""
        for known, source in self._found.items():
            place = out / FILES / known.place
            if place.exists():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{known.name}.{uuid.uuid4().hex}")
            if isinstance(source, bytes):
                draft.write_bytes(source)
            elif source.is_dir():
                shutil.copytree(source, draft)
            else:
                shutil.copyfile(source, draft)
            if digest(draft) != known.digest:
                raise RoamcastError(f"{known.name}: has changed since the campaign was planned: start it again")
            draft.rename(place)


def digest(path: Path) -> str:
    """The digest of a file's contents, or of all files in a folder."""
    if not path.is_dir():
        return _digest(path, path.stat().st_mtime_ns, path.stat().st_size)
    whole = hashlib.sha256()
    for part in contents(path):
        whole.update(f"{part.relative_to(path).as_posix()} {digest(part)}\n".encode())
    return whole.hexdigest()


def contents(folder: Path) -> Iterator[Path]:
    """The files in a folder, by name, without hidden ones."""
    yield from sorted(
        part for part in folder.rglob("*") if part.is_file() and not part.relative_to(folder).parts[-1].startswith(".")
    )


@functools.cache
def _digest(path: Path, _changed: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
