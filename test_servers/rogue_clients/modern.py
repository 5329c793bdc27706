"""Rogue clients of 2026-07-28."""

import json
from collections.abc import Awaitable
from typing import Any

from test_servers.raw import RawClient, Reply
from test_servers.rogue_clients.base import rogue_client
from test_servers.scenarios.base import Target
from test_servers.scenarios.rogues import FORM, TASKS, told
from test_servers.steps import Scenario

WEATHER = "get_weather"
ECHO = {"name": "echo", "arguments": {"message": "hello"}}


async def _each(steps: Scenario, **asked: Awaitable[Reply]) -> None:
    for title, answer in asked.items():
        await steps.step(title.replace("_", " "), lambda answer=answer: told(answer, 5))  # type: ignore[misc]


@rogue_client("client-headers", config="xmcpheader-modern-http")
async def headers(target: Target, steps: Scenario) -> None:
    """Mirrored headers that are missing, wrong, doubled, unencoded, or encoded wrongly."""
    raw = RawClient(target.url)
    unicode = {"name": "Zürich", "arguments": {}}

    def echo(**how: Any) -> Awaitable[Reply]:
        return raw.call("tools/call", ECHO, **how)

    await _each(
        steps,
        discovered=raw.call("server/discover"),
        listed=raw.call("tools/list"),
        no_version=echo(replace={"mcp-protocol-version": None}),
        another_version=echo(replace={"mcp-protocol-version": "2025-11-25"}),
        no_method=echo(replace={"mcp-method": None}),
        another_method=echo(replace={"mcp-method": "tools/list"}),
        no_name=echo(replace={"mcp-name": None}),
        another_name=echo(replace={"mcp-name": "shout"}),
        broken_sentinel=echo(replace={"mcp-name": "=?base64?***?="}),
        raw_name=raw.call("tools/call", unicode, replace={"mcp-name": "Zürich"}),
        name_twice=echo(extra=[("mcp-name", "echo")]),
        incomplete_accept=echo(replace={"accept": "application/json"}),
    )


@rogue_client("client-parameters", config="xmcpheader-modern-http")
async def parameters(target: Target, steps: Scenario) -> None:
    """Mcp-Param-* headers that are missing, wrong, too many, unencoded, or of a tool that a client has to leave out."""
    raw = RawClient(target.url)

    def weather(city: str | None, **how: Any) -> Awaitable[Reply]:
        return raw.call("tools/call", {"name": WEATHER, "arguments": {"city": city} if city is not None else {}}, **how)

    def provision(**how: Any) -> Awaitable[Reply]:
        arguments = {"region": "eu", "replicas": 2, "options": {"dryRun": True}}
        return raw.call("tools/call", {"name": "provision", "arguments": arguments}, **how)

    right = {"region": "eu", "replicas": 2, "dry-run": True}
    await _each(
        steps,
        discovered=raw.call("server/discover"),
        listed=raw.call("tools/list"),
        missing=weather("Oslo"),
        another_city=weather("Oslo", mirrored={"city": "Bergen"}),
        absent_argument=weather(None, mirrored={"city": "Oslo"}),
        raw_value=weather("Zürich", extra=[("mcp-param-city", "Zürich")]),
        literal_that_looks_encoded=weather("=?base64?T3Nsbw==?=", extra=[("mcp-param-city", "=?base64?T3Nsbw==?=")]),
        broken_sentinel=weather("Oslo", extra=[("mcp-param-city", "=?base64?T3Nsb?=")]),
        twice=weather("Oslo", mirrored={"city": "Oslo"}, extra=[("mcp-param-city", "Oslo")]),
        another_number=provision(mirrored={**right, "replicas": 3}),
        capital_boolean=provision(mirrored={**right, "dry-run": "True"}),
        undeclared=weather("Oslo", mirrored={"city": "Oslo", "country": "NO"}),
        excluded_tool=raw.call("tools/call", {"name": "invalid_header_tool", "arguments": {}}),
    )


@rogue_client("client-envelopes", config="modern-http")
async def envelopes(target: Target, steps: Scenario) -> None:
    """Envelopes that lack something or have it in the wrong shape, batches, responses, bodies that are no JSON-RPC."""
    raw = RawClient(target.url)

    def sent(change: Any) -> Awaitable[Reply]:
        body = raw.body("tools/list")
        lines = [*raw.headers(body).items()]
        changed = change(body)
        return raw.send(changed if isinstance(changed, bytes) else json.dumps(changed).encode(), lines)

    await _each(
        steps,
        discovered=raw.call("server/discover"),
        no_version=raw.call("tools/list", protocolVersion=None),
        no_capabilities=raw.call("tools/list", clientCapabilities=None),
        capabilities_of_another_type=raw.call("tools/list", clientCapabilities=["elicitation"]),
        nameless_client=raw.call("tools/list", clientInfo={"version": "1"}),
        bad_log_level=raw.call("tools/list", logLevel="loud"),
        bad_token=raw.call("tools/list", {"_meta": {"progressToken": {"a": 1}}}),
        bad_trace=raw.call("tools/list", {"_meta": {"traceparent": "00-not-a-trace"}}),
        null_id=sent(lambda body: {**body, "id": None}),
        fractional_id=sent(lambda body: {**body, "id": 1.5}),
        old_jsonrpc=sent(lambda body: {**body, "jsonrpc": "1.0"}),
        batch=sent(lambda body: [body, {**body, "id": 99}]),
        response=sent(lambda body: {"jsonrpc": "2.0", "id": 1, "result": {}}),
        params_as_a_list=sent(lambda body: {**body, "params": [1]}),
        no_json=sent(lambda body: b"{not json"),
        removed_method=raw.call("ping"),
    )


@rogue_client("client-states", config="mrtr-showcase-http")
async def states(target: Target, steps: Scenario) -> None:
    """Retries with an altered, an invented, a replayed or somebody else's requestState, with old ids and other params."""
    raw = RawClient(target.url, capabilities=FORM)
    kept: dict[str, str] = {}
    answer = {"confirm": {"action": "accept", "content": {"confirm": True}}}

    async def ask(action: str, label: str) -> Reply:
        reply = await raw.call("tools/call", {"name": "mrtr_confirm", "arguments": {"action": action}})
        kept[label] = reply.message["result"]["requestState"]
        return reply

    def retry(action: str, state: str, responses: Any = answer, **more: Any) -> Awaitable[Reply]:
        params = {"name": "mrtr_confirm", "arguments": {"action": action}, **more}
        return raw.call("tools/call", {**params, "requestState": state, "inputResponses": responses})

    async def reused_id() -> Reply:
        await ask("reuse the id", "id")
        raw.next_id -= 1
        return await retry("reuse the id", kept["id"])

    async def dropped_state() -> Reply:
        await ask("drop the state", "dropped")
        return await raw.call(
            "tools/call", {"name": "mrtr_confirm", "arguments": {"action": "drop the state"}, "inputResponses": answer}
        )

    async def altered() -> Reply:
        await ask("alter", "altered")
        state = kept["altered"]
        return await retry("alter", state[:-1] + ("A" if state[-1] != "A" else "B"))

    async def unanswered() -> Reply:
        await ask("leave unanswered", "unanswered")
        return await retry("leave unanswered", kept["unanswered"], {})

    async def other_arguments() -> Reply:
        await ask("delete one file", "changed")
        return await retry("delete all files", kept["changed"])

    async def other_tool() -> Reply:
        await ask("use elsewhere", "elsewhere")
        params = {"name": "mrtr_two_step", "arguments": {}, "requestState": kept["elsewhere"], "inputResponses": answer}
        return await raw.call("tools/call", params)

    async def wrong_shape() -> Reply:
        await ask("answer wrongly", "shape")
        return await retry("answer wrongly", kept["shape"], {"confirm": {"result": {"action": "accept"}}})

    async def replayed() -> Reply:
        await ask("replay", "replayed")
        await retry("replay", kept["replayed"])
        return await retry("replay", kept["replayed"])

    await _each(
        steps,
        discovered=raw.call("server/discover"),
        reused_id=reused_id(),
        dropped_state=dropped_state(),
        altered=altered(),
        unanswered=unanswered(),
        other_arguments=other_arguments(),
        other_tool=other_tool(),
        wrong_shape=wrong_shape(),
        replayed=replayed(),
    )


@rogue_client("client-tasks", config="tasks-modern-http")
async def tasks(target: Target, steps: Scenario) -> None:
    """Tasks asked after without the extension, without Mcp-Name, by methods of 2025-11-25, and too fast."""
    raw = RawClient(target.url, capabilities=TASKS | FORM)
    undeclared = RawClient(target.url, next_id=500)
    started = await raw.call("tools/call", {"name": "modern_input_task", "arguments": {}})
    task = {"taskId": started.message["result"]["taskId"]}
    strange = {"never-asked": {"action": "accept", "content": {}}}
    await _each(
        steps,
        undeclared=undeclared.call("tasks/get", task),
        no_name=raw.call("tasks/get", task, replace={"mcp-name": None}),
        another_name=raw.call("tasks/get", task, replace={"mcp-name": "another"}),
        found=raw.call("tasks/get", task),
        strange_key=raw.call("tasks/update", {**task, "inputResponses": strange}),
        result=raw.call("tasks/result", task),
        listed=raw.call("tasks/list"),
    )
