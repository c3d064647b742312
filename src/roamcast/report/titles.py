"""What stands beside the axes: measures and fields in words, with their units."""

import re
from typing import Final

_WHOLE_SHARES: Final = frozenset(
    {"delivery", "largest_partition", "mdr", "tree_connected", "tree_matched", "tree_reach"}
)
"""Shares to be seen against 1; those that are close to 0, such as losses, would be a line at the bottom."""

_MEASURES: Final = {
    "delivery": "delivery (share of interested subscribers)",
    "overhead": "overhead (packets per delivery)",
    "overhead_data": "overhead without control (packets per delivery)",
    "bits_per_delivery": "cost (bits per delivery)",
    "delay_mean": "mean delay (s)",
    "delay_p50": "median delay (s)",
    "delay_p95": "delay, 95th percentile (s)",
    "delay_p99": "delay, 99th percentile (s)",
    "hops_mean": "mean path (hops)",
    "duplicates": "duplicates (per delivery)",
    "lost_collision": "lost by collision (share of receptions)",
    "lost_half_duplex": "lost while sending (share of receptions)",
    "lost_random": "lost by chance (share of receptions)",
    "queue_full": "dropped by a full queue (share of frames)",
    "unreachable": "unreachable (share of frames)",
    "degree_mean": "mean degree (neighbours)",
    "partitions_mean": "partitions (mean number)",
    "largest_partition": "largest partition (share of nodes)",
    "tree_connected": "all nodes in one tree, TC (share of the time)",
    "tree_matched": "tree's parts are the network's, TC* (share of the time)",
    "tree_reach": "reach of the tree (share of connected pairs)",
    "tree_parts_mean": "parts of the tree (mean number)",
    "repairs": "repairs (begun)",
    "repairs_succeeded": "repairs that succeeded (share of repairs)",
    "repair_time": "mean time of a repair (s)",
    "repair_messages": "control messages, MS (per repair)",
    "repair_nodes": "nodes involved, NI (per repair)",
    "repairs_same_parent": "repairs to the same parent (share of successful ones)",
    "reconfiguration_nodes": "reconfiguration path, NR (nodes per successful repair)",
    "link_breaks": "link breaks, DF (per minute)",
    "mdr": "delivery to the stable core, MDR (share of pairs)",
    "control": "control messages, CTRL (per event that somebody wants)",
    "control_all": "control messages and beacons (per event that somebody wants)",
}

_UNITS: Final = (
    (r"(movement\.)?speed(\[\d\])?", "m/s"),
    (r"movement\.(pause|stay).*", "s"),
    (r"area\.(width|height)(\[\d\])?", "m"),
    (r"radio\.(indoor_)?range(\[\d\])?", "m"),
    (r"radio\.threshold", "dB"),
    (r"(.*\.)?publishers\[\d+\]\.rate|background\.rate", "msg/s"),
    (r"mac\.(basic_)?rate", "Mb/s"),
    (r"(.*\.)?(size|mtu|header|cache_bytes)", "bytes"),
    (r"(.*\.)?(interval|lifetime|jitter|duration|warmup|timeout|spread|refresh)", "s"),
)
"""Fields of a scenario by their path, and what they are counted in."""


def is_whole_share(measure: str) -> bool:
    """Whether an axis should go from 0 to 1 whatever was measured."""
    return measure in _WHOLE_SHARES or measure.startswith("satisfaction_")


def measure_title(measure: str) -> str:
    if match := re.fullmatch(r"satisfaction_(\d+)", measure):
        return f"satisfaction within {match[1]} s (share of pairs)"
    return _MEASURES.get(measure, measure.replace("_", " "))


def difference_title(measure: str, baseline: str) -> str:
    """Of relative differences: what the measure is counted in does not matter to them."""
    name, _, _ = measure_title(measure).partition(" (")
    return f"{name}: difference from {baseline} (%)"


def axis_title(label: str, field: str) -> str:
    """The label, with the field's unit unless the author has put one there."""
    if "(" in label:
        return label
    unit = next((unit for pattern, unit in _UNITS if re.fullmatch(pattern, field)), None)
    return f"{label} ({unit})" if unit else label
