"""End to end: each way to put mitmproxy in front of a real client and a real server, and the verdicts that come of it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from mitmproxy.certs import CertStore
from mitmproxy.io import FlowReader

from harness.children import PROXY_VARIABLES, ROOT
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.report.comment import comment, metadata
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from test_servers.client import Heard, honest_client, text_of
from test_servers.config import load
from test_servers.demo_client import demonstrate
from test_servers.serving import bind, running
from tests.proxy import flows, wire

pytestmark = pytest.mark.e2e
WEB = ("--set", "web_password=secret", "--set", "web_open_browser=false")
CONFIGS = ROOT / "test_servers" / "configs"


class At:
    """A server that runs elsewhere, as `wire.proxy` wants it."""

    def __init__(self, url: str) -> None:
        self.url = url


@contextlib.asynccontextmanager
async def serving(*names: str) -> AsyncIterator[list[str]]:
    """The URLs of test servers."""
    async with running([load(CONFIGS / f"{name}.json") for name in names], [bind(0, exact=True) for _ in names]) as servers:
        yield [server.url for server in servers]


@pytest.fixture(autouse=True)
def no_proxy_of_the_environment(monkeypatch):
    for name in (*PROXY_VARIABLES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def proxied(proxy: wire.Proxy, url: str, index: int = 0) -> str:
    return f"http://127.0.0.1:{proxy.ports[index]}/{url.partition('://')[2].partition('/')[2]}"


async def say_hello(url: str) -> None:
    async with honest_client(url, Heard()) as client:
        await client.list_tools()
        assert text_of(await client.call_tool("echo", {"message": "hello"})) == "Echo: hello"


def said(found: list) -> set[str]:
    """What the comments say without the findings."""
    return {flow.comment.partition(": ")[0] for flow in found}


async def test_reverse_mode(tmp_path):
    async with serving("demo-modern") as (url,):
        with wire.proxy(tmp_path, At(url)) as proxy:
            await say_hello(proxied(proxy, url))
            found = await asyncio.to_thread(proxy.flows)
    assert "modern tools/call echo -> complete" in said(found)
    assert {flow.metadata["mcp.era"] for flow in found} == {"modern"}


async def test_forward_mode_by_environment(tmp_path, monkeypatch):
    async with serving("demo-modern") as (url,):
        with wire.proxy(tmp_path, options=["--mode", "regular@18190"]) as proxy:
            await asyncio.to_thread(proxy.child.wait_for, r"HTTP\(S\) proxy listening", 30)
            monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:18190")
            await say_hello(url)
            found = await asyncio.to_thread(proxy.flows)
    assert "modern tools/call echo -> complete" in said(found)


async def test_https_with_the_proxys_authority(tmp_path, monkeypatch):
    async with serving("demo-modern") as (url,), tls(tmp_path / "server", url) as port:
        with wire.proxy(tmp_path, options=["--mode", "regular@18191", "--set", "ssl_insecure=true"]) as proxy:
            await asyncio.to_thread(proxy.child.wait_for, r"HTTP\(S\) proxy listening", 30)
            monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:18191")
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "conf" / "mitmproxy-ca-cert.pem"))
            await say_hello(f"https://localhost:{port}/mcp")
            found = await asyncio.to_thread(proxy.flows)
    assert "modern tools/call echo -> complete" in said(found)
    assert {flow.request.scheme for flow in found} == {"https"}


@contextlib.asynccontextmanager
async def tls(folder: Path, url: str) -> AsyncIterator[int]:
    """A TLS end in front of a plain server; its port. Its certificate is signed by an authority that nobody trusts."""
    entry = CertStore.from_store(folder, "mitmproxy", 2048).get_cert("localhost", [])
    pem = folder / "server.pem"
    pem.write_bytes(entry.cert.to_pem() + _key(entry))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    port = int(url.rpartition(":")[2].partition("/")[0])

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _key(entry) -> bytes:
    from cryptography.hazmat.primitives import serialization as s

    return entry.privatekey.private_bytes(s.Encoding.PEM, s.PrivateFormat.TraditionalOpenSSL, s.NoEncryption())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_several_servers_at_once(tmp_path):
    async with serving("demo-modern", "demo-legacy") as urls:
        with wire.proxy(tmp_path, *map(At, urls)) as proxy:
            for index, url in enumerate(urls):
                await say_hello(proxied(proxy, url, index))
            found = await asyncio.to_thread(proxy.flows)
    assert {"modern tools/call echo -> complete", "legacy tools/call echo -> complete"} <= said(found)


async def test_the_verdicts_of_the_live_run_are_those_of_its_recording(tmp_path):
    async with serving("demo-modern", "demo-legacy") as urls:
        with wire.proxy(tmp_path, *map(At, urls), tool="mitmweb", options=WEB) as proxy:
            assert await demonstrate(*(proxied(proxy, url, index) for index, url in enumerate(urls))) == 0
            # Not what -w wrote: each flow is there as it was when it ended, and what came later may have changed its verdict.
            async with mitmweb(proxy) as client:
                proxy.path.write_bytes((await client.get("/flows/dump")).content)
            assert "mcp-wiretap: fault" not in proxy.child.output()
    with proxy.path.open("rb") as file:
        live = {flow.id: (flow.comment, flow.metadata.get("mcp.rules", "")) for flow in FlowReader(file).stream()}
    inspector = Inspector(RuleBook.of())
    for event in Recording(proxy.path).events():
        inspector.feed(event)
    assert not [fault for exchange in inspector.exchanges.values() for fault in exchange.faults]
    again = {e.flow: (comment(e), metadata(e).get("mcp.rules", "")) for e in inspector.exchanges.values()}
    assert {flow: (live[flow], again[flow]) for flow in live if live[flow] != again[flow]} == {}


async def test_an_upload_into_mitmweb(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    server = wire.Server()
    with wire.proxy(source, server, addon=False) as proxy:
        server.replies.put(wire.whole(flows.result()))
        with proxy.connect() as stream:
            stream.sendall(wire.post(flows.request().raw_content, "Content-Type: application/json", "Mcp-Method: tools/list"))
            await asyncio.to_thread(wire.read_message, stream)
        recorded = await asyncio.to_thread(proxy.flows)
    assert [flow.comment for flow in recorded] == [""]
    with wire.proxy(target, tool="mitmweb", options=[*WEB, "-n"]) as proxy:
        async with mitmweb(proxy) as client:
            await client.post(
                "/flows/dump",
                files={"file": ("a.flow", (source / "flows.flow").read_bytes())},
            )
            for _ in range(100):
                listed = (await client.get("/flows")).json()
                if listed and listed[0]["comment"]:
                    break
                await asyncio.sleep(0.1)
            (flow,) = listed
            assert "[HDR001]" in flow["comment"] and flow["marked"] == "🔴"
            shown = (await client.get(f"/flows/{flow['id']}/request/content/auto.json")).json()
            assert shown["view_name"] == "MCP" and shown["text"].startswith("# tools/call echo")
            options = (await client.get("/options")).json()
            assert options["web_columns"]["value"][-1] == "comment"
            told = await client.post("/commands/mcp.findings", json={"arguments": ["@all"]})
            assert "HDR004" in told.text


@contextlib.asynccontextmanager
async def mitmweb(proxy: wire.Proxy) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of mitmweb's own interface, with its password and its token against forged requests."""
    token = "2|00000000|00000000000000000000000000000000|0"
    headers = {"Authorization": "Bearer secret", "X-XSRFToken": token}
    base = proxy.page.partition("?")[0].rstrip("/")
    async with httpx2.AsyncClient(base_url=base, headers=headers, cookies={"_mitmproxy_xsrf": token}, trust_env=False) as client:
        yield client
