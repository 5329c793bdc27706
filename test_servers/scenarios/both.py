"""Scenarios of the configs that serve both eras."""

import asyncio
from typing import Any

from test_servers.client import MODERN, Heard, text_of
from test_servers.scenarios.base import Target, code_of, scenario
from test_servers.scenarios.legacy import heard_of
from test_servers.steps import Scenario, expect


@scenario("url-elicitation")
async def url_elicitation(target: Target, steps: Scenario) -> None:
    async def consent(mode: str, action: Any) -> str:
        heard = Heard()
        async with target.client(heard, mode=mode, action=action) as client:
            answer = await client.call_tool("url_elicitation_form")
        expect(len(heard.questions) == 1, f"asked {heard.questions}")
        return text_of(answer)

    async def undeclared() -> str:
        async with target.client(mode=MODERN, answers=False) as client:
            expect(await code_of(client.call_tool("url_elicitation_form")) == -32021, "another code")
        return "-32021"

    await steps.step("modern, accepted", lambda: consent("auto", "accept"))
    await steps.step("modern, declined", lambda: consent(MODERN, "decline"))
    await steps.step("legacy, accepted", lambda: consent("legacy", "accept"))
    await steps.step("undeclared", undeclared)


async def _everything(target: Target, mode: str) -> str:
    heard = Heard()
    async with target.client(heard, mode=mode, log_level="info" if mode != "legacy" else None) as client:
        await client.list_tools()
        uri = (await client.list_resources()).resources[0].uri
        await client.read_resource(uri)
        await client.read_resource("demo://users/ada")
        await client.list_resource_templates()
        await client.list_prompts()
        await client.get_prompt("args_prompt", {"city": "Oslo"})
        for tool, arguments in (
            ("echo", {"message": "hello"}),
            ("get_weather", {"city": "Zürich"}),
            ("get_temp", {"city": "Oslo"}),
            ("get_annotated_message", {"messageType": "error"}),
            ("collect_elicitation", {"message": "Who are you?"}),
            ("collect_sample", {"text": "Greet the user"}),
            ("list_roots", {}),
            ("send_notification", {"message": "noted"}),
        ):
            result = await client.call_tool(tool, arguments)
            expect(not result.is_error, f"{tool}: {text_of(result)}")
        expect((await client.call_tool("fail")).is_error, "fail did not fail")
        await client.call_tool("send_progress", {"units": 2, "delayMs": 20}, progress_callback=heard.on_progress)
        version = client.protocol_version
    expect(heard.progress == [1, 2] and heard.logs and len(heard.questions) == 3, f"{heard}")
    return f"{version}, {len(heard.questions)} questions, {len(heard.logs)} log message(s)"


@scenario("dual-era-http", "stdio-everything")
async def everything(target: Target, steps: Scenario) -> None:
    async def mrtr() -> str:
        heard = Heard()
        async with target.client(heard, mode=MODERN) as client:
            await client.call_tool("mrtr_confirm", {"action": "restart"})
            return text_of(await client.call_tool("mrtr_two_step"))

    async def listen() -> str:
        async with target.client() as client, client.listen(tools_list_changed=True) as subscription:
            await client.call_tool("add_tool", {"name": "extra"})
            event = await anext(subscription)
            await client.call_tool("remove_tool", {"name": "extra"})
            return str(event)

    async def legacy_changes() -> str:
        heard = Heard()
        async with target.client(heard, mode="legacy") as client:
            await client.subscribe_resource("demo://resource/static/2")
            await asyncio.sleep(0.2)
            await client.call_tool("update_resource", {"uri": "demo://resource/static/2", "text": "new"})
            await heard_of(heard, "notifications/resources/updated")
            await client.send_ping()
        return ", ".join(sorted(set(heard.notifications)))

    async def resumed() -> str:
        async with target.client(mode="legacy") as client:
            return text_of(await client.call_tool("test_reconnection"))

    await steps.step("modern", lambda: _everything(target, "auto"))
    await steps.step("legacy", lambda: _everything(target, "legacy"))
    await steps.step("MRTR", mrtr)
    await steps.step("subscription", listen)
    await steps.step("legacy subscription", legacy_changes)
    if target.command is None:
        await steps.step("legacy stream, closed and resumed", resumed)
