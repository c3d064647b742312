"""The figures of a map, from its tables: winners, Pareto fronts, cost at equal delivery, delay; as SVG, by name."""

from studies.map.grid import winners
from studies.map.panels import costs, delays, fronts
from studies.map.tables import Atlas
from studies.map.winners import DEADLINES

__all__ = ["drawings"]


def drawings(found: Atlas) -> dict[str, str]:
    made = {f"winners-{deadline}": winners(found, deadline) for deadline in DEADLINES}
    return made | {"fronts": fronts(found), "costs": costs(found), "delays": delays(found)}
