"""The trigger_* tools: asked for an error of the protocol, they give it. Without the injector they say so.

The injector (`transport.modern.injectSpecErrors`) answers before the SDK reads the body: see `test_servers.injector`.
"""

from test_servers.registry import ToolAnswer, ToolItem, preset, tool
from test_servers.world import Call

TRIGGERS = (
    "trigger_header_mismatch",
    "trigger_missing_capability",
    "trigger_unsupported_version",
    "trigger_method_not_found",
    "trigger_invalid_params",
)


def _trigger(name: str) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        return f"{name}: the injector is off, so there is no error"

    return ToolItem(tool(name, f"Answers with the error {name.removeprefix('trigger_')}"), run)


for _name in TRIGGERS:
    _factory = (lambda name: lambda: _trigger(name))(_name)
    _factory.__doc__ = f"Calls of it are answered with the error {_name.removeprefix('trigger_')}."
    preset("tool", _name)(_factory)
