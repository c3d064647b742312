"""Why an event did not reach a subscriber: the vocabulary.

The rule this file owns: a missed pair (event, subscriber) has one cause. Where several nodes could have brought the
event to the subscriber and failed for different reasons, the one that came nearest counts: `NEAREST` has the causes in
that order. A copy that was on the air and was lost came nearer than one that was never sent.
"""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """One word or two for a table; `MEANING` has a sentence for each."""

    NOT_SUBSCRIBED = "not subscribed"
    AWAY = "subscriber away"
    NO_PATH = "no path"
    NO_PATH_THEN = "no path then"
    TREE_BROKEN = "tree link missing"
    COLLISION = "collision"
    HALF_DUPLEX = "half duplex"
    RANDOM_LOSS = "random loss"
    PARTIAL = "not all of it"
    OUT_OF_RANGE = "out of range"
    QUEUE_FULL = "queue full"
    RUN_ENDED = "run ended"
    GIVEN_UP = "given up"
    LOCAL_MINIMUM = "local minimum"
    SUPPRESSED = "suppressed"
    NOT_CHOSEN = "not chosen"
    EXPIRED = "expired"
    CACHE_FULL = "cache full"
    NOT_WANTED = "not wanted"
    NO_ROUTE = "no route"
    NOT_HANDED_OVER = "not handed over"
    SILENT = "not sent"
    NOT_RECORDED = "not recorded"


MEANING: Final[dict[Cause, str]] = {
    Cause.NOT_SUBSCRIBED: "no subscription of the node matched the event when it was published",
    Cause.AWAY: "the subscriber was away when the event was published",
    Cause.NO_PATH: "no path, not even over time, led from the publisher to the subscriber",
    Cause.NO_PATH_THEN: "no path was there at publication; one over time was, but this protocol carries nothing",
    Cause.TREE_BROKEN: "the tree did not join publisher and subscriber at publication",
    Cause.COLLISION: "a copy was lost to other frames",
    Cause.HALF_DUPLEX: "a copy was lost because its receiver was sending",
    Cause.RANDOM_LOSS: "a copy was lost by chance",
    Cause.PARTIAL: "some pieces or fragments of the event arrived, but not all",
    Cause.OUT_OF_RANGE: "a copy was sent when the next node was no longer in range",
    Cause.QUEUE_FULL: "a copy found the sender's queue full",
    Cause.RUN_ENDED: "a copy was still on its way, or still carried, when the run ended",
    Cause.GIVEN_UP: "a node tried to send it, and could not reach the next",
    Cause.LOCAL_MINIMUM: "nobody nearer to the region was heard passing it on",
    Cause.SUPPRESSED: "a node kept it back because it heard another pass it on",
    Cause.NOT_CHOSEN: "a random draw decided against passing it on, or others were nearer to where it is to go",
    Cause.EXPIRED: "its lifetime was over",
    Cause.CACHE_FULL: "a cache had no room for it",
    Cause.NOT_WANTED: "a node knew of nobody who wanted it",
    Cause.NO_ROUTE: "a node knew no one to pass it on to",
    Cause.NOT_HANDED_OVER: "it reached the subscriber's node, which did not hand it over",
    Cause.SILENT: "a node had it and did not send it; its protocol recorded no reason",
    Cause.NOT_RECORDED: "the run did not record what would tell",
}

NEAREST: Final = tuple(Cause)
"""The order of precedence among the reasons for which several nodes failed: that of the declaration above."""
LOSSES: Final = {
    "collision": Cause.COLLISION,
    "half_duplex": Cause.HALF_DUPLEX,
    "random_loss": Cause.RANDOM_LOSS,
}
"""By the outcome of a reception."""
DECISIONS: Final = {
    "suppressed": Cause.SUPPRESSED,
    "not chosen": Cause.NOT_CHOSEN,
    "no route": Cause.NO_ROUTE,
    "not wanted": Cause.NOT_WANTED,
    "cache full": Cause.CACHE_FULL,
    "expired": Cause.EXPIRED,
    "given up": Cause.GIVEN_UP,
}
"""By what a broker decided; `forwarded` is not among them."""
