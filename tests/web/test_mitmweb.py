"""The handlers inside mitmweb: token, login, XSRF, headers, the websocket, and a mitmweb that lacks what they need."""

import json
import logging
from typing import Any

import pytest
import tornado.testing
import tornado.websocket
from mitmproxy import options
from mitmproxy.tools.web.master import WebMaster

from mcp_wiretap import web
from tests.web.looking import ROUNDS, Script

WRONG = 'modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n'


class TestHandlers(tornado.testing.AsyncHTTPTestCase):
    def get_app(self) -> Any:
        async def make() -> WebMaster:
            master = WebMaster(options.Options(), with_termlog=False)
            master.options.web_password = "right"
            return master

        self.script = Script(WRONG + ROUNDS)
        self.master = self.io_loop.asyncio_loop.run_until_complete(make())

        async def mount() -> str | None:
            return web.mount(self.master, self.script)

        self.master.view.get_by_id = lambda flow: flow
        self.address = self.io_loop.asyncio_loop.run_until_complete(mount())
        return self.master.app

    def ask(self, path: str, *, login: bool = True, **how: Any) -> Any:
        headers = how.pop("headers", {}) | ({"Authorization": "Bearer right"} if login else {})
        return self.fetch(path, headers=headers, follow_redirects=False, **how)

    def test_the_address_has_the_path_before_the_query(self):
        assert self.address is not None and "/mcp/" in self.address.partition("?")[0]

    def test_every_page_answers(self):
        for name in ("", "protocol", "network", "findings", "tools", "streams", "tasks", "logs", "auth", "apps"):
            answer = self.ask(f"/mcp/{name}")
            assert answer.code == 200, name
            assert b"MCP inspector" in answer.body

    def test_without_a_token_there_is_the_login_and_nothing_else(self):
        page = self.ask("/mcp/protocol", login=False)
        assert page.code == 403 and b"Authentication Required" in page.body and b"echo" not in page.body
        for path in (
            "/mcp/rows/protocol",
            "/mcp/row/protocol?key=flow-1",
            "/mcp/copy/json?key=flow-1",
            "/mcp/static/mcp.js",
            "/mcp",
        ):
            answer = self.ask(path, login=False)
            assert answer.code == 403 and b"echo" not in answer.body, path
        assert self.ask("/mcp/protocol?token=wrong", login=False).code == 403
        assert self.ask("/mcp/protocol?token=right", login=False).code == 200

    def test_the_headers_of_mitmweb_protect_the_pages(self):
        answer = self.ask("/mcp/")
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy and "script-src" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY" and answer.headers["Cache-Control"] == "no-store"

    def test_no_page_has_a_script_of_its_own(self):
        for name in ("", "protocol", "findings"):
            body = self.ask(f"/mcp/{name}").body.decode()
            assert body.count("<script") == 1 and 'src="/mcp/static/mcp.js"' in body

    def question(self, *, token: str | None, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "failures", "arguments": {}}}
        body["params"]["_meta"] = {  # type: ignore[index]
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        named = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "failures",
        }
        named |= {"Authorization": f"Bearer {token}"} if token is not None else {}
        return self.fetch("/mcp/rpc", method="POST", headers=named | headers, body=json.dumps(body))

    def test_an_agent_asks_at_the_rpc_endpoint_with_the_token_alone(self):
        answer = self.question(token="right")
        assert answer.code == 200 and "HDR006" in json.loads(answer.body)["result"]["content"][0]["text"]
        assert "Set-Cookie" not in answer.headers
        for wrong in (None, "wrong", ""):
            refused = self.question(token=wrong)
            assert refused.code == 401 and refused.headers["WWW-Authenticate"] == "Bearer" and b"HDR006" not in refused.body

    def test_a_cookie_does_not_open_the_rpc_endpoint(self):
        cookie = self.ask("/mcp/").headers.get_list("Set-Cookie")
        pairs = "; ".join(one.partition(";")[0] for one in cookie)
        assert pairs and self.question(token=None, Cookie=pairs).code == 401

    def test_pages_of_other_origins_cannot_ask(self):
        assert self.question(token="right", Origin="http://evil.example").code == 403
        assert self.question(token="right", **{"Sec-Fetch-Site": "cross-site"}).code == 403

    def test_the_rpc_endpoint_takes_posts_only(self):
        for method in ("GET", "DELETE"):
            answer = self.ask("/mcp/rpc", method=method)
            assert answer.code == 405 and answer.headers["Allow"] == "POST"
        assert self.ask("/mcp/rpc", login=False).code == 401

    def test_rows_and_opened_rows(self):
        answer = self.ask("/mcp/rows/protocol?q=tool:echo")
        assert answer.body.count(b"data-key=") == 1 and "X-Older" in answer.headers
        assert b"HDR006" in self.ask("/mcp/row/protocol?key=flow-1").body
        assert self.ask("/mcp/row/protocol?key=nothing").code == 404
        assert self.ask("/mcp/rows/nothing").code == 404
        assert self.ask("/mcp/nothing").code == 404

    def test_copies(self):
        assert json.loads(self.ask("/mcp/copy/json?key=flow-1").body)[0]["request"]["method"] == "tools/call"
        assert self.ask("/mcp/copy/curl?key=flow-1").body.startswith(b"curl ")
        assert self.ask("/mcp/copy/case?key=flow-2").body.startswith(b"=== ")
        assert self.ask("/mcp/copy/curl?key=nothing").code == 404

    def test_static_files_are_those_and_no_others(self):
        assert self.ask("/mcp/static/mcp.css").headers["Content-Type"].startswith("text/css")
        assert self.ask("/mcp/static/mcp.js").headers["Content-Type"].startswith("text/javascript")
        assert self.ask("/mcp/static/..%2Fsite.css").code == 404
        assert self.ask("/mcp/static/nothing.js").code == 404

    def silence(self, body: Any, **headers: str) -> Any:
        return self.ask(
            "/mcp/silence", method="POST", body=json.dumps(body), headers={"Content-Type": "application/json", **headers}
        )

    def xsrf(self) -> dict[str, str]:
        cookie = self.ask("/mcp/findings").headers.get_list("Set-Cookie")
        token = next(c for c in cookie if c.startswith("_mitmproxy_xsrf=")).split(";")[0].partition("=")[2]
        return {"Cookie": f"_mitmproxy_xsrf={token}", "X-XSRFToken": token}

    def test_a_silence_needs_the_xsrf_token(self):
        wanted = {"rule": "HDR006", "endpoint": "*", "reason": "known"}
        assert self.silence(wanted).code == 403
        assert self.script.book.silences == []
        answer = self.silence(wanted, **self.xsrf())
        assert answer.code == 200
        said = json.loads(answer.body)
        assert said["count"] == 1 and 'rule = "HDR006"' in said["toml"]
        assert [s.rule for s in self.script.book.silences] == ["HDR006"]

    def test_a_silence_needs_a_reason_and_a_rule_that_exists(self):
        token = self.xsrf()
        assert self.silence({"rule": "HDR006", "reason": "  "}, **token).code == 400
        assert self.silence({"rule": "NOPE001", "reason": "x"}, **token).code == 400
        assert self.script.book.silences == []

    def test_another_site_cannot_silence(self):
        answer = self.silence({"rule": "HDR006", "reason": "x"}, **self.xsrf(), **{"Sec-Fetch-Site": "cross-site"})
        assert answer.code >= 400 and self.script.book.silences == []

    def test_a_login_leads_back_to_the_page(self):
        token = self.xsrf()
        answer = self.ask("/mcp/protocol", login=False, method="POST", body="token=right", headers=token)
        assert answer.code == 303 and answer.headers["Location"] == "/mcp/protocol"
        assert self.ask("/mcp/protocol", login=False, method="POST", body="token=wrong", headers=token).code == 403

    @tornado.testing.gen_test
    def test_the_websocket_wants_a_login_and_tells_what_changes(self):
        address = f"ws://127.0.0.1:{self.get_http_port()}/mcp/updates?page=protocol"
        with pytest.raises(tornado.httpclient.HTTPClientError):
            yield tornado.websocket.websocket_connect(address)
        request = tornado.httpclient.HTTPRequest(address, headers={"Authorization": "Bearer right"})
        socket = yield tornado.websocket.websocket_connect(request)
        self.script.inspector.touched(self.script.exchanges[0])
        kinds = set()
        while "rows" not in kinds:
            kinds.add(json.loads((yield socket.read_message()))["type"])
        socket.close()


def test_a_mitmweb_with_other_internals_is_said_so_once(caplog):
    class Other:
        app = object()

    with caplog.at_level(logging.WARNING):
        assert web.mount(Other(), Script(ROUNDS)) is None
    (record,) = caplog.records
    assert "Everything else of mcp-wiretap works" in record.getMessage()
