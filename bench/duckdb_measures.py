"""The same measures of the same facts in DuckDB, written as one would there, to compare with Spark.

DuckDB is no dependency of roamcast: `pip install duckdb` first. Filters that several subscriptions share are matched
once here too.
"""

from pathlib import Path
from typing import Any, Final

MEASURES: Final = ("pairs_expected", "delivery", "delay_mean", "hops_mean")

_QUERY: Final = """
with filters as (
  select run, filter, min(subscription) as filter_id from '{facts}/subscribe/*.parquet' where active group by all
),
events as (select run, event from '{facts}/publish/*.parquet' where time >= {warmup}),
held as (
  select distinct run, event, filter_id from (
    select a.run, a.event, c.subscription as filter_id, c.conjunction
    from '{facts}/event_attribute/*.parquet' a
    join '{facts}/filter_constraint/*.parquet' c on a.run = c.run and a.attribute = c.attribute and a.kind = c.kind
    join filters f on f.run = c.run and f.filter_id = c.subscription
    where case c.operator
      when '=' then coalesce(a.text = c.text, a.integer = c.integer)
      when '<' then a.integer < c.integer end
    group by all having count(distinct c."constraint") = any_value(c.needed)
  )
),
wanted as (
  select h.run, h.event, s.node, s.subscription
  from held h join events using (run, event) join filters using (run, filter_id)
  join '{facts}/subscribe/*.parquet' s on s.run = h.run and s.filter = filters.filter
),
first as (
  select run, event, node, subscription, min(time - published) as delay, arg_min(hops, time) as hops
  from '{facts}/deliver/*.parquet' group by all
),
pairs as (select * from wanted left join first using (run, event, node, subscription)),
shares as (select run, event, count(delay) / count(*) as share from pairs group by all)
select run, any_value(expected) as pairs_expected, avg(share) as delivery, any_value(delay_mean) as delay_mean,
  any_value(hops_mean) as hops_mean
from shares join (
  select run, count(*) as expected, avg(delay) / 1e9 as delay_mean, avg(hops) as hops_mean from pairs group by run
) using (run) group by run order by run
"""


def measure(out: Path, warmup: int, threads: int) -> dict[str, dict[str, float]]:
    """By run and measure; `warmup` in ns."""
    import duckdb  # noqa: PLC0415  # only who asks for it needs it

    connection: Any = duckdb.connect(config={"threads": threads})
    found = connection.execute(_QUERY.format(facts=out / "facts", warmup=warmup)).fetchall()
    return {run: dict(zip(MEASURES, map(float, values), strict=True)) for run, *values in found}
