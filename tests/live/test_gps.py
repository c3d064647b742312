"""The position of a node from gpsd: a small server that says what gpsd would, and gpsd itself with a recorded drive."""

import asyncio
import functools
import json
import operator
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.nodes import address, process, run, settings, until
from roamcast.content.context.text import parse_context
from roamcast.errors import ConfigError, ContentError, SyntaxProblem
from roamcast.live import gps as module
from roamcast.live.client import Client, ClientError
from roamcast.live.gps import STALE, Gps, Origin
from roamcast.live.node import Node
from roamcast.live.senses import Senses

BERLIN = "52.52,13.405"
FIX = {"class": "TPV", "mode": 3, "lat": 52.53, "lon": 13.415, "speed": 8.2, "track": 90.4}
EAST, NORTH = 678.8, 1112.8
"""Metres of 0.01 degrees there, by the usual series: 111132.95 - 559.82 cos 2φ + 1.18 cos 4φ north, and 111412.84 cos φ
- 93.5 cos 3φ + 0.12 cos 5φ east."""


def heard(*reports: Any, after: float = 0.0) -> tuple[Any, Any]:  # noqa: ANN401  # JSON, or a line as it is
    gps = Gps(("x", 1), Origin.parse(BERLIN))
    for report in reports:
        gps.hear(report if isinstance(report, bytes) else json.dumps(report).encode(), 100.0)
    return gps.here(100.0 + after), gps.direction(100.0 + after)


def test_a_fix_is_a_position_in_metres_from_the_origin() -> None:
    here, direction = heard(FIX)
    assert here == pytest.approx((EAST, NORTH), rel=1e-4)
    assert direction == 90
    assert heard({**FIX, "lat": 52.52, "lon": 13.405}) == ((0.0, 0.0), 90)


UNKNOWN = (None, None)


def test_without_a_fix_or_with_a_stale_one_the_position_is_unknown() -> None:
    assert heard() == UNKNOWN
    for mode in (0, 1):
        assert heard(FIX, {**FIX, "mode": mode}) == UNKNOWN
    assert heard(FIX, {"class": "TPV", "mode": 2}) == UNKNOWN
    assert heard(FIX, after=STALE)[1] == 90
    assert heard(FIX, after=STALE + 0.1) == UNKNOWN


def test_who_stands_still_has_no_direction() -> None:
    assert heard({**FIX, "speed": 0.4})[1] is None
    assert heard({name: value for name, value in FIX.items() if name != "track"})[1] is None
    assert heard({**FIX, "track": 359.8})[1] == 0


def test_other_lines_change_nothing() -> None:
    others = {"class": "VERSION", "release": "3.22"}, {"class": "SKY", "satellites": []}, b"\xff\n", b"", b"[]", b"{"
    assert heard(FIX, *others)[1] == 90
    assert heard(FIX, {**FIX, "lat": "north"})[1] == 90
    assert heard({**FIX, "lat": 91}) == UNKNOWN


@given(st.floats(-80, 80), st.floats(-180, 180), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_metres_agree_with_the_way_along_the_sphere(lat: float, lon: float, north: float, east: float) -> None:
    """Within the flattening of the earth, and across the date line too."""
    from math import cos, hypot, radians

    there = (lon + east + 180) % 360 - 180
    x, y = Origin(lat, lon).metres(lat + north, there)
    sphere = 6371e3 * radians(1)
    assert (
        hypot(x - east * sphere * cos(radians(lat)), y - north * sphere) <= 0.006 * sphere * hypot(east, north) + 1e-3
    )


@pytest.mark.parametrize("text", ["", "52.52", "52.52,13,4", "90,0", "89.5,0", "0,181", "nan,0", "here"])
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(ConfigError, match="--origin"):
        Origin.parse(text)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"gps": "127.0.0.1:2947"}, "go together"),
        ({"origin": BERLIN}, "go together"),
        ({"gps": "127.0.0.1:2947", "origin": BERLIN, "here": "1,2"}, "cannot be combined with --here"),
    ]
    for options, words in wrong:
        with pytest.raises(ConfigError, match=words):
            settings(tmp_path, **options)
    with pytest.raises(ConfigError, match="--gps"):
        settings(tmp_path, gps="nowhere", origin=BERLIN).gpsd()


# --- A connection ---------------------------------------------------------------------------------------------------


class FakeGpsd:
    """Says what it is told to whoever asks it to watch."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"class":"VERSION","release":"3.22","proto_major":3,"proto_minor":14}\r\n')
        self.asked.append(await reader.readline())
        self.writers.append(writer)

    def say(self, **report: Any) -> None:  # noqa: ANN401
        self.writers[-1].write(json.dumps({**FIX, **report}).encode() + b"\r\n")


@asynccontextmanager
async def fake_gpsd() -> AsyncIterator[FakeGpsd]:
    fake = FakeGpsd()
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        for writer in fake.writers:
            writer.close()


def test_a_node_goes_where_gpsd_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.01)

    async def test() -> None:
        async with fake_gpsd() as fake, Node(settings(tmp_path, gps=f"127.0.0.1:{fake.port}", origin=BERLIN)) as node:
            await until(lambda: fake.writers)
            assert fake.asked == [b'?WATCH={"enable":true,"json":true};\n']
            assert node.senses.here is None
            fake.say()
            await until(lambda: node.senses.here)
            async with Client(address(node)) as client:
                await client.set_attributes({"role": "medic"})
                status = await client.status()
                assert status["here"] == pytest.approx([EAST, NORTH], rel=1e-4)
                assert status["attributes"] == {"role": "medic", "direction": 90}
                with pytest.raises(ClientError, match="here comes from gpsd"):
                    await client.set_here((1, 2))
                fake.say(mode=1)
                await until(lambda: node.senses.here is None)
                assert (await client.status())["attributes"] == {"role": "medic"}
            fake.writers[-1].close()  # gpsd is restarted
            await until(lambda: len(fake.writers) == 2)
            fake.say(lat=52.52, lon=13.405)
            await until(lambda: node.senses.here == (0.0, 0.0))

    run(test)


@pytest.mark.parametrize("said", [b"x" * 200_000, b""])
def test_what_gpsd_must_not_say_ends_the_connection_not_the_node(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.01)

    async def test() -> None:
        async with fake_gpsd() as fake:
            gps = Gps(("127.0.0.1", fake.port), Origin.parse(BERLIN))
            senses = Senses(None, None, 1, gps)
            await senses.start()
            await until(lambda: fake.writers)
            fake.writers[0].write(said)
            if not said:
                fake.writers[0].close()
            await until(lambda: len(fake.writers) > 1)
            assert senses.failures["gps"] > 0
            await senses.close()

    run(test)


# --- Around me ------------------------------------------------------------------------------------------------------


def test_around_me_is_a_circle_where_the_node_is() -> None:
    circle = parse_context("within(circle(30, -40, 200)) and speed > 1")
    assert parse_context("around(me, 200) and speed > 1", (30.0, -40.0)) == circle
    assert str(parse_context("around(me, 200)", (30.0, -40.0))) == "within(circle(30, -40, 200))"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("around(you, 200)", "expected 'me', as in around"),
        ("around(me)", "a ',' and the radius"),
        ("around(me, far)", "the radius, a number of metres"),
        ("around(me, 0)", "expected a radius"),
        ("around(me, 5", "a ')'"),
    ],
)
def test_what_is_not_around_me(text: str, words: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_context(text, (0.0, 0.0))
    assert words in str(caught.value)


def test_publishing_around_me(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="does not know its position"):
        parse_context("around(me, 200)")

    async def test() -> None:
        async with Node(settings(tmp_path, protocol="context")) as node, Client(address(node)) as client:
            with pytest.raises(ClientError, match=r"around\(me, 200\): the node does not know its position"):
                await client.publish({"n": 1}, relevance="around(me, 200)")
            await client.set_here((500, 500))
            async with client.subscribe(interest="around(me, 200)") as events:
                (mailbox,) = node.host.subscribers
                assert str(mailbox.subscription.interest) == "within(circle(500, 500, 200))"
                await client.publish({"n": 1}, lifetime=5, relevance="around(me, 200)")
                assert (await anext(events)).attributes == {"n": 1}

    run(test)


# --- The real gpsd --------------------------------------------------------------------------------------------------


def nmea(body: str) -> str:
    return f"${body}*{functools.reduce(operator.xor, body.encode()):02X}\r\n"


def drive(seconds: int) -> str:
    """North-east of the origin, 10 knots due east: two sentences for every second."""
    lines = []
    for second in range(seconds):
        clock = f"1200{second % 60:02}.00"
        lines.append(nmea(f"GPGGA,{clock},5231.8000,N,01324.9000,E,1,08,0.9,35.0,M,45.0,M,,"))
        lines.append(nmea(f"GPRMC,{clock},A,5231.8000,N,01324.9000,E,10.0,090.0,171126,,,A"))
    return "".join(lines)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gpsfake") is None, reason="gpsfake is not installed (Debian: gpsd-clients)")
def test_a_recorded_drive_through_the_real_gpsd(tmp_path: Path) -> None:
    (tmp_path / "drive.nmea").write_text(drive(60))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    words = ["gpsfake", "-q", "-c", "0.5", "-P", str(port), str(tmp_path / "drive.nmea")]
    gpsfake = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    async def test(where: str) -> None:
        async with Client(where) as client:
            deadline = time.monotonic() + 25
            while (status := await client.status())["here"] is None:
                assert time.monotonic() < deadline, status["counters"]["senses"]
                await asyncio.sleep(0.2)
            assert status["here"] == pytest.approx([EAST, NORTH], rel=1e-3)
            while "direction" not in (status := await client.status())["attributes"]:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.2)
            assert status["attributes"]["direction"] == 90
            gpsfake.send_signal(signal.SIGINT)
            gpsfake.wait(20)
            while (await client.status())["here"] is not None:  # stale after 10 s
                assert time.monotonic() < deadline + 20
                await asyncio.sleep(0.2)

    try:
        with process(tmp_path, 1, "--gps", f"127.0.0.1:{port}", "--origin", BERLIN) as node:
            node.ready()
            asyncio.run(test(node.control))
    finally:
        if gpsfake.poll() is None:
            gpsfake.kill()
        gpsfake.wait()
