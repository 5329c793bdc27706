"""Advice as text for a terminal, as Markdown for an issue, as JSON for programs."""

from collections.abc import Sequence
from typing import Any

from mcp_wiretap import explanation
from mcp_wiretap.migrate.advice import Advice, Change, Demand
from mcp_wiretap.migrate.ask import Asked
from mcp_wiretap.report.words import plural
from mcp_wiretap.wire.revision import MODERN_FROM
from mcp_wiretap.wire.secret import concealed, one_line, shown, visible

SCHEMA = 1
LINE = 240  # characters of a message that is shown as an example
_TASKS = "io.modelcontextprotocol/tasks"


def spec_of(demand: Demand) -> str:
    """The section as findings name theirs."""
    return demand.spec if demand.spec == _TASKS else f"{MODERN_FROM} {demand.spec}"


def as_text(recording: str, advice: Sequence[Advice], asked: Sequence[Asked] = (), notes: Sequence[str] = ()) -> list[str]:
    lines = [f"{recording}: what must change for {MODERN_FROM}, by what was used"]
    for one in advice:
        lines += ["", _head(one)]
        for change in one.changes:
            lines += _text_of(change, f"{plural(change.count, 'time')}, {', '.join(f[:8] for f in change.flows)}")
        if one.changes:
            lines.append("  In every migration")
        for change in one.always if one.changes else ():
            lines += _text_of(change, "")
        if one.not_seen and one.changes:
            lines += [f"  Not seen in this recording: {', '.join(one.not_seen)}"]
        if not one.changes:
            lines.append("  Nothing of the legacy revisions was seen.")
    if not advice:
        lines += ["", "There is no MCP traffic in it."]
    lines += _asked_as_text(asked)
    lines += [f"Note: {note}" for note in notes]
    return [visible(concealed(line)) for line in lines]


def _head(one: Advice) -> str:
    server = one.server
    info = server.server.get("serverInfo")
    name = f" ({shown(str(info.get('name')), 60)})" if isinstance(info, dict) and info.get("name") else ""
    spoke = f", {', '.join(server.revisions)}" if server.revisions else ""
    also = f", and {plural(server.modern, 'exchange')} of the modern era, passed over" if server.modern else ""
    return f"{shown(server.url, 200)}{name}: {plural(server.legacy, 'legacy exchange')}{spoke}{also}"


def _text_of(change: Change, seen: str) -> list[str]:
    demand = change.demand
    lines = [f"  {demand.who:6}  {demand.seen}" + (f"   ({seen})" if seen else ""), f"          {demand.what}"]
    lines += [f"          was   {one_line(line, LINE)}" for line in change.was]
    lines += [
        f"          {'now ' if number == 0 else '    '}  {one_line(line, LINE)}" for number, line in enumerate(change.becomes)
    ]
    return [*lines, f"          {spec_of(demand)}"]


def _asked_as_text(asked: Sequence[Asked]) -> list[str]:
    if not asked:
        return []
    lines = ["", "Asked again in the modern era"]
    for one in asked:
        lines.append(f"  {one.verdict:8}  {shown(one.what, 120)}" + (f": {shown(one.why, 200)}" if one.why else ""))
        lines += [f"            {one_line(line, LINE)}" for line in (*one.differences, *one.findings)]
    return lines


def as_markdown(recording: str, advice: Sequence[Advice], asked: Sequence[Asked] = (), notes: Sequence[str] = ()) -> list[str]:
    lines = [f"# {_plain(recording)}: to MCP {MODERN_FROM}", ""]
    for one in advice:
        lines += [f"## {_plain(_head(one))}", ""]
        for title, changes in (("Seen", one.changes), ("In every migration", one.always if one.changes else [])):
            for who in ("server", "client", "both"):
                wanted = [change for change in changes if change.demand.who == who]
                if wanted:
                    lines += [f"### {title}: {who}", ""]
                for change in wanted:
                    lines += _markdown_of(change)
        if not one.changes:
            lines += ["Nothing of the legacy revisions was seen.", ""]
        elif one.not_seen:
            lines += [f"Not seen in this recording: {', '.join(one.not_seen)}.", ""]
    if asked:
        lines += ["## Asked again in the modern era", "", "| verdict | question | what is otherwise |", "|---|---|---|"]
        for each in asked:
            rest = "; ".join([each.why, *each.differences, *each.findings]).strip("; ")
            lines.append(f"| {each.verdict} | {_cell(each.what, 120)} | {_cell(rest, 400)} |")
        lines.append("")
    lines += [f"Note: {_plain(note)}" for note in notes]
    return [visible(concealed(line)) for line in lines]


def _markdown_of(change: Change) -> list[str]:
    demand = change.demand
    seen = f" ({plural(change.count, 'time')})" if change.count else ""
    address = explanation.link(spec_of(demand))
    section = f"[{spec_of(demand)}]({address})" if address else spec_of(demand)
    lines = [f"- [ ] **{demand.seen}**{seen}: {demand.what}. {section}"]
    if change.was or change.becomes:
        body = [f"- {one_line(line, LINE)}" for line in change.was] + [f"+ {one_line(line, LINE)}" for line in change.becomes]
        lines += ["", "  ```diff", *(f"  {line.replace('`', chr(39))}" for line in body), "  ```"]
    return [*lines, ""]


def _plain(text: str) -> str:
    return one_line(text, 400).replace("<", "&lt;").replace("|", "\\|")


def _cell(text: str, limit: int) -> str:
    return shown(text, limit).replace("|", "\\|").replace("<", "&lt;")


def as_json(recording: str, advice: Sequence[Advice], asked: Sequence[Asked] = (), notes: Sequence[str] = ()) -> dict[str, Any]:
    """One object; additive changes only."""
    made: dict[str, Any] = _concealed(
        {
            "to": MODERN_FROM,
            "recording": recording,
            "endpoints": [
                {
                    "url": one.server.url,
                    "transport": "stdio" if one.server.on_stdio else "http",
                    "revisions": list(one.server.revisions),
                    "legacy_exchanges": one.server.legacy,
                    "modern_exchanges": one.server.modern,
                    "changes": [_change_json(change) for change in one.changes],
                    "always": [_change_json(change) for change in one.always] if one.changes else [],
                    "not_seen": one.not_seen,
                }
                for one in advice
            ],
            "asked": [
                {
                    "question": one.what,
                    "verdict": one.verdict,
                    "why": one.why or None,
                    "differences": one.differences,
                    "findings": one.findings,
                }
                for one in asked
            ],
            "notes": list(notes),
        }
    )
    return {"schema": SCHEMA, **made}


def _change_json(change: Change) -> dict[str, Any]:
    demand = change.demand
    return {
        "seen": demand.seen,
        "party": demand.who,
        "count": change.count,
        "flows": change.flows,
        "demand": demand.what,
        "spec": spec_of(demand),
        "was": change.was,
        "becomes": change.becomes,
    }


def _concealed(value: Any) -> Any:
    if isinstance(value, str):
        return concealed(value)
    if isinstance(value, dict):
        return {name: _concealed(inner) for name, inner in value.items()}
    return [_concealed(inner) for inner in value] if isinstance(value, list) else value
