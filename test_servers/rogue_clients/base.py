"""How a rogue client is declared."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from test_servers.scenarios.base import Run


@dataclass(frozen=True, slots=True)
class RogueClient:
    """A script, and the config of the honest server that it is written for."""

    name: str
    config: str
    about: str
    run: Run

    @property
    def path(self) -> Path:
        """What the file with the expected findings is named after."""
        return Path(__file__).with_name(f"{self.name}.py")


ROGUE_CLIENTS: dict[str, RogueClient] = {}


def rogue_client(name: str, config: str) -> Callable[[Run], Run]:
    """Declare the decorated script."""

    def declare(run: Run) -> Run:
        about = " ".join((inspect.getdoc(run) or "").split())
        ROGUE_CLIENTS[name] = RogueClient(name, config, about, run)
        return run

    return declare
