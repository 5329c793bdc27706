"""What a conforming client does with each config: one scenario a config, made of printed steps."""

import importlib
import pkgutil

from test_servers.scenarios.base import SCENARIOS, Target, scenario
from test_servers.steps import Scenario

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["SCENARIOS", "Target", "run", "scenario"]


async def run(name: str, target: Target) -> int:
    """Run one scenario, or the script of one rogue client, and say how it went; the exit status."""
    from test_servers.rogue_clients import ROGUE_CLIENTS

    steps = Scenario(name)
    await (SCENARIOS[name] if name in SCENARIOS else ROGUE_CLIENTS[name].run)(target, steps)
    print(f"{name}: {steps.passed} steps passed, {len(steps.failed)} failed", flush=True)
    return steps.status
