"""Tools that start tasks. What a started task does over time is told by `task`; see tasks_modern and tasks_legacy.

Without task support on either side the tool answers at once, as any tool does.
"""

import mcp_types as types

from test_servers.registry import Era, ToolAnswer, ToolItem, preset, tool
from test_servers.world import Call, compact

MODERN: frozenset[Era] = frozenset({"modern"})
LEGACY: frozenset[Era] = frozenset({"legacy"})


def _task_tool(name: str, description: str, eras: frozenset[Era]) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        return f"{name} ran at once, without a task (arguments {compact(call.arguments)})"

    execution = types.ToolExecution(task_support="optional") if eras == LEGACY else None
    definition = tool(name, description, {"note": {"type": "string"}}, execution=execution)
    return ToolItem(definition, run, eras, task=name)


@preset("tool", "modern_task")
def modern_task() -> ToolItem:
    """A task that works for two polls and is then complete (extension)."""
    return _task_tool("modern_task", "Starts a task that completes", MODERN)


@preset("tool", "modern_input_task")
def modern_input_task() -> ToolItem:
    """A task that needs an approval before it completes (extension)."""
    return _task_tool("modern_input_task", "Starts a task that needs approval", MODERN)


@preset("tool", "modern_loop_task")
def modern_loop_task() -> ToolItem:
    """A task that needs input for ever (extension)."""
    return _task_tool("modern_loop_task", "Starts a task that never stops asking", MODERN)


@preset("tool", "simple_task")
def simple_task() -> ToolItem:
    """A task that works for a moment and completes (2025-11-25)."""
    return _task_tool("simple_task", "Starts a task that completes", LEGACY)


@preset("tool", "progress_task")
def progress_task() -> ToolItem:
    """A task that reports progress while it works (2025-11-25)."""
    return _task_tool("progress_task", "Starts a task that reports progress", LEGACY)


@preset("tool", "elicitation_task")
def elicitation_task() -> ToolItem:
    """A task that asks the user while its result is awaited (2025-11-25)."""
    return _task_tool("elicitation_task", "Starts a task that asks the user", LEGACY)
