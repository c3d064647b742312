"""How wide explanations are."""

import shutil
from typing import Final

NARROWEST: Final = 80
WIDEST: Final = 120


def screen_width() -> int:
    """Columns to write in: those of the terminal, within what reads well; without a terminal, the fewest."""
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns))
