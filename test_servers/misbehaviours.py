"""Where deliberate faults hook into an honest server. Knows no fault: `test_servers.rogues` has them.

A fault is a class with a docstring and keyword parameters; it may change the composed MCP server, the ASGI application
around it, or both. A config names it under `faults`.
"""

import importlib
import importlib.util
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from starlette.types import ASGIApp

from test_servers.registry import params_model

if TYPE_CHECKING:
    from test_servers.compose import ComposedServer


class Fault:
    """Base of every fault; override what the fault needs."""

    def on_server(self, server: "ComposedServer") -> None:
        """Change the MCP server before it serves: replace handlers, append middleware."""

    def on_app(self, app: ASGIApp) -> ASGIApp:
        """Wrap the whole ASGI application: headers, statuses, bytes."""
        return app


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A named fault with the model of its parameters."""

    name: str
    make: type[Fault]
    params: type[BaseModel]
    summary: str


_registered: dict[str, FaultKind] = {}


def fault[T: type[Fault]](name: str) -> Any:
    """Declare the decorated class as the fault `name`."""

    def declare(kind: T) -> T:
        if name in _registered:
            raise ValueError(f"the fault {name!r} is declared twice")
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        _registered[name] = FaultKind(name, kind, params_model(name, kind), summary)
        return kind

    return declare


def all_faults() -> dict[str, FaultKind]:
    """Every fault by name, in name order."""
    if importlib.util.find_spec("test_servers.rogues") is not None:
        importlib.import_module("test_servers.rogues")
    return dict(sorted(_registered.items()))
