"""The JSON of a message, pretty and with its secrets masked. Long texts and long lists are shortened, and said to be."""

from typing import Any

from mcp_wiretap.report.words import plural
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import note, scalar
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.secret import ENTERED, IN_SCHEMAS, concealed, hidden, is_secret, mask, visible

VALUES = 5_000  # JSON values shown: writing them takes some 20 ms, in which the proxy does nothing else
TEXT = 4_000  # characters of one string
TOTAL = 200_000  # characters of all strings


class _Budget:
    def __init__(self) -> None:
        self.values, self.characters, self.cut = VALUES, TOTAL, False


def request(subject: Subject) -> list[str]:
    return _section("body", content(subject.whole, "request"))


def response(subject: Subject) -> list[str]:
    """The body, or the messages of the stream's events."""
    whole = subject.whole
    if whole.stream is None:
        return _section("body", content(whole, "response"))
    out: list[str] = []
    budget = _Budget()
    for item in whole.stream.items:
        if budget.values <= 0:
            out += note(f"… the data of event {item.event.index} and of those after it are not shown")
            break
        if item.reading is None or item.reading.kind not in ("single", "batch", "not-rpc"):
            continue
        out.append("---")
        out += note(f"event {item.event.index}")
        out += _json("data", shortened(item.reading.value, budget), budget.cut)
    return out


def content(whole: Exchange, side: str) -> tuple[Any, str | None]:
    """(the JSON value, or why there is none)."""
    reading = whole.reading if side == "request" else whole.answer_reading
    if reading is None:
        return None, next((u.why for u in whole.unchecked if u.what == f"{side} body"), "not recorded")
    if reading.kind in ("single", "batch", "not-rpc", "lines"):
        return reading.value, None
    return None, reading.problem or reading.kind


def _section(name: str, holds: tuple[Any, str | None]) -> list[str]:
    found, problem = holds
    if problem == "empty":
        return [f"{name}: none"]
    if problem is not None:
        return [f"{name}: {scalar(problem)}"]
    budget = _Budget()
    return _json(name, shortened(found, budget), budget.cut)


def _json(name: str, item: Any, cut: bool) -> list[str]:
    text = visible_json(jsonrpc.dumps(item, indent=2))
    head = note("shortened; the Raw and JSON views have all of it") if cut else []
    return [*head, *f"{name}: {text}".split("\n")]


def pretty(item: Any) -> str:
    """A JSON value over several lines as it may be shown: masked, shortened, visible."""
    return visible_json(jsonrpc.dumps(shortened(item, _Budget()), indent=2))


def visible_json(text: str) -> str:
    """JSON text whose strings hold no invisible character: line ends are the writer's own, all else becomes an escape."""
    return "\n".join(visible(line) for line in text.split("\n"))


def shortened(item: Any, budget: _Budget, depth: int = 0, entered: bool = False, of: str = "") -> Any:
    """A copy with secrets masked, within the budget. `of`: the name of the member that it is the value of."""
    budget.values -= 1
    if isinstance(item, str):
        item = concealed(item)
        room = min(TEXT, max(budget.characters, 40))
        if len(item) > room:
            budget.cut = True
            item = f"{item[:room]}… ({len(item)} characters)"
        budget.characters -= len(item)
        return item
    if isinstance(item, dict):
        made: dict[str, Any] = {}
        for name, inner in item.items():
            if budget.values <= 0 or depth > 100:
                budget.cut = True
                made["…"] = f"{plural(len(item) - len(made), 'more member')}"
                break
            if isinstance(inner, str) and is_secret(name, inner, entered, of, item):
                made[name] = mask(inner)
            elif isinstance(inner, int):
                made[name] = hidden(name, inner)
            else:
                within = of if name in IN_SCHEMAS else name
                made[name] = shortened(inner, budget, depth + 1, entered or name in ENTERED, within)
        return made
    if isinstance(item, list):
        listed: list[Any] = []
        for inner in item:
            if budget.values <= 0 or depth > 100:
                budget.cut = True
                listed.append(f"… {len(item) - len(listed)} more")
                break
            if isinstance(inner, str) and is_secret(of, inner, entered):
                listed.append(mask(inner))
            else:
                listed.append(shortened(inner, budget, depth + 1, entered, of))
        return listed
    return item
