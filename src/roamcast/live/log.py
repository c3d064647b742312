"""Structured logs: one JSON object per line, on stderr.

`time` is wall-clock time in UTC, `level` and `event` say what happened; all other fields belong to the event.
"""

import datetime
import json
import logging
from typing import Any, Final, TextIO

LOGGER: Final = logging.getLogger("roamcast.live")
# Programs that use this package and set up no logging get none; `roamcast node` sets it up.
LOGGER.addHandler(logging.NullHandler())
_FIELDS: Final = "roamcast_fields"


class _Lines(logging.Formatter):
    def __init__(self, node: int) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "node": self._node,
            "event": record.getMessage(),
        }
        line |= getattr(record, _FIELDS, {})
        if record.name != LOGGER.name:
            line["source"] = record.name
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to(stream: TextIO, node: int, level: str) -> None:
    """Sends the log of this program and its libraries, from `level` up, to the stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(node))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # aiohttp logs every request: only on request.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    # A traceback for each malformed request would let strangers fill the disk; control.py logs our own failures.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)


def log(level: int, event: str, *, problem: BaseException | None = None, **fields: Any) -> None:  # noqa: ANN401  # JSON
    """Logs an event with its fields; a problem is logged with its traceback."""
    trace = (type(problem), problem, problem.__traceback__) if problem is not None else None
    LOGGER.log(level, event, extra={_FIELDS: fields}, exc_info=trace)


def info(event: str, **fields: Any) -> None:  # noqa: ANN401  # JSON
    log(logging.INFO, event, **fields)


def warn(event: str, **fields: Any) -> None:  # noqa: ANN401  # JSON
    log(logging.WARNING, event, **fields)


def error(event: str, problem: BaseException | None = None, **fields: Any) -> None:  # noqa: ANN401  # JSON
    log(logging.ERROR, event, problem=problem, **fields)
