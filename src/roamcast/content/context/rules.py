"""Which contexts may be used where, and what is known about a context without looking at a host.

The rules of the paper (section 3.1):

* The contexts of relevance and of interest have a *region*, since events and subscriptions are sent there. Their
  relational properties look at neighbours only, and at *key attributes* only: beacons carry those, besides location
  and movement, so that any host can decide for itself without a query.
* The publication and the subscription domain may use every attribute and look farther, as far as queries reach.

And one of ours: regions of an `and` that have no point in common are refused, wherever they stand: no host would ever
be in them.
"""

import math
from collections.abc import Collection, Iterator
from itertools import combinations

from roamcast.content.context.expression import (
    DISTANCE,
    Aggregate,
    And,
    Context,
    Exists,
    Expression,
    HostComparison,
    Or,
    Scope,
    Within,
    nodes,
)
from roamcast.content.context.host import MEASURED
from roamcast.content.region import Region, bounding_box, may_intersect
from roamcast.errors import ContentError

RELEVANCE = "context of relevance"
INTEREST = "context of interest"
PUBLICATION_DOMAIN = "publication domain"
SUBSCRIPTION_DOMAIN = "subscription domain"


def region_of(context: Context) -> Region | None:
    """A region such that the context is surely false outside it; None if there is none, or none is found.

    Only `within` gives one; comparisons of `x` and `y`, and everything under a `not`, are ignored. An `and` has the
    smallest region of its parts, an `or` the bounding box of all of them, if each has one.
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
    """How far, in metres, a query must reach before the context can be decided; 0 if neighbours are enough."""
    return max((_queried(aggregate) for aggregate in context.aggregates), default=0.0)


def _queried(aggregate: Aggregate) -> float:
    return aggregate.within if aggregate.scope is Scope.HOSTS and aggregate.within is not None else 0.0


def _check_regions(context: Context, name: str) -> None:
    for node in nodes(context.expression):
        if isinstance(node, And):
            for one, other in combinations(_together(node), 2):
                if not may_intersect(one, other):
                    raise ContentError(f"the {name} asks for {one} and {other}, which have no point in common")


def _together(expression: Expression) -> Iterator[Region]:
    """Regions that must all contain the host."""
    if isinstance(expression, And):
        for part in expression.parts:
            yield from _together(part)
    elif (region := _region(expression)) is not None:
        yield region


def check_relevance(context: Context, key_attributes: Collection[str], name: str = RELEVANCE) -> None:
    """Raises `ContentError` unless the context may be one of relevance, or of interest if `name` says so."""
    if region_of(context) is None:
        raise ContentError(f"the {name} has no region, and needs one: write within(...) and ...; it is {context}")
    _check_regions(context, name)
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
    """Raises `ContentError` if its regions exclude each other, or if it queries hosts beyond `farthest` metres.

    0 means that there are no queries, so that a domain can only look at neighbours.
    """
    _check_regions(context, name)
    for aggregate in context.aggregates:
        if _queried(aggregate) > farthest:
            raise ContentError(f"the {name} may ask hosts within {farthest:g} m; {aggregate} asks farther")


def _attributes(aggregate: Aggregate) -> Iterator[str]:
    """The attributes that it reads from other hosts, in the order of the text."""
    asked = [] if aggregate.attribute is None else [aggregate.attribute]
    for node in nodes(aggregate):
        if isinstance(node, Exists):
            asked.append(node.attribute)
        elif isinstance(node, HostComparison) and isinstance(node.left, str):
            asked.append(node.left)
    return (attribute for attribute in asked if attribute not in MEASURED and attribute != DISTANCE)
