"""The errors roamcast raises on purpose.

Every one names the thing that is wrong and the rule it breaks. `ValueError` is a base because msgspec turns a
`ValueError` raised while a struct is being decoded into its own `ValidationError`: a value that is wrong when built
by hand is then just as wrong when it arrives in a frame or a file.
"""

_BEFORE, _AFTER = 72, 32
"""How much of a long line a `SyntaxProblem` shows around its place."""


class RoamcastError(Exception):
    """Any error that a caller may catch and show to a person as it is."""

    exit_code: int = 2
    """The exit code of a command that ends with this error; 2: the request was wrong."""


class ConfigError(RoamcastError, ValueError):
    """A setting that cannot be used: the text names the field, its value and the rule."""


class ContentError(RoamcastError, ValueError):
    """An event, a constraint or a filter that cannot exist."""


class SyntaxProblem(ContentError):
    """A text that cannot be read, with the place where reading stopped.

    `str()` gives three lines: what was expected, the offending line (of a long one, the part around the place), and a
    caret under the place.
    """

    def __init__(self, expected: str, text: str, position: int) -> None:
        self.expected = expected
        self.text = text
        self.position = position
        start = max(text.rfind("\n", 0, position) + 1, position - _BEFORE)
        end = text.find("\n", position)
        line = text[start : min(end if end >= 0 else len(text), position + _AFTER)]
        # A tab or another control character would move the caret away from its place.
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
        super().__init__(f"at position {position}: {expected}\n  {shown}\n  {' ' * (position - start)}^")
