"""Which published events the subscribers' filters match: the content part of ground truth, as joins.

`roamcast.content.rows` states how rows of a filter (`filter_constraint`) and of an event (`event_attribute`) are
matched; this is that rule in Spark. Subscriptions that share a filter share the work: each different filter of a run is
matched once, under the id of one of its subscriptions, here called `filter_id`.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from roamcast.content.filter import Operator
from roamcast.content.rows import ANY, BOOL, FLOAT, INT, STR
from roamcast.facts.rows import VALUE_COLUMNS
from roamcast.pipeline.measures.facts import Facts

_ROWS: Final = 100_000
"""Of `event_attribute`, in one task: each gives a few counts for every filter that constrains its attribute."""
_BITS: Final = 63
"""Of a word: a long without its sign."""

_Test = Callable[[Column, Column], Column]

_ORDERED: Final[dict[Operator, _Test]] = {
    Operator.EQ: lambda value, bound: value == bound,
    Operator.NE: lambda value, bound: value != bound,
    Operator.LT: lambda value, bound: value < bound,
    Operator.LE: lambda value, bound: value <= bound,
    Operator.GT: lambda value, bound: value > bound,
    Operator.GE: lambda value, bound: value >= bound,
}
_OF_KIND: Final[dict[str, dict[Operator, _Test]]] = {
    INT: _ORDERED,
    FLOAT: _ORDERED,
    STR: _ORDERED | {Operator.PREFIX: F.startswith, Operator.SUFFIX: F.endswith, Operator.CONTAINS: F.contains},
    BOOL: {operator: _ORDERED[operator] for operator in (Operator.EQ, Operator.NE)},
}


def filters(facts: Facts) -> DataFrame:
    """(run, filter, filter_id): every different filter of a run, and a subscription that had no other.

    Rows of `filter_constraint` do not say whose subscription they belong to. Where one id stood for several filters,
    they cannot be told apart, so such an id is no use here. For `Facts.once`.
    """
    subscribed = facts.table("subscribe").where("active").select("run", "subscription", "filter")
    single = (
        subscribed.groupBy("run", "subscription")
        .agg(F.min("filter").alias("filter"), F.max("filter").alias("last"))
        .where(F.col("filter") == F.col("last"))
    )
    return (
        single.groupBy("run", "filter")
        .agg(F.min("subscription").alias("filter_id"))
        .select("run", "filter", "filter_id")
    )


def matched(facts: Facts) -> DataFrame:
    """(run, event, published, filter_id): the events after the warm-up and the different filters that match them."""
    published = measured_events(facts).select("run", "event", F.col("time").alias("published"))
    filter_id = facts.once(constraints)
    satisfied = filter_id.join(_attributes(facts), ["run", "attribute", "kind"], "inner").where(_holds())
    held = (
        satisfied.groupBy("run", "event", "conjunction_id")
        .agg(
            _satisfied(filter_id).alias("satisfied"),
            F.min("needed").alias("needed"),
            F.min("filter_id").alias("filter_id"),
        )
        .where(F.col("satisfied") == F.col("needed"))
        .select("run", "event", "filter_id")
        .distinct()
    )
    return held.join(published, ["run", "event"], "inner").select("run", "event", "published", "filter_id")


def measured_events(facts: Facts) -> DataFrame:
    """The rows of `publish` at or after the warm-up."""
    warm = facts.runs.select("run", F.round(F.col("warmup") * 1e9).cast("long").alias("start"))
    publish = facts.table("publish")
    return (
        publish.join(F.broadcast(warm), "run", "inner").where(F.col("time") >= F.col("start")).select(*publish.columns)
    )


def constraints(facts: Facts) -> DataFrame:
    """The rows of the different filters, with a number for each conjunction. For `Facts.once`.

    Kind "any" becomes a row for each kind, so that the join is one of equality. A constraint's number becomes a bit of
    a word: an event whose attribute has several values may satisfy it more than once, and bits do not add up.
    """
    columns = list(VALUE_COLUMNS.values())
    filter_id = facts.table("filter_constraint").withColumnRenamed("subscription", "filter_id")
    rows = F.struct("constraint", "attribute", "operator", "kind", *columns)
    conjunctions = (
        filter_id.join(F.broadcast(facts.once(filters)), ["run", "filter_id"], "left_semi")
        .groupBy("run", "filter_id", "conjunction", "needed")
        .agg(F.collect_set(rows).alias("rows"))
        .select("run", "filter_id", "needed", "rows", F.monotonically_increasing_id().alias("conjunction_id"))
        .select("run", "filter_id", "needed", "conjunction_id", F.inline("rows"))
    )
    kinds = F.when(F.col("kind") == ANY, F.array(*map(F.lit, VALUE_COLUMNS))).otherwise(F.array("kind"))
    return conjunctions.select(
        "run",
        "filter_id",
        "conjunction_id",
        "needed",
        F.floor(F.col("constraint") / _BITS).alias("word"),
        F.expr(f"shiftleft(1L, CAST(constraint % {_BITS} AS INT))").alias("bit"),
        "attribute",
        "operator",
        F.explode(kinds).alias("kind"),
        *(F.col(column).alias(f"bound_{column}") for column in columns),
    )


def _satisfied(filter_id: DataFrame) -> Column:
    """How many different constraints are among the rows of a group: almost always a matter of one word."""
    last = filter_id.agg(F.max("word")).first()
    words = range((last[0] or 0) + 1 if last else 1)
    bits = (F.bit_or(F.when(F.col("word") == word, F.col("bit"))) for word in words)
    return sum((F.coalesce(F.bit_count(word), F.lit(0)) for word in bits), F.lit(0))


def _attributes(facts: Facts) -> DataFrame:
    attributes = facts.table("event_attribute").select("run", "event", "attribute", "kind", *VALUE_COLUMNS.values())
    # By run, so that what is joined and counted below stays where it is, and in parts whose counts fit a cache.
    parts = min(
        len(facts.having("event_attribute")),
        facts.rows("event_attribute") // _ROWS + facts.spark.sparkContext.defaultParallelism,
    )
    return attributes.repartition(max(1, parts), "run")


def _holds() -> Column:
    """Whether the value of a joined row satisfies its operator and bound, both in the column of the kind."""
    holds = F.col("operator") == Operator.EXISTS.value
    for kind, tests in _OF_KIND.items():
        value, bound = F.col(VALUE_COLUMNS[kind]), F.col(f"bound_{VALUE_COLUMNS[kind]}")
        for operator, test in tests.items():
            filter_id = (F.col("kind") == kind) & (F.col("operator") == operator.value)
            holds |= filter_id & test(value, bound)
    return holds
