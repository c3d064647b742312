"""The width of explanations."""

import shutil
from typing import Final

NARROWEST: Final = 80
WIDEST: Final = 120


def screen_width() -> int:
    """The terminal's width, limited to what reads well; the minimum without a terminal."""
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns))
