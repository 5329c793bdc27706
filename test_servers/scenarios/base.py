"""What scenarios share: where the server is, and how they are declared."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

from test_servers.client import Heard, honest_client
from test_servers.steps import Scenario, expect


@dataclass
class Target:
    """A server that can be connected to more than once."""

    url: str = ""
    sse: bool = False
    command: StdioServerParameters | None = None
    heard: list[Heard] = field(default_factory=list)

    @classmethod
    def stdio(cls, config: Path) -> "Target":
        arguments = ["-m", "test_servers", str(config.resolve())]
        root = str(Path(__file__).parents[2])
        return cls(command=StdioServerParameters(command=sys.executable, args=arguments, cwd=root))

    def client(self, heard: Heard | None = None, **options: Any) -> Client:
        """A client for a new connection; options as for `honest_client`."""
        server: Any = self.command or (sse_client(self.url) if self.sse else self.url)
        if self.sse:
            options.setdefault("mode", "legacy")
        return honest_client(server, heard or Heard(), **options)


Run = Callable[[Target, Scenario], Awaitable[None]]
SCENARIOS: dict[str, Run] = {}


def scenario(*names: str) -> Callable[[Run], Run]:
    """Declare the decorated function as the scenario of the configs `names`."""

    def declare(run: Run) -> Run:
        for name in names:
            SCENARIOS[name] = run
        return run

    return declare


async def code_of(call: Awaitable[Any]) -> int:
    """The JSON-RPC code of the error that a call has to end in."""
    from test_servers.client import error_code

    try:
        result = await call
    except Exception as error:
        code = error_code(error)
        if code is None:
            raise
        return code
    expect(False, f"no error came, but {result}")
    return 0
