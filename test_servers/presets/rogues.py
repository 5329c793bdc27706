"""Tools that stand for a fault: honest ones in name only, because the config's faults answer for them."""

from test_servers.registry import ToolAnswer, ToolItem, preset, tool
from test_servers.world import Call


@preset("tool", "stand_in")
def stand_in(names: list[str]) -> list[ToolItem]:
    """Tools without parameters, for faults to answer; without a fault each says its name."""

    def made(name: str) -> ToolItem:
        async def run(call: Call) -> ToolAnswer:
            return name

        return ToolItem(tool(name, "Stands in for a fault"), run)

    return [made(name) for name in names]
