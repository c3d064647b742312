"""What a campaign's time went into: starting Spark, simulating, measuring, judging, the report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Account:
    """Seconds by stage, in the order in which the stages began. A stage that comes again adds to the first."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        self.seconds.setdefault(name, 0.0)
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - begin
