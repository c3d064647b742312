"""Where files are: in folders on this machine, or in an object store.

The rules this file owns:

* Campaigns and traces are written to a POSIX file system that all machines share: renames and locks make each run count
  once, and object stores do not have them (`local_path`).
* A finished campaign may be copied into an object store, and read there: `Store`. Its small tables are fetched, its
  facts stay where they are. Other readers use the same address with their own credentials.
* Schemes other than `file:` and `s3:` are refused by name, or `hdfs:` would become a local folder of that name.
* Spark gets every local path with its scheme, since a cluster's default file system may be another one.
"""

import os
import re
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from roamcast.errors import ConfigError, RoamcastError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_GLOB: Final = str.maketrans({character: f"\\{character}" for character in "\\{}[]*?"})
_S3: Final = ("s3", "s3a")
T = TypeVar("T")

_PATIENCE: Final = 20.0
"""How many seconds an object store may take to answer."""


def scheme_of(text: str) -> str | None:
    """The scheme of a path; None: a local path."""
    found = _SCHEME.match(text)
    return None if found is None or found[1].lower() == "file" else found[1].lower()


def local_path(text: str) -> Path:
    """The local path that a text names, with or without `file:`."""
    scheme = scheme_of(text)
    if scheme is not None:
        raise ConfigError(
            f"{text}: {scheme}: cannot be written to: name a folder that all machines see under "
            "the same name (NFS, for one); a finished campaign goes to an object store with `roamcast upload`"
        )
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(text).path) if _SCHEME.match(text) else text)


def spark_uri(path: Path) -> str:
    """A local path for Spark, escaped because Spark would read some characters as a pattern."""
    return f"file://{str(path.resolve()).translate(_GLOB)}"


@dataclass(frozen=True)
class Store:
    """A folder, here or in an object store. Names of files in it are relative to it, with `/`."""

    root: str
    """A local path, or `s3://bucket/…`."""

    @classmethod
    def at(cls, place: "Path | str | Store") -> "Store":
        if isinstance(place, Store):
            return place
        scheme = scheme_of(str(place))
        if scheme is None:
            return cls(str(local_path(str(place))))
        if scheme not in _S3:
            raise ConfigError(f"{place}: {scheme}: is not a known file system: there are file: and s3:")
        bucket, _, key = str(place).partition(":/")[2].lstrip("/").partition("/")
        if not bucket:
            raise ConfigError(f"{place}: names no bucket")
        return cls(f"s3://{bucket}/{key}".rstrip("/"))

    def __str__(self) -> str:
        return self.root

    @property
    def local(self) -> Path | None:
        """Its path on this machine; None if it is elsewhere."""
        return None if scheme_of(self.root) else Path(self.root)

    def absolute(self) -> "Store":
        """The same store with an absolute path, for processes whose working folder may differ."""
        return self if self.local is None else Store(str(self.local.resolve()))

    def spark_uri(self, name: str) -> str:
        if self.local is not None:
            return spark_uri(self.local / name)
        return f"s3a:{self.root.partition(':')[2]}/{name}".translate(_GLOB)

    def read_table(self, name: str, **options: Any) -> pa.Table:  # noqa: ANN401  # those of pyarrow
        return self._do(name, lambda files, path: pq.read_table(path, filesystem=files, partitioning=None, **options))

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return bytes(file.read())

    def open(self, name: str) -> pa.NativeFile:
        return self._do(name, lambda files, path: files.open_input_file(path))

    def write(self, name: str, content: bytes) -> None:
        """Writes a file; in an object store, whole or not at all."""

        def put(files: pafs.FileSystem, path: str) -> None:
            if self.local is not None:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            with files.open_output_stream(path) as file:
                file.write(content)

        self._do(name, put)

    def sizes(self, folder: str = "", *, recursive: bool = False) -> dict[str, int]:
        """The sizes of the files in a folder, by name; empty if the folder does not exist."""

        def find(files: pafs.FileSystem, path: str) -> dict[str, int]:
            selector = pafs.FileSelector(path, recursive=recursive, allow_not_found=True)
            base = len(self._path().rstrip("/")) + 1
            found = files.get_file_info(selector)
            return {one.path[base:]: one.size for one in found if one.type == pafs.FileType.File}

        return self._do(folder, find)

    def _path(self, name: str = "") -> str:
        base = self.root.removeprefix("s3://") if self.local is None else str(self.local.resolve())
        return f"{base}/{name}" if name else base

    def _do(self, name: str, what: Callable[[pafs.FileSystem, str], T]) -> T:
        """Calls `what`; errors of the store name the file that was wanted."""
        try:
            return what(_filesystem(self.root), self._path(name))
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as problem:
            if self.local is not None:
                raise
            raise RoamcastError(f"{self.root}/{name}: {problem}") from None


@cache
def _filesystem(root: str) -> pafs.FileSystem:
    """The file system of a root. Credentials, region and address of an object store come from the usual `AWS_…`."""
    if scheme_of(root) is None:
        return pafs.LocalFileSystem()
    endpoint = urllib.parse.urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region and not endpoint.netloc:
        region = pafs.resolve_s3_region(root.removeprefix("s3://").partition("/")[0])
    return pafs.S3FileSystem(
        region=region,
        endpoint_override=endpoint.netloc or None,
        scheme=endpoint.scheme or "https",
        connect_timeout=_PATIENCE,
        request_timeout=_PATIENCE,
    )


@contextmanager
def fetched(store: Store, returning: Sequence[str] = ()) -> Iterator[Path]:
    """A local folder with the tables of a campaign, without its facts; `returning` are folders to copy back afterwards.

    For a campaign on this machine, it is the campaign's folder itself.
    """
    if store.local is not None:
        yield store.local
        return
    with tempfile.TemporaryDirectory(prefix="roamcast-") as name:
        folder = Path(name)
        there = store.sizes()
        if not there:
            raise RoamcastError(f"{store}: there is no campaign")
        for file in [*there, *store.sizes("measures")]:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(store.read(file))
        yield folder
        for part in returning:
            for path in sorted((folder / part).rglob("*")):
                if path.is_file():
                    store.write(path.relative_to(folder).as_posix(), path.read_bytes())
