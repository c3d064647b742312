"""`roamcast choose`: what a wrong request is answered with, before anything runs."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from roamcast.cli.main import main

NETWORK = """
nodes = 3
duration = 10
warmup = 4
[area]
width = 500
height = 100
[[workload.subscribers]]
count = 1
[[workload.publishers]]
count = 1
rate = 1
"""


def choose(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("choose", "net.toml", *arguments))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--at-least", "delivary=0.9"), "--at-least delivary: is not a measure; did you mean 'delivery'?"),
        (("--at-least", "delivery=95"), "'delivery=95': expected MEASURE=SHARE, such as delivery=0.95"),
        (("--at-least", "possible_60=0.9", "--within", "5"), "--within goes with delivery and of-possible"),
        (("--within", "6"), "--within 6: net.toml runs for 6 s after its warm-up"),
        (("--candidate", "flooding", "--candidate", "gosip"), "cannot be run by gosip: protocol.name: no protocol"),
        (("--candidate", "gossip p=2"), "net.toml: cannot be run by gossip p=2: protocol.parameters.p"),
        (("--candidate", "gossip 'p=0.5"), "expected NAME or NAME PARAMETER=VALUE"),
        (("--minutes", "0"), "Invalid value for '--minutes'"),
    ],
)
def test_what_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.toml").write_text(NETWORK)
    result = choose(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path("out").exists()


@pytest.mark.parametrize(("role", "words"), [("publishers", "nobody publishes"), ("subscribers", "nobody subscribes")])
def test_a_network_without_a_workload(role: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head, *tables = NETWORK.split("[[")
    Path("net.toml").write_text("[[".join([head, *(table for table in tables if role not in table)]))
    result = choose()
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: net.toml: workload.{role}: {words}: there is nothing to deliver\n",
    )
