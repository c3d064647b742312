"""The description of the API against a real node: schemathesis makes requests from it, right and wrong ones."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from live.nodes import process

CASES = 200
"""For every operation with something to choose in a request."""
SETTINGS = """
[phases.fuzzing.extra-data-sources]
responses = false

[[operations]]
include-operation-id = "poll"
parameters = { "query.wait" = 0 }
"""
"""Ids are made up, not taken from answers; and no poll waits."""
STREAMS = ("publish_many", "subscribe", "events")
# Filters and contexts are languages: a text that the description allows may still be a wrong one, and is refused.
ALSO_WRONG = "positive_data_acceptance"


@pytest.mark.slow
def test_a_node_does_what_its_description_says(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(SETTINGS)
    report = tmp_path / "report.ndjson"
    words = ["--config-file", str(tmp_path / "settings.toml"), "run", "--phases", "fuzzing", "-n", str(CASES)]
    words += [*(word for name in STREAMS for word in ("--exclude-operation-id", name))]
    words += ["--exclude-checks", ALSO_WRONG, "--suppress-health-check", "all", "--continue-on-failure", "--no-color"]
    words += ["--seed", "1", "--request-timeout", "60", "--report-ndjson-path", str(report)]
    with process(tmp_path, 7, "--api", "127.0.0.1:0", "--sync", "off") as node:
        where = f"http://{node.ready()['api']}/openapi.json"
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words, where],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        code, logged = node.end(signal.SIGTERM)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert (code, "a request failed" in logged) == (0, False)
    finished = [json.loads(line).get("ScenarioFinished") for line in report.read_text().splitlines()]
    cases = {each["recorder"]["label"]: len(each["recorder"]["cases"]) for each in finished if each}
    print(cases)
    fixed = {"GET /status", "GET /health", "GET /metrics", "GET /subscriptions", "DELETE /session"}
    assert {name for name, count in cases.items() if count < CASES} == fixed
    assert len(cases) == len(fixed) + 7
