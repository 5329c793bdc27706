"""Scenarios of the modern configs."""

import asyncio
from typing import Any

import mcp_types as types
from mcp.client import advertise
from mcp.client._input_required import InputRequiredRoundsExceededError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from test_servers.client import MODERN, TASKS, Heard, TasksExtension, text_of
from test_servers.raw import RawClient
from test_servers.scenarios.base import Target, code_of, scenario
from test_servers.steps import Scenario, expect


@scenario("modern-http")
async def plain(target: Target, steps: Scenario) -> None:
    async def tools() -> str:
        async with target.client() as client:
            expect(client.protocol_version == MODERN, f"negotiated {client.protocol_version}")
            await client.list_tools()
            temperature = await client.call_tool("get_temp", {"city": "Oslo", "units": "C"})
            expect(temperature.structured_content == {"temperature": 25, "unit": "C", "city": "Oslo"}, str(temperature))
            return text_of(await client.call_tool("echo", {"message": "hello"}))

    async def unknown() -> str:
        async with target.client(mode=MODERN) as client:
            expect(await code_of(client.call_tool("teleport")) == -32602, "another code")
            bad = await client.call_tool("echo", {"massage": "x"})
            expect(bad.is_error, "no tool error")
        return "-32602 for an unknown tool, a tool error for bad arguments"

    await steps.step("tools", tools)
    await steps.step("what does not exist", unknown)


@scenario("modern-mrtr-http")
async def one_round(target: Target, steps: Scenario) -> None:
    async def answered(action: Any) -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN, action=action) as client:
            result = await client.call_tool("mrtr_confirm", {"action": "restart"})
        expect(len(heard.questions) == 1, f"asked {heard.questions}")
        return text_of(result)

    async def undeclared() -> str:
        async with target.client(mode=MODERN, answers=False) as client:
            expect(await code_of(client.call_tool("mrtr_confirm", {"action": "restart"})) == -32021, "another code")
        return "-32021 for a client that declares no elicitation"

    await steps.step("accepted", lambda: answered("accept"))
    await steps.step("declined", lambda: answered("decline"))
    await steps.step("undeclared", undeclared)


@scenario("mrtr-showcase-http")
async def showcase(target: Target, steps: Scenario) -> None:
    async def call(tool: str, rounds: int, arguments: dict[str, Any] | None = None) -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN) as client:
            result = await client.call_tool(tool, arguments)
        expect(len(heard.questions) == rounds and not result.is_error, f"asked {heard.questions}, got {result}")
        return text_of(result) or "an empty result"

    async def endless() -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN, max_rounds=4) as client:
            try:
                await client.call_tool("mrtr_loop")
            except InputRequiredRoundsExceededError:
                return f"gave up after {len(heard.questions)} rounds"
        raise AssertionError("the loop ended")

    await steps.step("mrtr_confirm", lambda: call("mrtr_confirm", 1, {"action": "restart"}))
    await steps.step("mrtr_two_step", lambda: call("mrtr_two_step", 2))
    await steps.step("mrtr_sample", lambda: call("mrtr_sample", 1))
    await steps.step("mrtr_roots", lambda: call("mrtr_roots", 1))
    await steps.step("mrtr_edge", lambda: call("mrtr_edge", 1))
    await steps.step("mrtr_empty", lambda: call("mrtr_empty", 1))
    await steps.step("mrtr_loop", endless)


@scenario("modern-network-http")
async def network(target: Target, steps: Scenario) -> None:
    async def ordinary() -> str:
        async with target.client() as client:
            await client.list_tools()
            uri = (await client.list_resources()).resources[0].uri
            await client.read_resource(uri)
            return text_of(await client.call_tool("get_weather", {"city": "Zürich"}))

    async def trigger(tool: str, code: int) -> str:
        async with target.client(mode=MODERN) as client:
            await client.list_tools()
            expect(await code_of(client.session.call_tool(tool)) == code, "another code")
        return str(code)

    await steps.step("ordinary calls", ordinary)
    await steps.step("trigger_header_mismatch", lambda: trigger("trigger_header_mismatch", -32020))
    await steps.step("trigger_missing_capability", lambda: trigger("trigger_missing_capability", -32021))
    await steps.step("trigger_unsupported_version", lambda: trigger("trigger_unsupported_version", -32022))
    await steps.step("trigger_method_not_found", lambda: trigger("trigger_method_not_found", -32601))


@scenario("xmcpheader-modern-http")
async def mirrored(target: Target, steps: Scenario) -> None:
    async def calls() -> str:
        async with target.client() as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            expect("invalid_header_tool" not in listed, "the client kept invalid_header_tool")
            for city in ("Oslo", "Zürich", " padded ", "=?base64?T3Nsbw==?="):
                expect(city in text_of(await client.call_tool("get_weather", {"city": city})), city)
            arguments = {"region": "eu", "replicas": 2, "options": {"dryRun": False}}
            return text_of(await client.call_tool("provision", arguments))

    async def late_list() -> str:
        async with target.client(mode=MODERN) as client:
            return text_of(await client.call_tool("get_weather", {"city": "Bergen"}))

    async def invalid_params() -> str:
        async with target.client(mode=MODERN) as client:
            expect(await code_of(client.session.call_tool("trigger_invalid_params")) == -32602, "another code")
        return "-32602"

    await steps.step("mirrored values", calls)
    await steps.step("call, -32020, list, call", late_list)
    await steps.step("trigger_invalid_params", invalid_params)


@scenario("logging-modern-http")
async def logging(target: Target, steps: Scenario) -> None:
    async def at(level: types.LoggingLevel | None, expected: int) -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN, log_level=level) as client:
            await client.call_tool("send_notification", {"message": "noted", "level": "info"})
        expect(len(heard.logs) == expected, f"heard {heard.logs}")
        return f"{expected} message(s)"

    async def report() -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN, log_level="debug") as client:
            await client.call_tool("build_report", {"sections": 2}, progress_callback=heard.on_progress)
        expect((len(heard.logs), heard.progress) == (2, [1, 2]), f"{heard}")
        return "2 log messages, 2 progress events"

    await steps.step("not asked for", lambda: at(None, 0))
    await steps.step("asked for at info", lambda: at("info", 1))
    await steps.step("asked for at error", lambda: at("error", 0))
    await steps.step("progress and logs", report)


@scenario("subscriptions-modern-http")
async def subscriptions(target: Target, steps: Scenario) -> None:
    uri = "demo://resource/static/1"

    async def everything() -> str:
        kinds: set[str] = set()
        async with (
            target.client(mode=MODERN) as client,
            client.listen(
                tools_list_changed=True,
                prompts_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=[uri],
            ) as subscription,
        ):
            for tool, arguments in (
                ("add_tool", {"name": "extra"}),
                ("remove_tool", {"name": "extra"}),
                ("add_prompt", {"name": "extra"}),
                ("remove_prompt", {"name": "extra"}),
                ("add_resource", {"uri": "demo://resource/added"}),
                ("remove_resource", {"uri": "demo://resource/added"}),
                ("update_resource", {"uri": uri, "text": "new"}),
            ):
                await client.call_tool(tool, arguments)
            wanted = {k.__name__ for k in (ToolsListChanged, PromptsListChanged, ResourcesListChanged, ResourceUpdated)}
            while kinds != wanted:
                kinds.add(type(await anext(subscription)).__name__)
        return ", ".join(sorted(kinds))

    async def two_streams() -> str:
        async with (
            target.client(mode=MODERN) as client,
            client.listen(resource_subscriptions=[uri]) as one,
            client.listen(resource_subscriptions=["demo://resource/static/2"]) as other,
        ):
            await client.call_tool("update_resource", {"uri": uri, "text": "newer"})
            event = await anext(one)
            expect(event == ResourceUpdated(uri=uri), f"heard {event}")
            try:
                async with asyncio.timeout(0.3):
                    expect(False, f"the other stream heard {await anext(other)}")
            except TimeoutError:
                return "only the stream that asked for it heard of it"
        raise AssertionError("unreachable")

    await steps.step("all kinds on one stream", everything)
    await steps.step("two streams", two_streams)


@scenario("tasks-modern-http")
async def tasks(target: Target, steps: Scenario) -> None:
    async def follow(tool: str, *, cancel_after: int | None = None, ends: str = "completed") -> str:
        extension = TasksExtension(cancel_after=cancel_after)
        async with target.client(mode=MODERN, extensions=[extension]) as client:
            await client.call_tool(tool, {"note": "drive"})
        expect(extension.statuses[-1] == ends, f"went {extension.statuses}")
        return " -> ".join(extension.statuses)

    async def without() -> str:
        async with target.client(mode=MODERN) as client:
            return text_of(await client.call_tool("modern_task"))

    async def unknown() -> str:
        reply = await RawClient(target.url, capabilities={"extensions": {TASKS: {}}}).call(
            "tasks/get", {"taskId": "8c5c3f0e-0000-4000-8000-000000000000"}
        )
        expect((reply.status, reply.code) == (200, -32602), f"{reply.status} {reply.message}")
        return "-32602"

    await steps.step("modern_task", lambda: follow("modern_task"))
    await steps.step("modern_input_task", lambda: follow("modern_input_task"))
    await steps.step("modern_loop_task, cancelled", lambda: follow("modern_loop_task", ends="cancelled"))
    await steps.step("modern_task, cancelled", lambda: follow("modern_task", cancel_after=1, ends="cancelled"))
    await steps.step("client without the extension", without)
    await steps.step("unknown task", unknown)


@scenario("advertised-extensions-http")
async def gated(target: Target, steps: Scenario) -> None:
    async def names(declares: bool) -> list[str]:
        extensions = [advertise(TASKS)] if declares else []
        async with target.client(extensions=extensions) as client:
            extra = client.server_capabilities.extensions or {}
            expect("com.example/weather" in extra and TASKS in extra, f"advertised {extra}")
            listed = [tool.name for tool in (await client.list_tools()).tools]
            if declares:
                await client.call_tool("get_weather", {"city": "Oslo"})
            else:
                code = await code_of(client.session.call_tool("get_weather", {"city": "Oslo"}))
                expect(code == -32021, f"got {code}")
            return listed

    async def compare() -> str:
        hidden, shown = await names(False), await names(True)
        expect((hidden, shown) == (["echo"], ["echo", "get_weather"]), f"{hidden}, {shown}")
        return f"{hidden} without the extension, {shown} with it"

    await steps.step("visible only with the extension", compare)


@scenario("mcp-app-http")
async def app(target: Target, steps: Scenario) -> None:
    async def page() -> str:
        async with target.client(extensions=[advertise("io.modelcontextprotocol/ui")]) as client:
            tool = next(t for t in (await client.list_tools()).tools if t.name == "mcp_app_demo")
            uri = (tool.meta or {})["ui"]["resourceUri"]
            content = (await client.read_resource(uri)).contents[0]
            expect(content.mime_type == "text/html;profile=mcp-app", str(content.mime_type))
            return f"{uri}, {text_of(await client.call_tool('mcp_app_demo'))}"

    await steps.step("tool and page", page)


@scenario("duplicate-tool-names-http")
async def duplicates(target: Target, steps: Scenario) -> None:
    async def listed() -> str:
        async with target.client() as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            expect(names.count("echo") == 2, f"listed {names}")
            return f"{names}, {text_of(await client.call_tool('echo', {'message': 'once'}))}"

    await steps.step("listed twice, called once", listed)


@scenario("pagination-http")
async def pages(target: Target, steps: Scenario) -> None:
    async def walk(kind: str) -> str:
        sizes: list[int] = []
        async with target.client(mode=MODERN) as client:
            cursor: str | None = None
            while True:
                page: Any = await getattr(client, f"list_{kind}")(cursor=cursor)
                sizes.append(len(getattr(page, kind)))
                cursor = page.next_cursor
                if cursor is None:
                    break
            expect(await code_of(getattr(client, f"list_{kind}")(cursor="nonsense")) == -32602, "another code")
        expect(sizes == [4, 4, 4], f"pages of {sizes}")
        return "3 pages of 4, and -32602 for a cursor never issued"

    for kind in ("tools", "resources", "resource_templates", "prompts"):
        await steps.step(kind, lambda kind=kind: walk(kind))  # type: ignore[misc]


@scenario("structured-output-http")
async def structured(target: Target, steps: Scenario) -> None:
    async def call(tool: str, arguments: dict[str, Any]) -> str:
        async with target.client() as client:
            # The client checks the structured content against the output schema by itself.
            await client.list_tools()
            return str((await client.call_tool(tool, arguments)).structured_content)

    await steps.step("get_temp", lambda: call("get_temp", {"city": "Oslo", "units": "F"}))
    await steps.step("get_temp_extra", lambda: call("get_temp_extra", {"city": "Oslo"}))
    await steps.step("list_items", lambda: call("list_items", {}))
    await steps.step("get_sum", lambda: call("get_sum", {"a": 2, "b": 3}))


@scenario("nullable-fields-http")
async def nullable(target: Target, steps: Scenario) -> None:
    async def call(arguments: dict[str, Any]) -> str:
        async with target.client() as client:
            await client.list_tools()
            result = await client.call_tool("record_shipment", arguments)
            expect(not result.is_error, text_of(result))
            return str(result.structured_content)

    await steps.step("nulls", lambda: call({"orderId": "A-1", "carrier": None, "weightKg": None}))
    await steps.step("values", lambda: call({"orderId": "A-2", "carrier": "rail", "weightKg": 12.5}))


@scenario("rfc6570-templates-http")
async def templates(target: Target, steps: Scenario) -> None:
    async def read(uri: str, expected: str) -> str:
        async with target.client(mode=MODERN) as client:
            content = (await client.read_resource(uri)).contents[0]
            text = getattr(content, "text", "")
            expect(expected in text, text)
            return text

    async def missing() -> str:
        async with target.client(mode=MODERN) as client:
            await client.list_resource_templates()
            expect(await code_of(client.read_resource("demo://nothing/here")) == -32602, "another code")
        return "-32602"

    async def complete() -> str:
        async with target.client() as client:
            template = types.ResourceTemplateReference(uri="demo://users/{userId}")
            users = await client.complete(template, {"name": "userId", "value": "a"})
            prompt = types.PromptReference(name="args_prompt")
            cities = await client.complete(prompt, {"name": "city", "value": "z"})
            expect(users.completion.values == ["ada", "alan"], str(users))
            expect(cities.completion.values == ["Zürich"], str(cities))
            return f"{users.completion.values}, {cities.completion.values}"

    await steps.step("simple", lambda: read("demo://users/ada", "userId=ada"))
    await steps.step("reserved", lambda: read("demo://files/a/b.txt", "path=a/b.txt"))
    await steps.step("query", lambda: read("demo://search?q=zebra&limit=5", "q=zebra"))
    await steps.step("path segments", lambda: read("demo://tree/a/b", "parts="))
    await steps.step("no such resource", missing)
    await steps.step("completion", complete)
