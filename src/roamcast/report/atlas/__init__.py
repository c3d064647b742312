"""The figures of a map, from its tables: winners, Pareto fronts, cost at equal delivery, delay; as SVG, by name."""

from roamcast.papers.atlas.tables import Atlas
from roamcast.papers.atlas.winners import DEADLINES
from roamcast.report.atlas.grid import winners
from roamcast.report.atlas.panels import costs, delays, fronts

__all__ = ["drawings"]


def drawings(found: Atlas) -> dict[str, str]:
    made = {f"winners-{deadline}": winners(found, deadline) for deadline in DEADLINES}
    return made | {"fronts": fronts(found), "costs": costs(found), "delays": delays(found)}
