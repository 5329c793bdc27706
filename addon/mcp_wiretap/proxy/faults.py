"""Faults of our own: caught, counted, said once, listed. Traffic never notices (docs/architecture.md "Fail open")."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, Protocol, cast

from mcp_wiretap.rule.containment import is_interrupt, told

logger = logging.getLogger(__name__)

LISTED = 200  # one fault that hits every flow must not fill the memory; the count goes on


@dataclass(slots=True)
class Fault:
    flow: str | None
    where: str
    error: str


@dataclass(slots=True)
class Faults:
    """What went wrong in our own code since the proxy started."""

    listed: list[Fault] = field(default_factory=list)
    count: int = 0
    _said: set[tuple[str, str]] = field(default_factory=set)

    def note(self, where: str, error: BaseException, flow: str | None = None) -> None:
        """Count a fault. The first of its kind is logged with its traceback, at WARNING: a record of level ERROR while mitmproxy
        starts would end it."""
        self.count += 1
        if len(self.listed) < LISTED:
            self.listed.append(Fault(flow, where, told(error)))
        kind = (where, type(error).__name__)
        if kind not in self._said and len(self._said) < LISTED:
            self._said.add(kind)
            logger.warning(
                "mcp-wiretap: fault in %s; traffic passes untouched, such faults are counted from now on", where, exc_info=error
            )


class HasFaults(Protocol):
    @property
    def faults(self) -> Faults: ...


type Hook[S, **P] = Callable[Concatenate[S, P], Awaitable[None] | None]


def fail_open[S: HasFaults, **P](hook: Hook[S, P]) -> Hook[S, P]:
    """A hook of the addon whose exceptions end here. What it returns is waited for by mitmproxy."""

    name = hook.__name__

    @wraps(hook)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[None] | None:
        try:
            return hook(self, *args, **kwargs)
        except BaseException as error:  # SystemExit ends a connection, CancelledError makes a request wait for ever
            if is_interrupt(error):
                raise
            self.faults.note(name, error, _flow_id(args))
            return None

    return cast(Hook[S, P], guarded)


def _flow_id(args: tuple[Any, ...]) -> str | None:
    found = getattr(args[0], "id", None) if args else None
    return found if isinstance(found, str) else None
