"""The JavaScript client and the node's page, in Node.js and in a real browser."""

import json
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live.nodes import process, run
from live.test_control import TOKEN
from report.chromium import Browser, find_chromium
from roamcast.live.client import Client
from roamcast.live.openapi import OPERATIONS

CLIENT = Path(__file__).parents[2] / "src/roamcast/live/page/roamcast.js"
NODE = shutil.which("node")
CHROMIUM = find_chromium()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node with a token, on a port of loopback."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    with process(folder, 7, "--api", "127.0.0.1:0", "--token-file", str(folder / "token")) as started:
        yield f"http://{started.ready()['api']}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with Browser(CHROMIUM, 400, 800) as browser:
        yield browser


def in_node(script: str) -> Any:  # noqa: ANN401  # what the script prints, as JSON
    done = subprocess.run(
        [NODE or "node", "--input-type=module", "-e", f'import * as roamcast from "{CLIENT}";\n{script}'],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_it_knows_the_requests_that_a_node_describes() -> None:
    """WebSockets are for programs that publish more than a page does."""
    text = re.search(r"OPERATIONS = \{(.*?)\};", CLIENT.read_text(), re.DOTALL)
    assert text is not None
    known = set(re.findall(r'(\w+): \["(\w+)", "(\S+)"\]', text[1]))
    assert known == {(each.name, each.method, each.path) for each in OPERATIONS if each.answer is not None}


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_publishing_and_subscribing_in_node_js(node: str) -> None:
    got = in_node(
        f"""
        const client = new roamcast.Client("{node}", {{ token: "{TOKEN}" }});
        const said = [];
        let subscribed;
        const ready = new Promise((resolve) => (subscribed = resolve));
        const events = client.subscribe("n > 0", {{ onSubscribed: subscribed }});
        const first = events.next();
        await ready;
        said.push((await client.status()).subscriptions.length);
        await client.publish({{ type: "low", attributes: {{ n: 0 }} }});
        said.push(await client.publish({{ type: "t", attributes: {{ n: 1, tags: ["ä", true] }},
          payload: Uint8Array.of(0, 255) }}));
        const {{ event, hops, author }} = (await first).value;
        said.push({{ ...event, payload: [...event.payload] }}, hops, author);
        await events.return();
        await client.setHere([1, 2]);
        await client.setAttributes({{ role: "medic" }});
        const {{ here, attributes }} = await client.status();
        said.push(here, attributes, (await client.health()).healthy, (await client.openapi()).openapi);
        let polled = await client.poll(5, {{ wait: 0 }});
        await client.publish({{ attributes: {{ n: 2 }} }});
        polled = await client.poll(5, {{ after: polled.position }});
        said.push(polled.events.map((each) => each.event.attributes));
        said.push(await client.unsubscribe(5), await client.subscriptions());
        console.log(JSON.stringify(said));
        """
    )
    event = {"id": got[1], "type": "t", "attributes": {"n": 1, "tags": ["ä", True]}, "payload": [0, 255]}
    rest = [[1.0, 2.0], {"role": "medic"}, True, "3.1.0", [{"n": 2}], {"unsubscribed": 5}, []]
    assert re.fullmatch("7:[1-9][0-9]*", got[1])
    assert got == [1, got[1], event, 0, 7, *rest]


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_every_error_in_node_js_is_a_client_error(node: str) -> None:
    got = in_node(
        f"""
        const said = [];
        const failing = async (call) => {{
          try {{ await call(); }} catch (e) {{ said.push([e instanceof roamcast.ClientError, e.status, e.message]); }}
        }};
        const client = new roamcast.Client("{node}", {{ token: "{TOKEN}" }});
        await failing(() => new roamcast.Client("{node}").status());
        await failing(() => client.publish({{ typ: "x" }}));
        await failing(() => client.subscribe("price < < 3").next());
        await failing(() => client.unsubscribe("a/b"));
        await failing(() => new roamcast.Client("http://127.0.0.1:1").status());
        await failing(() => new roamcast.Client("http://127.0.0.1:1").subscribe().next());
        console.log(JSON.stringify(said));
        """
    )
    assert [(known, status) for known, status, _ in got] == [
        *((True, 401), (True, 400), (True, 400), (True, 404), (True, 0), (True, 0))
    ]
    assert got[0][2] == "a token is needed: Authorization: Bearer TOKEN"
    assert "did you mean 'type'?" in got[1][2]
    assert got[4][2].startswith("no node answers at http://127.0.0.1:1: ")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_streams_what_the_page_says_it_does(node: str) -> None:
    token = f"Authorization: Bearer {TOKEN}"
    words = ["curl", "-sNG", "-H", token, f"{node}/events", "--data-urlencode", "filter=price < 20"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as stream:
        assert stream.stdout is not None
        assert stream.stdout.readline() == "event: subscribed\n"
        for price in (25, 12.5):
            body = json.dumps({"type": "offer", "attributes": {"price": price}})
            sent = subprocess.run(
                ["curl", "-s", "-H", token, f"{node}/publish", "--json", body],
                check=True,
                capture_output=True,
                text=True,
            )
        assert stream.stdout.readline().startswith('data: {"subscribed":')
        assert stream.stdout.readline() == "\n"
        event = json.loads(stream.stdout.readline().removeprefix("data: "))["event"]
        assert event == {**json.loads(sent.stdout), "type": "offer", "attributes": {"price": 12.5}}
        stream.terminate()


def until(browser: Browser, expression: str) -> Any:  # noqa: ANN401  # any value of JSON
    deadline = time.monotonic() + 30
    while not (value := browser.evaluate(expression)):
        assert time.monotonic() < deadline, (
            f"{expression}; the page says: {browser.evaluate('document.body.innerText')}"
        )
        time.sleep(0.05)
    return value


def test_the_page_on_a_phone(node: str, browser: Browser) -> None:
    browser.open(f"{node}/")
    until(browser, "!login.hidden")
    assert browser.evaluate("main.hidden")
    browser.evaluate(f'token.value = "{TOKEN}"; login.requestSubmit()')
    until(browser, "!main.hidden && subscribed.textContent == 'listening'")
    assert browser.evaluate("document.cookie") == ""  # no script can read it
    assert "Node 7" in browser.evaluate("document.body.innerText")
    browser.evaluate(
        "type.value = 'offer'; attributes.value = 'price = 12.5\\ntags = [\"jazz\", \"<b>live</b>\"]';"
        "publish.requestSubmit()"
    )
    said = until(browser, "published.textContent.startsWith('published') && published.textContent")
    number = re.fullmatch("published as (7:[1-9][0-9]*)", said)
    assert number is not None
    shown = until(browser, "events.innerText")
    assert shown.startswith(f'{number[1]} offer price = 12.5, tags = ["jazz","<b>live</b>"]\nfrom 7, 0 hops')
    browser.evaluate("filter.value = 'price < < 3'; subscribe.requestSubmit()")
    assert "expected a value" in until(browser, "subscribed.classList.contains('wrong') && subscribed.textContent")
    browser.evaluate("attributes.value = 'price'; publish.requestSubmit()")
    assert until(browser, "published.classList.contains('wrong')")
    # Nothing is wider than the screen, and every button is large enough for a finger.
    assert browser.evaluate("document.documentElement.scrollWidth") == 400
    buttons = "[...document.querySelectorAll('main button')].filter((each) => !each.hidden)"
    assert browser.evaluate(f"Math.min(...{buttons}.map((each) => each.offsetHeight))") >= 44
    browser.evaluate("logout.click()")
    until(browser, "!login.hidden")
    assert browser.evaluate("fetch('/status').then((answer) => answer.status)") == 401
    # Refused requests are written on the console by the browser itself; the page's policy must not be broken.
    assert not [words for words in browser.complaints if "Content Security Policy" in words]


def test_a_page_of_another_site_gets_nothing_in_a_browser(node: str, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "foreign.html").write_text("<!doctype html><title>foreign</title>")
    browser.open(f"{node}/")
    browser.evaluate(f"""(async () => {{
        const {{ Client }} = await import("/roamcast.js");
        await new Client().logIn("{TOKEN}");
    }})()""")
    assert browser.evaluate("fetch('/status').then((answer) => answer.status)") == 200
    browser.open((tmp_path / "foreign.html").as_uri())
    for options in ("{}", "{mode: 'no-cors', credentials: 'include'}"):
        outcome = f"fetch('{node}/status', {options}).then((answer) => answer.status, () => 'refused')"
        assert browser.evaluate(outcome) in ("refused", 0)
    opened = f"""new Promise((resolve) => {{
        const events = new EventSource('{node}/events', {{ withCredentials: true }});
        events.onerror = () => resolve('refused');
        events.onopen = () => resolve('open');
    }})"""
    assert browser.evaluate(opened) == "refused"
    socket = f"""new Promise((resolve) => {{
        const socket = new WebSocket('{node.replace("http", "ws")}/subscribe');
        socket.onerror = () => resolve('refused');
        socket.onopen = () => resolve('open');
    }})"""
    assert browser.evaluate(socket) == "refused"


@pytest.mark.slow
def test_the_page_over_the_nodes_own_tls(browser: Browser, tmp_path: Path) -> None:
    """As a phone has it: a self-signed certificate that its user has accepted."""
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    names = ["-subj", "/CN=roamcast", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-keyout", str(tmp_path / "node.key"), "-out", str(tmp_path / "node.crt")]
    subprocess.run(["openssl", "req", "-x509", *curve, "-nodes", *names, *files], check=True, capture_output=True)
    options = ["--token-file", str(tmp_path / "token"), "--tls-cert", str(tmp_path / "node.crt")]
    options += ["--tls-key", str(tmp_path / "node.key")]
    browser.ask("Security.setIgnoreCertificateErrors", ignore=True)
    with process(tmp_path, 8, "--api", "127.0.0.1:0", *options) as started:
        browser.open(f"https://{started.ready()['api']}/")
        until(browser, "!login.hidden")
        browser.evaluate(f'token.value = "{TOKEN}"; login.requestSubmit()')
        until(browser, "!main.hidden && subscribed.textContent == 'listening'")
        browser.evaluate("type.value = 'offer'; attributes.value = 'price = 12.5'; publish.requestSubmit()")
        assert until(browser, "events.innerText").startswith("8:1 offer price = 12.5\n")
        (cookie,) = browser.ask("Network.getCookies")["cookies"]
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
def test_a_subscription_in_node_js_goes_on_after_the_node_was_killed(tmp_path: Path) -> None:
    """A durable one gets every event once, however often the node is killed."""
    script = """
        const client = new roamcast.Client(process.argv[1]);
        const seen = [];
        const options = { id: 5, durable: true, onSubscribed: () => console.error("subscribed") };
        for await (const { event } of client.subscribe("true", options)) {
          seen.push(event.attributes.n);
          console.error(`got ${event.attributes.n}`);
          if (seen.length === 6) break;
        }
        console.log(JSON.stringify(seen));
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    words = [NODE or "node", "--input-type=module", "-e", f'import * as roamcast from "{CLIENT}";\n{script}']
    listener: subprocess.Popen[str] | None = None
    try:
        for number in range(0, 6, 2):
            with process(tmp_path, 9, "--api", where) as node:
                node.ready()
                if listener is None:
                    listener = subprocess.Popen(
                        [*words, f"http://{where}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                    )
                assert listener.stderr is not None
                assert listener.stderr.readline() == "subscribed\n"
                for each in (number, number + 1):
                    run(lambda n=each: publish(where, n))  # type: ignore[misc]
                    assert listener.stderr.readline() == f"got {each}\n"
                node.end(signal.SIGKILL)
        assert listener is not None
        out, _ = listener.communicate(timeout=60)
        assert json.loads(out) == [0, 1, 2, 3, 4, 5]
    finally:
        if listener is not None and listener.poll() is None:
            listener.kill()
            listener.communicate()


async def publish(where: str, number: int) -> None:
    async with Client(where) as client:
        await client.publish({"n": number})
