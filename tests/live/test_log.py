"""Logs: JSON, one object a line, from a level on."""

import io
import json
import logging

from roamcast.live import log


def test_a_line_is_an_object_and_what_is_below_the_level_is_not_written() -> None:
    stream, handlers, level = io.StringIO(), list(logging.root.handlers), logging.root.level
    try:
        log.log_to(stream, 7, "warning")
        log.info("unheard")
        log.warn("two lines\nin one", count=3)
        log.error("failed", ValueError("why"))
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
    warning, error = map(json.loads, stream.getvalue().splitlines())
    assert warning.pop("time").endswith("Z")
    assert warning == {"level": "warning", "node": 7, "event": "two lines\nin one", "count": 3}
    assert (error["level"], error["event"]) == ("error", "failed")
    assert "ValueError: why" in error["traceback"]
