"""Writes files and folders that are complete or not there."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from roamcast.config.errors import decode_bytes
from roamcast.errors import RoamcastError

T = TypeVar("T")


@contextlib.contextmanager
def writing(place: Path) -> Iterator[None]:
    """Errors of the file system while a file or a folder is written, as messages for people with its name."""
    try:
        yield
    except OSError as problem:
        raise RoamcastError(f"{place}: cannot be written: {problem.strerror or problem}") from problem


def write_file(file: Path, content: str | bytes) -> None:
    """Writes a file whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    draft = file.with_name(f".{file.name}.{os.getpid()}.partial")
    with writing(file):
        if file.exists() and not file.is_file():  # a pipe or a device cannot be replaced
            file.write_bytes(data)
            return
        try:
            draft.write_bytes(data)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which takes its place if all goes well, and is removed otherwise."""
    target = place.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    with writing(place):
        try:
            partial.mkdir(parents=True)
            yield partial
            former = partial.with_suffix(".former")  # removed only when the new folder is in its place
            if target.exists():
                target.rename(former)
            partial.rename(target)
            shutil.rmtree(former, ignore_errors=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def read_json(file: Path, kind: type[T]) -> T:
    """A value of this type, from JSON."""
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise RoamcastError(f"{file}: cannot be read: {problem.strerror}") from problem
    return decode_bytes(content, kind, f"{file}: cannot be read", RoamcastError, "JSON")


def write_json(file: Path, value: object) -> None:
    """Writes a value as JSON, for people to read too."""
    write_file(file, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
