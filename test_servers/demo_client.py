"""The steps of the demonstration. Knows the tools of configs/demo-modern.json and configs/demo-legacy.json.

Honest traffic comes from the Python SDK's client, faulty requests are written by hand.
"""

import asyncio
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from test_servers.client import MODERN, Heard, TasksExtension, error_code, honest_client, text_of
from test_servers.raw import RawClient, Reply
from test_servers.steps import Scenario, Unexpected, expect

FORM: dict[str, Any] = {"elicitation": {"form": {}}}


async def demonstrate(modern: str, legacy: str) -> int:
    """Run all steps against the two URLs; the exit status."""
    scenario = Scenario("demonstration")
    await Modern(modern).run(scenario)
    await Faults(modern).run(scenario)
    await Legacy(legacy).run(scenario)
    print(f"{scenario.passed} steps passed, {len(scenario.failed)} failed", flush=True)
    return scenario.status


class Modern:
    """A conforming client of 2026-07-28."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def run(self, scenario: Scenario) -> None:
        await scenario.step("discover, list, call", self.first_contact)
        await scenario.step("excluded tool", self.excluded_tool)
        await scenario.step("mirrored parameters", self.mirrored)
        await scenario.step("called before tools/list", self.stale_schema)
        await scenario.step("prompt and resource", self.prompt_and_resource)
        await scenario.step("MRTR, one round", self.one_round)
        await scenario.step("MRTR, two rounds", self.two_rounds)
        await scenario.step("MRTR, inputRequests only", self.requests_only)
        await scenario.step("MRTR, requestState only", self.state_only)
        await scenario.step("progress and logs on SSE", self.stream)
        await scenario.step("subscription", self.subscription)
        await scenario.step("cancelled by closing", self.cancelled)
        await scenario.step("task with polls", self.task)

    async def first_contact(self) -> str:
        async with honest_client(self.url, Heard()) as client:
            expect(client.protocol_version == MODERN, f"negotiated {client.protocol_version}")
            await client.list_tools()
            answer = await client.call_tool("echo", {"message": "hello"})
            expect(text_of(answer) == "Echo: hello", text_of(answer))
            return f"{MODERN}, {text_of(answer)}"

    async def excluded_tool(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            kept = {tool.name for tool in (await client.list_tools()).tools}
        listed = await RawClient(self.url).call("tools/list")
        served = {tool["name"] for tool in listed.message["result"]["tools"]}
        expect(served - kept == {"invalid_header_tool"}, f"served {sorted(served)}, kept {sorted(kept)}")
        return "invalid_header_tool is served, and the client leaves it out"

    async def mirrored(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            await client.list_tools()
            for city in ("Oslo", "Zürich"):
                expect(city in text_of(await client.call_tool("get_weather", {"city": city})), city)
            arguments = {"region": "eu-north", "replicas": 3, "options": {"dryRun": True}}
            expect("eu-north" in text_of(await client.call_tool("provision", arguments)), "provision")
        return "Oslo raw, Zürich as a sentinel; a string, an integer and a boolean"

    async def stale_schema(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            answer = await client.call_tool("get_weather", {"city": "Bergen"})
            expect("Bergen" in text_of(answer), text_of(answer))
        return "-32020, then tools/list, then the call again"

    async def prompt_and_resource(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            prompt = await client.get_prompt("args_prompt", {"city": "Zürich"})
            uri = (await client.list_resources()).resources[0].uri
            resource = await client.read_resource(uri)
            expect(prompt.messages and resource.contents, "nothing came")
        return f"{len(prompt.messages)} message, {len(resource.contents)} content"

    async def one_round(self) -> str:
        heard = Heard()
        async with honest_client(self.url, heard, mode=MODERN) as client:
            answer = await client.call_tool("deploy", {"action": "deploy version 7"})
        expect(len(heard.questions) == 1 and "Done" in text_of(answer), text_of(answer))
        return text_of(answer)

    async def two_rounds(self) -> str:
        heard = Heard()
        async with honest_client(self.url, heard, mode=MODERN) as client:
            answer = await client.call_tool("mrtr_two_step")
        expect(len(heard.questions) == 2, f"asked {heard.questions}")
        return text_of(answer)

    async def requests_only(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            first = await client.session.call_tool("mrtr_stateless", allow_input_required=True)
            if not isinstance(first, types.InputRequiredResult):
                raise Unexpected(f"got {first}")
            expect(first.request_state is None and set(first.input_requests or {}) == {"note"}, f"got {first}")
            note = types.ElicitResult(action="accept", content={"value": "remember the milk"})
            answer = await client.call_tool("mrtr_stateless", input_responses={"note": note})
            expect("milk" in text_of(answer), text_of(answer))
        return text_of(answer)

    async def state_only(self) -> str:
        async with honest_client(self.url, Heard(), mode=MODERN) as client:
            first = await client.session.call_tool("mrtr_checkpoint", allow_input_required=True)
            if not isinstance(first, types.InputRequiredResult):
                raise Unexpected(f"got {first}")
            expect(first.request_state is not None and not first.input_requests, f"got {first}")
            answer = await client.call_tool("mrtr_checkpoint", request_state=first.request_state)
        return text_of(answer)

    async def stream(self) -> str:
        heard = Heard()
        async with honest_client(self.url, heard, mode=MODERN, log_level="info") as client:
            await client.call_tool("build_report", {"sections": 3, "delayMs": 120}, progress_callback=heard.on_progress)
        expect(heard.progress == [1, 2, 3] and len(heard.logs) == 3, f"{heard.progress}, {len(heard.logs)} logs")
        return "3 progress events, 3 log messages"

    async def subscription(self) -> str:
        uri, wanted = "demo://resource/static/1", 3
        events: list[object] = []
        async with (
            honest_client(self.url, Heard(), mode=MODERN) as client,
            client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as subscription,
        ):
            for number in range(2):
                await client.call_tool("add_resource", {"uri": f"demo://resource/added/{number}"})
                events.append(await anext(subscription))
            await client.call_tool("update_resource", {"uri": uri, "text": "new"})
            while not any(isinstance(event, ResourceUpdated) for event in events):
                events.append(await anext(subscription))
        changed = sum(isinstance(event, ResourcesListChanged) for event in events)
        expect(len(events) >= wanted and changed, f"heard {events}")
        return f"acknowledged, {len(events)} notifications, closed"

    async def cancelled(self) -> str:
        heard = Heard()
        async with honest_client(self.url, heard, mode=MODERN) as client:
            call = asyncio.create_task(
                client.call_tool("send_progress", {"units": 200, "delayMs": 100}, progress_callback=heard.on_progress)
            )
            # Its end is looked at even if this step is cut short, by a server that has gone.
            call.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.sleep(0.5)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.sleep(0.1)
        expect(0 < len(heard.progress) < 20, f"heard {len(heard.progress)} units")
        return f"closed after {len(heard.progress)} of 200 units"

    async def task(self) -> str:
        tasks = TasksExtension()
        async with honest_client(self.url, Heard(), mode=MODERN, extensions=[tasks]) as client:
            await client.call_tool("modern_task", {"note": "demo"})
        expect(tasks.statuses[-1] == "completed" and len(tasks.statuses) >= 4, f"went {tasks.statuses}")
        return " -> ".join(tasks.statuses)


class Faults:
    """A client of 2026-07-28 that makes mistakes, and the errors it gets for them."""

    def __init__(self, url: str) -> None:
        self.raw = RawClient(url, capabilities=FORM)

    async def run(self, scenario: Scenario) -> None:
        await scenario.step("-32020, wrong Mcp-Name", self.wrong_name)
        await scenario.step("-32020, missing Mcp-Param", self.missing_param)
        await scenario.step("-32020, another city in the header", self.wrong_param)
        await scenario.step("-32020, missing Mcp-Method", self.missing_method)
        await scenario.step("-32021, undeclared capability", self.undeclared)
        await scenario.step("-32022, unknown version", self.unknown_version)
        await scenario.step("-32601, removed method", self.removed_method)
        await scenario.step("-32602, unknown tool", self.unknown_tool)
        await scenario.step("-32602, bad arguments", self.bad_arguments)

    @staticmethod
    def refused(reply: Reply, code: int, status: int) -> str:
        expect((reply.code, reply.status) == (code, status), f"got {reply.status} {reply.message}")
        return f"HTTP {reply.status}, {reply.message['error']['message']}"

    async def wrong_name(self) -> str:
        call = {"name": "echo", "arguments": {"message": "hello"}}
        return self.refused(await self.raw.call("tools/call", call, replace={"mcp-name": "shout"}), -32020, 400)

    async def missing_param(self) -> str:
        call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
        return self.refused(await self.raw.call("tools/call", call), -32020, 400)

    async def wrong_param(self) -> str:
        call = {"name": "get_weather", "arguments": {"city": "Zürich"}}
        return self.refused(await self.raw.call("tools/call", call, mirrored={"city": "Genève"}), -32020, 400)

    async def missing_method(self) -> str:
        return self.refused(await self.raw.call("tools/list", replace={"mcp-method": None}), -32020, 400)

    async def undeclared(self) -> str:
        reply = await RawClient(self.raw.url).call("tools/call", {"name": "deploy", "arguments": {"action": "deploy"}})
        expect("elicitation" in (reply.data or {}).get("requiredCapabilities", {}), f"got {reply.message}")
        return self.refused(reply, -32021, 400)

    async def unknown_version(self) -> str:
        reply = await RawClient(self.raw.url, version="2030-01-01").call("tools/list")
        expect(MODERN in (reply.data or {}).get("supported", []), f"got {reply.message}")
        return self.refused(reply, -32022, 400)

    async def removed_method(self) -> str:
        return self.refused(await self.raw.call("ping"), -32601, 404)

    async def unknown_tool(self) -> str:
        return self.refused(await self.raw.call("tools/call", {"name": "teleport", "arguments": {}}), -32602, 200)

    async def bad_arguments(self) -> str:
        call = {"name": "echo", "arguments": {"massage": "hello"}}
        return self.refused(await self.raw.call("tools/call", call), -32602, 400)


class Legacy:
    """A client of 2025-11-25, and a modern one that has to fall back to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def run(self, scenario: Scenario) -> None:
        await scenario.step("legacy session", self.session)
        await scenario.step("legacy elicitation", self.elicitation)
        await scenario.step("probe and fallback", self.fallback)

    async def session(self) -> str:
        heard, uri = Heard(), "demo://resource/static/1"
        async with honest_client(self.url, heard, mode="legacy") as client:
            await client.list_tools()
            await client.subscribe_resource(uri)
            await client.call_tool("echo", {"message": "hello"})
            await client.call_tool("update_resource", {"uri": uri, "text": "new"})
            await client.set_logging_level("info")
            await client.call_tool("send_notification", {"message": "noted"})
            async with asyncio.timeout(5):
                while "notifications/resources/updated" not in heard.notifications:
                    await asyncio.sleep(0.02)
            version = client.protocol_version
        expect(version == "2025-11-25" and heard.logs, f"{version}, {heard.logs}")
        return f"{version}, heard {sorted(set(heard.notifications))}"

    async def elicitation(self) -> str:
        heard = Heard()
        async with honest_client(self.url, heard, mode="legacy") as client:
            answer = await client.call_tool("collect_elicitation", {"message": "Who are you?"})
        expect(heard.questions == ["Who are you?"], f"asked {heard.questions}")
        return text_of(answer)

    async def fallback(self) -> str:
        async with honest_client(self.url, Heard(), mode="auto") as client:
            await client.call_tool("echo", {"message": "after the fallback"})
            version = client.protocol_version
            try:
                await client.call_tool("teleport")
            except MCPError as error:
                expect(error_code(error) == -32602, f"got {error.code}")
        expect(version == "2025-11-25", f"negotiated {version}")
        return f"server/discover was refused, initialize gave {version}"
