"""The folder of a run's facts: complete or not there.

It is written to a temporary folder and renamed when it is complete. A folder is replaced only with `--force`, and only
if it was a run's folder.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from roamcast.campaign.folder.recorded import RUN_FILE
from roamcast.errors import RoamcastError
from roamcast.files import swap_in


def file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"


@contextlib.contextmanager
def new_folder(place: Path, force: bool) -> Iterator[Path]:
    """A temporary folder beside `place` to fill; it is renamed to `place` if all goes well, and removed otherwise."""
    _check_free(place, force)
    target = place.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        _check_free(place, force)  # again: another run may have created it meanwhile
        swap_in(partial, target)
    except OSError as problem:
        raise RoamcastError(f"{place}: cannot be written: {problem.strerror or problem}") from problem
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_free(place: Path, force: bool) -> None:
    if place.exists() and not place.is_dir():
        raise RoamcastError(f"{place}: is a file, not a folder")
    if not place.is_dir() or not any(place.iterdir()):
        return
    if not (place / RUN_FILE).is_file():
        raise RoamcastError(
            f"{place}: is not empty and is not the folder of a run ({RUN_FILE} is missing); choose another with --out"
        )
    if not force:
        raise RoamcastError(f"{place}: holds an earlier run; replace it with --force, or choose another with --out")
