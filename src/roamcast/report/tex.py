"""Names as text for TeX, which would take some of their characters for commands."""

from typing import Final

_TEXT: Final = {
    **{character: f"\\{character}" for character in "&%#_{}"},
    "$": r"\textdollar{}",
    "±": r"$\pm$",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def tex_text(text: str) -> str:
    return "".join(_TEXT.get(character, character) for character in text)
