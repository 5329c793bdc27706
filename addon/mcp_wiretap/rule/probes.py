"""The probe API: one changed thing in a call that works, and the answers that are right then.

A probe is one function in a rule pack, marked with `@probe`, beside the rule that it proves. It is given a copy of a call that
the server answers well, and changes one thing in it:

    @probe("H02", "no Mcp-Method header", era="modern", rule="HTS011", right=[refused(-32020, 400)])
    def without_method(call: Call) -> None:
        '''A server compares Mcp-Method with the body and refuses a request that lacks it.'''
        call.drop("Mcp-Method")

Level and section are those of the rule; a probe that no rule stands for names its own. `needs` says what the call must have
(`Need` lists all). Packs are found by the entry point group `mcp_wiretap.rules`, as rules are.
"""

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_args

from mcp_wiretap.rule.api import Level
from mcp_wiretap.wire import jsonrpc

type Need = Literal[
    "named",  # the method has a name that Mcp-Name mirrors
    "call",  # a tools/call
    "tools",  # the server lists tools
    "resources",  # the server lists or serves resources
    "listed",  # a list, which takes a cursor
    "param",  # a tools/call with a mirrored argument
    "authorized",  # it carried Authorization
    "session",  # legacy: in a session with an id
    "asked",  # it was answered by input_required
    "retry",  # the retry of such a call, with the state of now
]


@dataclass(slots=True)
class Call:
    """A request as it is going to be sent. `body` is its JSON value; `raw`, where set, is sent in its place. `names` are header
    fields by what they mirror, `mirrored` the Mcp-Param fields that the tool declares, with their values."""

    http_method: str
    headers: list[tuple[str, str]]
    body: Any
    raw: bytes | None = None
    host: str | None = None  # in the place of the server's own
    mirrored: dict[str, str] = field(default_factory=dict)
    twice: bool = False  # the same request is sent a second time, and that answer counts
    new_session: bool = False  # legacy: it is sent without a session
    after_end: bool = False  # legacy: the session is deleted before

    @property
    def params(self) -> dict[str, Any]:
        """The params object of the body."""
        found: dict[str, Any] = self.body.setdefault("params", {})
        return found

    @property
    def meta(self) -> dict[str, Any]:
        found: dict[str, Any] = self.params.setdefault("_meta", {})
        return found

    def header(self, name: str) -> str | None:
        """The first field of that name; None where there is none."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    def put(self, name: str, value: str) -> None:
        """Set a field, in the place of those of the same name."""
        self.drop(name)
        self.headers.append((name, value))

    def add(self, name: str, value: str) -> None:
        """Add a field to those of the same name."""
        self.headers.append((name, value))

    def drop(self, name: str) -> None:
        self.headers = [(known, value) for known, value in self.headers if known.lower() != name.lower()]

    def method(self, method: str, **params: Any) -> None:
        """Make it a request of another method, with the envelope and the headers that it needs."""
        meta = self.meta
        self.body = {"jsonrpc": "2.0", "id": self.body.get("id"), "method": method, "params": {**params, "_meta": meta}}
        if self.header("Mcp-Method") is not None:
            self.put("Mcp-Method", method)
        self.drop("Mcp-Name")
        for name in self.mirrored:
            self.drop(name)

    @property
    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return jsonrpc.dumps(self.body).encode("utf-8", "surrogatepass") if self.body is not None else b""

    def copy(self) -> "Call":
        return copy.deepcopy(self)


@dataclass(slots=True, frozen=True)
class Answer:
    """What a server answered. `kind`: result, tool-error (a result with isError), asked (input_required), error, none (no
    JSON-RPC message), nothing (no answer at all)."""

    kind: Literal["result", "tool-error", "asked", "error", "none", "nothing"]
    status: int | None = None
    code: int | None = None
    message: str = ""
    data: Any = None
    challenge: str | None = None  # WWW-Authenticate

    def __str__(self) -> str:
        words = [f"HTTP {self.status}"] if self.status is not None else []
        words.append({"error": f"error {self.code}", "none": "no JSON-RPC", "nothing": "no answer"}.get(self.kind, self.kind))
        return ", ".join(words)


@dataclass(slots=True, frozen=True)
class Right:
    """One answer that is right. `statuses` empty: any. `code` None: any."""

    kinds: frozenset[str]
    statuses: frozenset[int] = frozenset()
    code: int | None = None
    with_data: tuple[str, ...] = ()  # members that error.data must have
    challenged: bool = False  # WWW-Authenticate must name the resource's metadata

    def fits(self, answer: Answer) -> bool:
        if answer.kind not in self.kinds or (self.statuses and answer.status not in self.statuses):
            return False
        if self.code is not None and answer.code != self.code:
            return False
        if self.challenged and "resource_metadata" not in (answer.challenge or ""):
            return False
        return all(isinstance(answer.data, dict) and member in answer.data for member in self.with_data)

    def __str__(self) -> str:
        return self.words(on_stdio=False)

    def words(self, *, on_stdio: bool) -> str:
        status = (
            ""
            if on_stdio or not self.statuses
            else "4xx "
            if len(self.statuses) > 3
            else "/".join(map(str, sorted(self.statuses))) + " "
        )
        if "error" in self.kinds and self.code is not None:
            return f"{status}{self.code}" + (f" with data.{', data.'.join(self.with_data)}" if self.with_data else "")
        kind = "a result" if "result" in self.kinds else " or ".join(sorted(self.kinds - {"none"})) or "no JSON-RPC"
        return f"{status}{kind}" if self.kinds != ANY else status.strip() or "any answer"


ANY = frozenset({"result", "tool-error", "asked", "error", "none"})
REFUSALS = frozenset(range(400, 500))


def refused(code: int | None, *statuses: int, with_data: Sequence[str] = ()) -> Right:
    """A JSON-RPC error of this code (any, for None), with one of these statuses (any, without)."""
    return Right(frozenset({"error"}), frozenset(statuses), code, tuple(with_data))


def no_message(*statuses: int) -> Right:
    """One of these statuses without a JSON-RPC message."""
    return Right(frozenset({"none"}), frozenset(statuses))


def status(*statuses: int, challenged: bool = False) -> Right:
    """One of these statuses, whatever the body is."""
    return Right(ANY, frozenset(statuses), challenged=challenged)


def as_before() -> Right:
    """A result, as the unchanged call gets it. A tool that says that it failed was called: its server refused nothing."""
    return Right(frozenset({"result", "tool-error"}))


def tool_error() -> Right:
    """A result with isError."""
    return Right(frozenset({"tool-error"}))


def asked() -> Right:
    """A result that asks for input."""
    return Right(frozenset({"asked"}))


type Change = Callable[[Call], None]


@dataclass(slots=True, frozen=True, kw_only=True)
class Probe:
    """A probe with its metadata. Level and section are those of `rule`, once `proves` has looked it up."""

    id: str
    title: str
    change: Change
    era: Literal["modern", "legacy"]
    right: tuple[Right, ...]
    rule: str | None = None
    level: Level | None = None
    spec: str = ""
    needs: frozenset[Need] = frozenset()
    dual: bool = False  # a server that also speaks older revisions may answer otherwise
    http: bool = True  # of headers, statuses, origins: not on stdio
    last: bool = False  # it ends something that others need
    open: bool = False  # the specification leaves it open: it tells how this server does it, and never fails

    @property
    def explanation(self) -> str:
        return " ".join((self.change.__doc__ or self.title).split())


def probe(
    id: str,
    title: str,
    *,
    era: Literal["modern", "legacy"],
    right: Iterable[Right],
    rule: str | None = None,
    level: Level | None = None,
    spec: str = "",
    needs: Iterable[Need] = (),
    dual: bool = False,
    http: bool = True,
    last: bool = False,
    open: bool = False,
) -> Callable[[Change], Change]:
    """Mark a function as a probe. ValueError, naming it, for a declaration that cannot be."""

    def mark(change: Change) -> Change:
        made = Probe(
            id=id,
            title=title,
            change=change,
            era=era,
            right=tuple(right),
            rule=rule,
            level=level,
            spec=spec,
            needs=frozenset(needs),
            dual=dual,
            http=http,
            last=last,
            open=open,
        )
        _check(made)
        change.__probe__ = made  # type: ignore[attr-defined]
        return change

    return mark


def _check(made: Probe) -> None:
    if not re.fullmatch("[A-Z]+[0-9]{2,}", made.id):
        raise ValueError(f"probe {made.id}: its id must be capitals and two digits or more, as in ACME01")
    if not made.right:
        raise ValueError(f"probe {made.id}: right is empty; it must name an answer")
    for need in made.needs:
        if need not in get_args(Need.__value__):
            raise ValueError(f"probe {made.id}: needs has {need!r}, it must be one of {', '.join(get_args(Need.__value__))}")
    if made.rule is None and (made.level is None or not made.spec):
        raise ValueError(f"probe {made.id}: without a rule it must name its own level and spec")


def probes_of(module: ModuleType) -> list[Probe]:
    """The probes defined in a module, in order of definition."""
    found = [getattr(thing, "__probe__", None) for thing in vars(module).values()]
    return [one for one in found if isinstance(one, Probe) and one.change.__module__ == module.__name__]
