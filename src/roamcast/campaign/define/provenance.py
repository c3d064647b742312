"""When, where and with what versions a campaign is run, for readers of its report. No result depends on it."""

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_SOFTWARE: Final = ("roamcast", "pyspark", "numpy", "numba")
_CPU_FILE: Final = Path("/proc/cpuinfo")


def provenance(now: datetime | None = None) -> dict[str, Any]:
    """The fields of `campaign.json` that differ from one day or machine to the next."""
    versions = {name: importlib.metadata.version(name) for name in _SOFTWARE}
    return {
        "date": f"{now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": machine(),
        "versions": {**versions, "python": platform.python_version()},
    }


def machine() -> str:
    """Processor, cores and system as text, without the machine's name, which is private."""
    cores = os.cpu_count() or 1
    system = f"{platform.system()} {platform.release().partition('-')[0]}".strip()
    return f"{_processor()}, {cores} core{'s' * (cores != 1)}, {system}"


def _processor() -> str:
    """The processor's model if the system tells it, else its architecture."""
    try:
        lines = _CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, models), platform.machine() or "a computer")
