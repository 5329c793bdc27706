"""The place where deliberate faults hook in."""

import httpx2
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from test_servers import misbehaviours
from test_servers.compose import ComposedServer, compose
from test_servers.config import ConfigError, FaultRef, parse
from test_servers.http import build
from test_servers.raw import RawClient

CONFIG = {"serverInfo": {"name": "x", "version": "1"}, "tools": [{"preset": "echo"}], "transport": {"modern": True}}


def test_a_fault_that_does_not_exist_is_a_bad_config() -> None:
    with pytest.raises(ConfigError, match="no_such_fault"):
        parse({**CONFIG, "faults": [{"fault": "no_such_fault"}]}, "c.json")


async def test_a_fault_changes_the_server_and_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misbehaviours, "_registered", dict(misbehaviours.all_faults()))

    @misbehaviours.fault("for_this_test")
    class ForThisTest(misbehaviours.Fault):
        """Renames the server and adds a header."""

        def __init__(self, name: str, header: str = "x-fault") -> None:
            self.name = name
            self.header = header

        def on_server(self, server: ComposedServer) -> None:
            server.name = self.name

        def on_app(self, app: ASGIApp) -> ASGIApp:
            async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
                async def marked(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        message["headers"] = [*message["headers"], (self.header.encode(), b"yes")]
                    await send(message)

                await app(scope, receive, marked)

            return wrapped

    kind = misbehaviours.all_faults()["for_this_test"]
    assert kind.summary == "Renames the server and adds a header."
    config = parse(CONFIG, "c.json")
    config.faults = [FaultRef.model_construct(fault="for_this_test", params=kind.params(name="renamed"))]
    server = compose(config)
    assert server.name == "renamed"
    built = build(server, 8000)
    async with server.session_manager.run():
        raw = RawClient(f"http://127.0.0.1:8000{built.path}", transport=httpx2.ASGITransport(built.app))
        assert (await raw.call("tools/list")).headers["x-fault"] == "yes"
