"""How many examples a property is tried with."""

import os

_ALL = os.environ.get("ROAMCAST_EXAMPLES") == "all"


def examples(count: int, share: int = 3) -> int:
    """A third of them in `make test`, or what `share` says where one takes long; all with `make fuzz`."""
    return count if _ALL else max(10, count // share)
