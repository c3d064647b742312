"""The parameters of a summary: the size of its Bloom vectors, its budget, and which of the parts are in use."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from roamcast.content.summary.bloom import MAX_BITS, MAX_HASHES, MIN_BITS
from roamcast.errors import ContentError

MIN_BUDGET: Final = 64
MAX_BUDGET: Final = 1 << 16


def check_budget(budget: int) -> None:
    if not MIN_BUDGET <= budget <= MAX_BUDGET:
        raise ContentError(f"a summary's budget must be from {MIN_BUDGET} to {MAX_BUDGET} bytes, not {budget}")


class SummaryParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a summary is made. The paper gives no numbers; docs/content.md has what these cost and give."""

    bits: Annotated[
        int,
        Meta(ge=MIN_BITS, le=MAX_BITS, description="bits of a Bloom vector, a power of two (the m of the formulas)"),
    ] = 256
    hashes: Annotated[int, Meta(ge=1, le=MAX_HASHES, description="bits that a string sets in a vector (k)")] = 3
    use_eal: Annotated[
        bool, Meta(description="keep which elements belong together; without, one of them is enough")
    ] = True
    use_aec: Annotated[bool, Meta(description="keep numbers and booleans; without, their elements must be present")] = (
        True
    )
    use_sec: Annotated[bool, Meta(description="keep strings; without, their elements must be present")] = True
    association: Annotated[bool, Meta(description="keep which values, affixes and ranges belong together")] = False
    budget: Annotated[int, Meta(ge=MIN_BUDGET, le=MAX_BUDGET, description="most bytes of a summary")] = 16384

    def __post_init__(self) -> None:
        if not MIN_BITS <= self.bits <= MAX_BITS or self.bits & (self.bits - 1):
            raise ContentError(f"'bits' must be a power of two from {MIN_BITS} to {MAX_BITS}, not {self.bits}")
        if not 1 <= self.hashes <= MAX_HASHES:
            raise ContentError(f"'hashes' must be from 1 to {MAX_HASHES}, not {self.hashes}")
        check_budget(self.budget)


DEFAULTS: Final = SummaryParams()
