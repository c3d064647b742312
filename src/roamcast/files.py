"""Folders that are whole or not there."""

import shutil
from pathlib import Path


def swap_in(new: Path, target: Path) -> None:
    """Puts a finished folder in its place. What stood there before goes only when the new one does stand there."""
    former = new.with_suffix(".former")
    if target.exists():
        target.rename(former)
    new.rename(target)
    shutil.rmtree(former, ignore_errors=True)
