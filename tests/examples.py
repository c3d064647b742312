"""How many examples a property is tried with."""

import os

_ALL = os.environ.get("ROAMCAST_EXAMPLES") == "all"
_SHARE = 3


def examples(count: int) -> int:
    """A third of them in `make test`, all with `make fuzz`."""
    return count if _ALL else max(10, count // _SHARE)
