"""Where the API of a node is, who finds it there, and TLS on the way to it."""

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
import stat
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from live.nodes import address, run, settings, until
from roamcast.cli.main import main
from roamcast.errors import ConfigError
from roamcast.live import control, gate
from roamcast.live.client import Client, ClientError
from roamcast.live.mqtt.packets import V311, Connack, Connect
from roamcast.live.mqtt.wire import write
from roamcast.live.node import Node
from roamcast.live.places import default_address, find_address

TOKEN = "0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("ROAMCAST_API", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "roamcast"


# --- The default ----------------------------------------------------------------------------------------------------


def test_the_default_is_a_socket_for_its_owner_that_clients_find(tmp_path: Path, home: Path) -> None:
    async def test() -> None:
        with pytest.raises(ConfigError, match=r"no node answers in .*start one with 'roamcast node'"):
            find_address()
        async with Node(settings(tmp_path, 7, control=None)) as node:
            place = home / "node-7.socket"
            assert str(node.control) == f"unix:{place}" == str(default_address(7))
            assert stat.S_IMODE(place.stat().st_mode) == 0o600
            assert stat.S_IMODE(home.stat().st_mode) == 0o700
            (home / "node-5.socket").touch()  # of a node that was killed
            async with Client() as client:
                assert (await client.status())["node"] == 7
            async with Node(settings(tmp_path, 8, control=None)):
                with pytest.raises(ConfigError, match="several nodes run here: 7, 8; say which one with --node NUMBER"):
                    find_address()
        assert not place.exists()

    run(test)


def test_the_verbs_find_it_by_the_same_rule(tmp_path: Path, home: Path) -> None:
    def verb(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, words)
        return result.exit_code, result.stdout or result.stderr

    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with Node(settings(tmp_path, 7, control=None)) as one, Node(settings(tmp_path, 8, control=None)):
            code, said = await loop.run_in_executor(None, verb, "pub", "a=1")
            assert (code, said.startswith("error: several nodes run here: 7, 8")) == (2, True)
            assert (await loop.run_in_executor(None, verb, "pub", "--node", "7", "a=1"))[0] == 0
            assert one.host.counters["published"] == 1
            code, said = await loop.run_in_executor(None, verb, "status", "--node", "8")
            assert (code, said.startswith("node 8, ")) == (0, True)
            assert (await loop.run_in_executor(None, verb, "status", "--node", "8", "--api", "unix:x"))[0] == 2

    run(test)


def test_a_second_node_with_the_same_number_is_told(tmp_path: Path, home: Path) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, 7, control=None)):
            with pytest.raises(ConfigError, match=r"node-7\.socket: cannot listen there: another process listens"):
                await Node(settings(tmp_path, 7, control=None, store=tmp_path / "other")).start()

    run(test)


# --- Beyond the machine ---------------------------------------------------------------------------------------------


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, Path]:
    """A token, and a certificate that names 127.0.0.1."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roamcast")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(private, hashes.SHA256())
    )
    (tmp_path / "cert").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "private").write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    return {"token_file": tmp_path / "token", "tls_cert": tmp_path / "cert", "tls_key": tmp_path / "private"}


def test_over_tls_with_a_token_and_not_otherwise(tmp_path: Path, tls: dict[str, Path]) -> None:
    async def test() -> None:
        async with Node(settings(tmp_path, control="0.0.0.0:0", **tls)) as node:  # type: ignore[arg-type]
            there = f"127.0.0.1:{node.control.port}"
            async with Client(there, TOKEN, tls_cert=tls["tls_cert"]) as client, client.subscribe() as events:
                number = await client.publish({}, payload=bytes(200_000))
                assert (await anext(events)).id == number
            async with Client(there, tls_cert=tls["tls_cert"]) as client:
                with pytest.raises(ClientError, match="a token is needed"):
                    await client.status()
            async with Client(there, TOKEN) as client:  # without TLS
                with pytest.raises(ClientError, match="no node answers"):
                    await client.status()
            strict = Client(there, TOKEN, tls_cert=tls["tls_cert"])
            strict._tls = ssl.create_default_context()
            async with strict as client:
                with pytest.raises(ClientError, match="shows a certificate that is not trusted"):
                    await client.status()
            gate = node.gate
            assert gate is not None
            await until(lambda: gate.counters["no TLS"] == 2)
            await until(lambda: not node.gate.waiting)  # type: ignore[union-attr]

    run(test)


def test_with_tls_too_the_silent_are_dropped_and_admitted_first(
    tmp_path: Path, tls: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(gate, "PATIENCE", 0.3)

    async def test() -> None:
        async with Node(settings(tmp_path, control="127.0.0.1:0", **tls)) as node:  # type: ignore[arg-type]
            idle = [await asyncio.open_connection("127.0.0.1", node.control.port) for _ in range(50)]
            assert node.gate is not None
            counters = node.gate.counters
            await until(lambda: counters["refused"] == 30)
            await until(lambda: counters["silent"] + counters["no TLS"] == 20)
            async with Client(address(node), TOKEN, tls_cert=tls["tls_cert"]) as client:
                assert (await client.status())["node"] == 1
            for _, writer in idle:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    run(test)


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path, tls: dict[str, Path]) -> None:
    (tmp_path / "private").write_text("nothing")
    with pytest.raises(ConfigError, match="cannot be used as certificate and private key"):
        Node(settings(tmp_path, control="127.0.0.1:0", **tls))  # type: ignore[arg-type]


# --- Slow ones ------------------------------------------------------------------------------------------------------


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PATIENCE", 0.1)

    async def test() -> None:
        async with Node(settings(tmp_path, control="127.0.0.1:0")) as node:
            reader, writer = await asyncio.open_connection("127.0.0.1", node.control.port)
            head = b"POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(head + b"Content-Length: 100\r\n\r\n{")
            assert await asyncio.wait_for(reader.read(), 10) is not None  # and it is closed
            assert node.host.counters["published"] == 0
            writer.close()

    run(test)


def test_a_connection_that_was_used_and_is_idle_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "IDLE", 0.1)

    async def test() -> None:
        async with Node(settings(tmp_path, control="127.0.0.1:0")) as node:
            reader, writer = await asyncio.open_connection("127.0.0.1", node.control.port)
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")  # and never the rest
            said = await asyncio.wait_for(reader.read(), 10)
            assert said.count(b"HTTP/1.1 200 OK") == 1
            writer.close()
            async with aiohttp.ClientSession() as session, session.get(f"http://{node.control}/health") as answer:
                assert answer.status == 200

    run(test)


def test_a_socket_that_nobody_listens_on_is_taken_over(tmp_path: Path) -> None:
    place = tmp_path / "1.socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))

    async def test() -> None:
        async with Node(settings(tmp_path)) as node, Client(address(node)) as client:
            assert (await client.status())["node"] == 1

    run(test)


def test_mqtt_beyond_the_machine_has_the_same_token_and_certificate(tmp_path: Path, tls: dict[str, Path]) -> None:
    """The API itself may stay on its Unix socket."""
    trusted = ssl.create_default_context(cafile=tls["tls_cert"])

    async def answer(port: int, password: str, context: ssl.SSLContext | None) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(write(Connect("c", V311, user="u", password=password.encode()), V311))
        try:
            return await reader.read(4)
        finally:
            writer.close()

    async def test() -> None:
        async with Node(settings(tmp_path, 1, mqtt="127.0.0.1:0", **tls)) as node:
            assert node.mqtt is not None
            port = node.mqtt.address.port
            assert await answer(port, TOKEN, trusted) == write(Connack(), V311)
            assert await answer(port, "wrong", trusted) == write(Connack(False, 4), V311)
            with contextlib.suppress(ConnectionError):
                assert await answer(port, TOKEN, None) == b""
            tls["token_file"].write_text(f"{TOKEN}-changed")
            node.reload()
            assert await answer(port, TOKEN, trusted) == write(Connack(False, 4), V311)
            assert await answer(port, f"{TOKEN}-changed", trusted) == write(Connack(), V311)
            async with Client(address(node), f"{TOKEN}-changed") as client:
                assert (await client.status())["mqtt"]["tls"]

    run(test)
