"""What a curve looks like, in the page and in figures for papers: colour, marker and dashes.

The rule this file owns: colour is never the only difference. Every curve has its own marker and dashes, so that figures
can be read in grey and by the colour-blind; the colours themselves are distinct for them, and of different lightness.
"""

from typing import Final

COLOURS: Final = (
    *("#0072b2", "#d55e00", "#00805c", "#b0508a", "#9a6b00", "#2a8fc7", "#555555", "#7a4fbf"),
    *("#8c1d18", "#1f2f7a", "#5c8a00", "#d1178a"),
)
"""For light pages and paper, after Okabe and Ito, dark enough for thin lines; `figure.css` has the dark mode's."""
MARKERS: Final = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.7 -3.7H3.7V3.7H-3.7Z",
    "M0 -5L4.6 3.4H-4.6Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.6 -3.4H-4.6Z",
    "M-1.6 -4.8H1.6V-1.6H4.8V1.6H1.6V4.8H-1.6V1.6H-4.8V-1.6H-1.6Z",
    "M-4.6 0L-2.3 -4H2.3L4.6 0L2.3 4H-2.3Z",
    "M0 -5.4L1.6 -1.6L5.2 -1.6L2.3 0.9L3.3 4.6L0 2.4L-3.3 4.6L-2.3 0.9L-5.2 -1.6L-1.6 -1.6Z",
    "M0 -5L4.8 -1.5L2.9 4H-2.9L-4.8 -1.5Z",
    "M0 -5.6L3 0L0 5.6L-3 0Z",
    "M-5 0L3.4 -4.6V4.6Z",
    "M-4.6 -2.6L-2.6 -4.6L0 -2L2.6 -4.6L4.6 -2.6L2 0L4.6 2.6L2.6 4.6L0 2L-2.6 4.6L-4.6 2.6L-2 0Z",
)
"""SVG paths, centred at the origin."""
PAPER_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "H", "*", "p", "d", "<", "X")
"""The same, by their names in matplotlib."""
DASHES: Final = (
    *(None, "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "5 2 1 2 1 2", "1 2"),
    *("9 2 9 2 2 2", "3 5", "14 3 3 3", "6 5"),
)


def colour_of(look: int) -> str:
    """The style class of a colour."""
    return f"c{look % len(COLOURS)}"


def marker_of(look: int) -> str:
    return MARKERS[look % len(MARKERS)]


def dash_of(look: int) -> str | None:
    """Curves that share colour and marker differ in their dashes."""
    return DASHES[(look + look // len(COLOURS)) % len(DASHES)]
