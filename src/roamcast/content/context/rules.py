"""Where which context may be used, and what is known about one without looking at a host.

The rules of the paper (section 3.1), with the names under which they are told:

* The contexts of relevance and of interest have a *region*, since events and subscriptions are sent there. Their
  relational properties look one hop far and at *key attributes* only: those are what beacons carry, besides location
  and movement, so that any host can decide for itself without asking.
* The publication and the subscription domain may use every attribute and look farther, as far as hosts can be asked.
"""

import math
from collections.abc import Collection, Iterator

from roamcast.content.context.expression import (
    DISTANCE,
    Aggregate,
    And,
    Comparison,
    Context,
    Exists,
    Expression,
    Or,
    Scope,
    Within,
    nodes,
)
from roamcast.content.context.host import MEASURED
from roamcast.content.region import Region, bounding_box
from roamcast.errors import ContentError

RELEVANCE = "context of relevance"
INTEREST = "context of interest"
PUBLICATION_DOMAIN = "publication domain"
SUBSCRIPTION_DOMAIN = "subscription domain"


def region_of(context: Context) -> Region | None:
    """A region outside of which the context is surely false; None if there is none or it is not seen.

    Only `within` gives one: comparisons of `x` and `y` are not looked at, nor is what stands under a `not`. An `and`
    has the smallest region of its parts, an `or` the bounding box of all of them, if each has one.
    """
    return _region(context.expression)


def _region(expression: Expression) -> Region | None:
    match expression:
        case Within():
            return expression.region
        case And():
            regions = [region for part in expression.parts if (region := _region(part)) is not None]
            return min(regions, key=lambda region: region.area, default=None)
        case Or():
            regions = [region for part in expression.parts if (region := _region(part)) is not None]
            if not regions or len(regions) < len(expression.parts):
                return None
            return regions[0] if len(set(regions)) == 1 else bounding_box(regions)
        case _:
            return None


def query_distance(context: Context) -> float:
    """How far away, in metres, hosts must be asked before the context can be decided; 0 if none beyond one hop."""
    return max((_asked(aggregate) for aggregate in context.aggregates), default=0.0)


def _asked(aggregate: Aggregate) -> float:
    return aggregate.within if aggregate.scope is Scope.HOSTS and aggregate.within is not None else 0.0


def check_relevance(context: Context, key_attributes: Collection[str], name: str = RELEVANCE) -> None:
    """Raises `ContentError` unless the context may be one of relevance or, as `name` then says, of interest."""
    if region_of(context) is None:
        raise ContentError(f"the {name} has no region, and needs one: write within(...) and ...; it is {context}")
    for aggregate in context.aggregates:
        if aggregate.scope is not Scope.NEIGHBOURS:
            raise ContentError(f"the {name} may look one hop far, at neighbours; {aggregate} looks farther")
        for attribute in _attributes(aggregate):
            if attribute not in key_attributes:
                keys = ", ".join(sorted(key_attributes)) or "none"
                raise ContentError(
                    f"the {name} may look at key attributes of neighbours only ({keys}); "
                    f"{aggregate} looks at {attribute!r}"
                )


def check_interest(context: Context, key_attributes: Collection[str]) -> None:
    """Raises `ContentError` unless the context may be one of interest."""
    check_relevance(context, key_attributes, INTEREST)


def check_domain(context: Context, name: str, farthest: float = math.inf) -> None:
    """Raises `ContentError` if the domain asks hosts that are farther away than hosts can be asked, in metres.

    0 means that nobody can be asked, so that only neighbours can be looked at.
    """
    for aggregate in context.aggregates:
        if _asked(aggregate) > farthest:
            raise ContentError(f"the {name} may ask hosts within {farthest:g} m; {aggregate} asks farther")


def _attributes(aggregate: Aggregate) -> Iterator[str]:
    """The attributes that others must tell, in the order of the text."""
    asked = [] if aggregate.attribute is None else [aggregate.attribute]
    for node in nodes(aggregate):
        if isinstance(node, Exists):
            asked.append(node.attribute)
        elif isinstance(node, Comparison) and isinstance(node.left, str):
            asked.append(node.left)
    return (attribute for attribute in asked if attribute not in MEASURED and attribute != DISTANCE)
