"""Replaces folders atomically: a folder is complete or not there."""

import shutil
from pathlib import Path


def swap_in(new: Path, target: Path) -> None:
    """Moves a finished folder into place. The folder that was there before is removed only after that."""
    former = new.with_suffix(".former")
    if target.exists():
        target.rename(former)
    new.rename(target)
    shutil.rmtree(former, ignore_errors=True)
