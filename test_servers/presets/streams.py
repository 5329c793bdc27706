"""Tools that speak before they answer: progress and log messages."""

import asyncio

from test_servers.registry import ToolAnswer, ToolItem, preset, tool
from test_servers.world import LEVELS, Call


@preset("tool", "send_progress")
def send_progress() -> ToolItem:
    """Reports progress unit by unit, if the caller gave a token."""

    async def run(call: Call) -> ToolAnswer:
        units = call.arguments.get("units", 3)
        total = call.arguments.get("total", units)
        message = call.arguments.get("message")
        for unit in range(1, units + 1):
            await asyncio.sleep(call.arguments.get("delayMs", 100) / 1000)
            await call.progress(unit, total, message and f"{message} ({unit}/{total})")
        return f"Finished {units} unit(s)"

    properties = {
        "units": {"type": "integer", "minimum": 1, "maximum": 10000},
        "delayMs": {"type": "integer", "minimum": 0},
        "total": {"type": "number"},
        "message": {"type": "string"},
    }
    return ToolItem(tool("send_progress", "Works in units and reports each", properties), run)


@preset("tool", "send_notification")
def send_notification() -> ToolItem:
    """Sends one log message, where logging is on and wanted at that level."""

    async def run(call: Call) -> ToolAnswer:
        message = call.arguments["message"]
        await call.log(call.arguments.get("level", "info"), {"message": message})
        return f"Logged: {message}"

    properties = {"message": {"type": "string"}, "level": {"type": "string", "enum": list(LEVELS)}}
    definition = tool("send_notification", "Sends a log message", properties, required=["message"])
    return ToolItem(definition, run)


@preset("tool", "build_report")
def build_report() -> ToolItem:
    """Progress and log messages in turn, as a longer job would send them."""

    async def run(call: Call) -> ToolAnswer:
        sections = call.arguments.get("sections", 3)
        for section in range(1, sections + 1):
            await asyncio.sleep(call.arguments.get("delayMs", 50) / 1000)
            await call.progress(section, sections, f"section {section}")
            await call.log("info", {"message": f"section {section} written"}, "report")
        return f"Report with {sections} section(s)"

    properties = {"sections": {"type": "integer", "minimum": 1}, "delayMs": {"type": "integer", "minimum": 0}}
    return ToolItem(tool("build_report", "Writes a report, section by section", properties), run)
