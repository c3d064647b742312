"""Content-based publish/subscribe for mobile ad hoc networks."""

import importlib
from pathlib import Path
from typing import Any

__all__ = ["load"]


def load(out: Path | str, spark: Any = None) -> Any:  # noqa: ANN401  # of layers that this one must not import
    """The tables in a campaign's folder, with or without a Spark session: `roamcast.pipeline.tables.Results`."""
    # Imported by name: every module imports this one, and most must not depend on the pipeline.
    return importlib.import_module("roamcast.pipeline.tables").load(out, spark)
