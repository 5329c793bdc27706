"""Tools that start tasks: of the extension (a TaskPlan), or of 2025-11-25 (see tasks_legacy for what those do).

Without task support on either side the tool answers at once, as any tool does.
"""

import mcp_types as types

from test_servers.presets.mrtr import form
from test_servers.registry import Era, TaskPlan, ToolAnswer, ToolItem, preset, text_result, tool
from test_servers.world import Call, compact

MODERN: frozenset[Era] = frozenset({"modern"})
LEGACY: frozenset[Era] = frozenset({"legacy"})
NOTE = {"note": {"type": "string"}}


def approval() -> types.ElicitRequest:
    return form("May this task go on?", "approved", "boolean", "Approved")


def _at_once(call: Call) -> str:
    return f"{call.name} ran at once, without a task (arguments {compact(call.arguments)})"


@preset("tool", "modern_task")
def modern_task() -> ToolItem:
    """A task that works for two polls and is then complete (extension)."""

    async def run(call: Call) -> ToolAnswer:
        if not call.takes_tasks:
            return _at_once(call)
        text = f"Finished with arguments {compact(call.arguments)}"
        return TaskPlan(lambda answers: text_result(text), polls=2, poll_interval_ms=500)

    return ToolItem(tool("modern_task", "Starts a task that completes", NOTE), run, MODERN)


@preset("tool", "modern_input_task")
def modern_input_task() -> ToolItem:
    """A task that needs an approval before it completes (extension)."""

    async def run(call: Call) -> ToolAnswer:
        if not call.takes_tasks:
            return _at_once(call)
        return TaskPlan(lambda a: text_result(f"Finished with input {compact(a)}"), rounds=({"confirm": approval()},))

    return ToolItem(tool("modern_input_task", "Starts a task that needs approval", NOTE), run, MODERN)


@preset("tool", "modern_loop_task")
def modern_loop_task() -> ToolItem:
    """A task that needs input for ever (extension)."""

    async def run(call: Call) -> ToolAnswer:
        if not call.takes_tasks:
            return _at_once(call)
        return TaskPlan(lambda a: text_result("never reached"), rounds=({"confirm": approval()},), loops=True)

    return ToolItem(tool("modern_loop_task", "Starts a task that never stops asking", NOTE), run, MODERN)


def _legacy(name: str, description: str) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        return _at_once(call)

    execution = types.ToolExecution(task_support="optional")
    return ToolItem(tool(name, description, NOTE, execution=execution), run, LEGACY, legacy_task=name)


@preset("tool", "simple_task")
def simple_task() -> ToolItem:
    """A task that works for a moment and completes (2025-11-25)."""
    return _legacy("simple_task", "Starts a task that completes")


@preset("tool", "progress_task")
def progress_task() -> ToolItem:
    """A task that reports progress while it works (2025-11-25)."""
    return _legacy("progress_task", "Starts a task that reports progress")


@preset("tool", "elicitation_task")
def elicitation_task() -> ToolItem:
    """A task that asks the user while its result is awaited (2025-11-25)."""
    return _legacy("elicitation_task", "Starts a task that asks the user")
