"""What the honest servers answer on the wire, request by request: statuses, codes, error data, members of results."""

import json
from typing import Any, ClassVar

import pytest

from test_servers.raw import PREFIX, Reply
from tests.test_servers.serving import preset, serve

ECHO = {"name": "echo", "arguments": {"message": "hi"}}
OSLO = {"name": "get_weather", "arguments": {"city": "Oslo"}}
ZURICH = {"name": "get_weather", "arguments": {"city": "Zürich"}}
TOOLS = [preset("echo"), preset("get_weather"), preset("mrtr_confirm"), preset("mrtr_two_step"), preset("mrtr_sample")]


def refused(reply: Reply, status: int, code: int) -> None:
    assert (reply.status, reply.code) == (status, code), reply.body
    assert "mcp-session-id" not in reply.headers


async def test_a_result_says_what_kind_it_is_and_who_gave_it() -> None:
    async with serve(tools=TOOLS) as raw:
        result = (await raw.call("tools/call", ECHO)).message["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"][f"{PREFIX}serverInfo"] == {"name": "test", "version": "1"}


@pytest.mark.parametrize(
    "method", ["server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"]
)
async def test_what_may_be_cached_says_so(method: str) -> None:
    items = {"resources": [preset("pixel")], "prompts": [preset("simple_prompt")], "tools": TOOLS}
    async with serve(**items) as raw:
        result = (await raw.call(method)).message["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")


async def test_discover_advertises_what_the_config_says() -> None:
    config: dict[str, Any] = {"tools": TOOLS, "resources": [preset("pixel")], "logging": True}
    async with serve(**config, listChanged={"tools": True}, tasksExtension=True) as raw:
        result = (await raw.call("server/discover")).message["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": False, "listChanged": False},
        "logging": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }


@pytest.mark.parametrize(
    ("method", "params", "mirrored", "replace"),
    [
        ("tools/call", ECHO, {}, {"mcp-name": "other"}),
        ("tools/call", ECHO, {}, {"mcp-name": None}),
        ("tools/call", ECHO, {}, {"mcp-name": "=?base64?not base64?="}),
        ("tools/list", None, {}, {"mcp-method": "tools/call"}),
        ("tools/list", None, {}, {"mcp-method": None}),
        ("tools/list", None, {}, {"mcp-protocol-version": None}),
        ("tools/list", None, {}, {"mcp-protocol-version": "2025-11-25"}),
        ("tools/list", None, {}, {"mcp-protocol-version": "2030-01-01"}),
        ("tools/call", OSLO, {}, {}),
        ("tools/call", OSLO, {"city": "Bergen"}, {}),
        ("tools/call", ZURICH, {}, {"mcp-param-city": "=?base64?WsO8cmljaA?="}),
        ("tools/call", ZURICH, {}, {"mcp-param-city": "=?base64?Qmxh?="}),
    ],
)
@pytest.mark.parametrize("modern", [True, {"legacy": "stateful"}, {"legacy": "reject"}], ids=str)
async def test_headers_that_contradict_the_body_are_refused(
    modern: Any, method: str, params: Any, mirrored: Any, replace: Any
) -> None:
    async with serve(modern, tools=TOOLS) as raw:
        reply = await raw.call(method, params, mirrored=mirrored, replace=replace)
    refused(reply, 400, -32020)
    assert reply.message["id"] == 1


@pytest.mark.parametrize(
    ("params", "mirrored", "replace", "extra"),
    [
        (OSLO, {"city": "Oslo"}, {}, []),
        (ZURICH, {"city": "Zürich"}, {}, []),
        (OSLO, {}, {"mcp-param-city": "=?base64?T3Nsbw==?="}, []),
        (OSLO, {"city": "Oslo"}, {}, [("mcp-param-undeclared", "x")]),
        (ECHO, {}, {"mcp-name": "  echo\t"}, []),
        (ECHO, {}, {"mcp-name": "=?base64?ZWNobw==?="}, []),
        (ECHO, {}, {}, [("mcp-session-id", "stale")]),
        (ECHO, {}, {}, [("last-event-id", "7")]),
    ],
)
@pytest.mark.parametrize("modern", [True, {"legacy": "stateful"}, {"legacy": "reject"}], ids=str)
async def test_headers_that_agree_are_accepted_however_they_are_written(
    modern: Any, params: Any, mirrored: Any, replace: Any, extra: Any
) -> None:
    if "\t" in str(replace.values()) or replace.get("mcp-name", "").strip() != replace.get("mcp-name", ""):
        # Without a socket nothing trims optional whitespace, which is the HTTP parser's work.
        replace = {name: value.strip() for name, value in replace.items()}
    async with serve(modern, tools=TOOLS) as raw:
        reply = await raw.call("tools/call", params, mirrored=mirrored, replace=replace, extra=extra)
    assert reply.status == 200
    assert reply.message["result"]["resultType"] == "complete"


async def test_doubled_headers_are_refused() -> None:
    async with serve(tools=TOOLS) as raw:
        refused(await raw.call("tools/list", extra=[("mcp-method", "tools/call")]), 400, -32020)


async def test_an_unknown_version_is_answered_with_the_known_ones() -> None:
    async with serve(tools=TOOLS) as raw:
        raw.version = "2030-01-01"
        reply = await raw.call("tools/list")
    refused(reply, 400, -32022)
    assert reply.data == {"supported": ["2026-07-28"], "requested": "2030-01-01"}


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_a_missing_envelope_member_is_named(missing: str) -> None:
    async with serve(tools=TOOLS) as raw:
        reply = await raw.call("tools/list", **{missing: None})
    refused(reply, 400, -32602)
    assert missing in reply.message["error"]["message"]


async def test_client_info_may_be_left_out() -> None:
    async with serve(tools=TOOLS) as raw:
        assert (await raw.call("tools/list", clientInfo=None)).status == 200


@pytest.mark.parametrize(
    "method", ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/list", "tasks/result", "no/such"]
)
async def test_methods_that_the_revision_does_not_have_are_not_found(method: str) -> None:
    async with serve(tools=TOOLS, logging=True) as raw:
        refused(await raw.call(method, {"taskId": "x"}), 404, -32601)


async def test_what_is_asked_for_and_not_there_is_invalid_params() -> None:
    config: dict[str, Any] = {"resources": [preset("pixel")], "prompts": [preset("args_prompt")]}
    async with serve(tools=TOOLS, **config) as raw:
        refused(await raw.call("tools/call", {"name": "teleport"}), 200, -32602)
        missing = await raw.call("resources/read", {"uri": "demo://nothing"})
        refused(missing, 200, -32602)
        assert missing.data == {"uri": "demo://nothing"}
        refused(await raw.call("prompts/get", {"name": "nothing"}), 200, -32602)
        refused(await raw.call("prompts/get", {"name": "args_prompt"}), 400, -32602)
        refused(await raw.call("tools/list", {"cursor": "made up"}), 400, -32602)


async def test_bad_arguments_are_a_tool_error_or_a_protocol_error_as_configured() -> None:
    bad = {"name": "echo", "arguments": {"massage": "hi"}}
    async with serve(tools=TOOLS) as raw:
        assert (await raw.call("tools/call", bad)).message["result"]["isError"] is True
    async with serve(tools=TOOLS, argumentErrors="protocol") as raw:
        refused(await raw.call("tools/call", bad), 400, -32602)


@pytest.mark.parametrize(
    ("tool", "declared", "required"),
    [
        ("mrtr_confirm", {}, {"elicitation": {"form": {}}}),
        ("mrtr_confirm", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("mrtr_confirm", {"elicitation": {}}, None),
        ("mrtr_confirm", {"elicitation": {"form": {}}}, None),
        ("mrtr_sample", {"elicitation": {}}, {"sampling": {}}),
        ("mrtr_sample", {"sampling": {}}, None),
        ("mrtr_roots", {}, {"roots": {}}),
        ("mrtr_roots", {"roots": {}}, None),
        ("url_elicitation_form", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("url_elicitation_form", {"elicitation": {"url": {}}}, None),
    ],
)
async def test_input_is_asked_only_of_clients_that_declared_it_in_this_request(tool: str, declared: Any, required: Any) -> None:
    tools = [preset("mrtr_confirm"), preset("mrtr_sample"), preset("mrtr_roots"), preset("url_elicitation_form")]
    arguments = {"action": "x"} if tool == "mrtr_confirm" else {}
    async with serve(tools=tools) as raw:
        raw.capabilities = declared
        reply = await raw.call("tools/call", {"name": tool, "arguments": arguments})
    if required is None:
        assert reply.message["result"]["resultType"] == "input_required"
        assert not {"ttlMs", "cacheScope"} & set(reply.message["result"])
    else:
        refused(reply, 400, -32021)
        assert reply.data == {"requiredCapabilities": required}


class TestRequestState:
    """A state that comes back is the one that was given, for the same call, or it is refused."""

    CALL: ClassVar[dict[str, Any]] = {"name": "mrtr_confirm", "arguments": {"action": "restart"}}
    YES: ClassVar[dict[str, Any]] = {"confirm": {"action": "accept", "content": {"confirm": True}}}

    async def asked(self, raw: Any) -> str:
        result = (await raw.call("tools/call", self.CALL)).message["result"]
        assert set(result["inputRequests"]) == {"confirm"}
        return str(result["requestState"])

    async def test_it_cannot_be_read(self) -> None:
        async with serve(tools=TOOLS) as raw:
            assert "restart" not in await self.asked(raw)
        async with serve(tools=TOOLS, requestState="plain") as raw:
            assert (await self.asked(raw)).startswith("mrtr:restart:")

    async def test_it_completes_the_call_it_was_given_for(self) -> None:
        async with serve(tools=TOOLS) as raw:
            retry = {**self.CALL, "requestState": await self.asked(raw), "inputResponses": self.YES}
            assert (await raw.call("tools/call", retry)).message["result"]["resultType"] == "complete"

    @pytest.mark.parametrize(
        "change",
        [
            {"requestState": "invented"},
            {"name": "mrtr_two_step", "arguments": {}},
            {"arguments": {"action": "delete"}},
        ],
        ids=["invented", "another tool", "other arguments"],
    )
    async def test_it_is_refused_otherwise(self, change: dict[str, Any]) -> None:
        async with serve(tools=TOOLS) as raw:
            retry = {**self.CALL, "requestState": await self.asked(raw), "inputResponses": self.YES} | change
            refused(await raw.call("tools/call", retry), 400, -32602)

    async def test_an_unanswered_question_is_put_again(self) -> None:
        async with serve(tools=TOOLS) as raw:
            retry = {**self.CALL, "requestState": await self.asked(raw), "inputResponses": {"other": self.YES["confirm"]}}
            result = (await raw.call("tools/call", retry)).message["result"]
        assert (result["resultType"], set(result["inputRequests"])) == ("input_required", {"confirm"})


class TestTasksExtension:
    """tasks/* belong to clients that declare the extension, and carry the task id in Mcp-Name."""

    TASKS: ClassVar[dict[str, Any]] = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}

    async def test_a_handle_is_flat_and_can_be_polled_to_its_end(self) -> None:
        async with serve(tools=[preset("modern_task")], tasksExtension=True) as raw:
            raw.capabilities = self.TASKS
            handle = (await raw.call("tools/call", {"name": "modern_task"})).message["result"]
            assert handle["resultType"] == "task"
            assert {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"} <= set(handle)
            seen = []
            for _ in range(4):
                answer = (await raw.call("tasks/get", {"taskId": handle["taskId"]})).message["result"]
                assert answer["resultType"] == "complete"
                seen.append(answer["status"])
            assert seen == ["working", "working", "completed", "completed"]
            assert answer["result"]["isError"] is False
            cancelled = (await raw.call("tasks/cancel", {"taskId": handle["taskId"]})).message["result"]
            assert set(cancelled) == {"resultType", "_meta"}
            again = (await raw.call("tasks/get", {"taskId": handle["taskId"]})).message["result"]
            assert again["status"] == "completed"

    async def test_the_name_header_is_checked(self) -> None:
        async with serve(tools=[preset("modern_task")], tasksExtension=True) as raw:
            raw.capabilities = self.TASKS
            task = (await raw.call("tools/call", {"name": "modern_task"})).message["result"]["taskId"]
            for wrong in (None, "other"):
                refused(await raw.call("tasks/get", {"taskId": task}, replace={"mcp-name": wrong}), 400, -32020)

    async def test_a_client_without_the_extension_is_told_so(self) -> None:
        async with serve(tools=[preset("modern_task")], tasksExtension=True) as raw:
            reply = await raw.call("tasks/get", {"taskId": "x"})
            refused(reply, 400, -32021)
            assert reply.data == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
            assert (await raw.call("tools/call", {"name": "modern_task"})).message["result"]["resultType"] == "complete"

    async def test_a_key_is_asked_once(self) -> None:
        async with serve(tools=[preset("modern_loop_task")], tasksExtension=True) as raw:
            raw.capabilities = self.TASKS
            task = (await raw.call("tools/call", {"name": "modern_loop_task"})).message["result"]["taskId"]
            keys: list[str] = []
            for _ in range(3):
                asked = (await raw.call("tasks/get", {"taskId": task})).message["result"]["inputRequests"]
                keys += asked
                answers = {key: {"action": "accept", "content": {"approved": True}} for key in asked}
                await raw.call("tasks/update", {"taskId": task, "inputResponses": answers})
        assert len(set(keys)) == 3

    async def test_an_unknown_task_is_invalid_params(self) -> None:
        async with serve(tools=[preset("modern_task")], tasksExtension=True) as raw:
            raw.capabilities = self.TASKS
            refused(await raw.call("tasks/get", {"taskId": "unknown"}), 200, -32602)


class TestEras:
    """Which server speaks which revision, and how it says that it does not."""

    INITIALIZE: ClassVar[dict[str, Any]] = {
        "jsonrpc": "2.0",
        "id": "i",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    PLAIN: ClassVar[list[tuple[str, str]]] = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]

    async def initialize(self, raw: Any) -> Reply:
        reply = await raw.send(json.dumps(self.INITIALIZE).encode(), self.PLAIN)
        assert isinstance(reply, Reply)
        return reply

    async def test_a_modern_only_server_names_its_versions_to_a_handshake(self) -> None:
        async with serve({"legacy": "reject"}, tools=TOOLS) as raw:
            reply = await self.initialize(raw)
            refused(reply, 400, -32022)
            assert reply.data == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
            assert reply.message["id"] == "i"
            for method in ("GET", "DELETE"):
                refused(await raw.send(b"", self.PLAIN, http_method=method), 405, -32000)

    async def test_a_stateless_server_shakes_hands_without_a_session(self) -> None:
        async with serve(tools=TOOLS) as raw:
            reply = await self.initialize(raw)
            assert (reply.status, reply.headers.get("mcp-session-id")) == (200, None)
            assert reply.message["result"]["protocolVersion"] == "2025-11-25"
            refused(await raw.send(b"", self.PLAIN, http_method="GET"), 405, -32000)

    async def test_a_dual_server_keeps_sessions_for_the_legacy_era_only(self) -> None:
        async with serve({"legacy": "stateful"}, tools=TOOLS) as raw:
            session = (await self.initialize(raw)).headers["mcp-session-id"]
            assert "mcp-session-id" not in (await raw.call("tools/list")).headers
            headers = [*self.PLAIN, ("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")]
            assert (await raw.send(b"", headers, http_method="DELETE")).status == 200
            ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
            assert (await raw.send(ping, headers)).status == 404

    async def test_a_legacy_server_refuses_a_modern_request(self) -> None:
        async with serve(False, tools=TOOLS) as raw:
            reply = await raw.call("server/discover")
            refused(reply, 400, -32600)
            assert "2025-11-25" in reply.message["error"]["message"]

    async def test_malformed_bodies_are_answered_without_an_id(self) -> None:
        headers = [*self.PLAIN, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")]
        async with serve(tools=TOOLS) as raw:
            for body, code in ((b"{", -32700), (b"[]", -32600), (b"\xff\xfe", -32700)):
                reply = await raw.send(body, headers)
                refused(reply, 400, code)
                assert reply.message["id"] is None

    async def test_notifications_are_accepted_in_silence(self) -> None:
        note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        for modern in (True, {"legacy": "reject"}):
            async with serve(modern, tools=TOOLS) as raw:
                reply = await raw.send(note, [*self.PLAIN, ("mcp-protocol-version", "2026-07-28")])
                assert (reply.status, reply.body) == (202, b"")


async def test_a_gated_tool_is_hidden_and_refused_without_its_extension() -> None:
    extension: dict[str, Any] = {"com.example/x": {}}
    config: dict[str, Any] = {"extensions": extension, "extensionGatedTools": {"com.example/x": ["echo"]}}
    async with serve(tools=TOOLS, **config) as raw:
        listed = (await raw.call("tools/list")).message["result"]["tools"]
        assert "echo" not in [tool["name"] for tool in listed]
        refused(await raw.call("tools/call", ECHO), 400, -32021)
        raw.capabilities = {"extensions": extension}
        assert (await raw.call("tools/call", ECHO)).status == 200


async def test_a_log_message_is_sent_only_when_asked_for() -> None:
    call = {"name": "send_notification", "arguments": {"message": "noted", "level": "info"}}
    async with serve(tools=[preset("send_notification")], logging=True) as raw:
        silent = await raw.call("tools/call", call)
        assert silent.headers["content-type"] == "application/json"
        told = await raw.call("tools/call", call, logLevel="info")
        assert told.headers["content-type"] == "text/event-stream"
        assert told.body.count(b"notifications/message") == 1
        assert b"notifications/message" not in (await raw.call("tools/call", call, logLevel="error")).body
