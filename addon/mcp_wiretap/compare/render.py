"""Differences as text for a terminal and as JSON for programs."""

from typing import Any

from mcp_wiretap.compare.difference import Difference
from mcp_wiretap.compare.hop import Crossing
from mcp_wiretap.wire.secret import concealed, visible

SCHEMA = 1
_SIGN = {"added": "+", "removed": "-", "changed": "~"}


def as_json(found: Difference, before: str, after: str) -> dict[str, Any]:
    """One object; additive changes only."""
    told: dict[str, Any] = _concealed(
        {
            "breaking": found.breaking,
            "tools": [
                {
                    "name": t.name,
                    "change": t.kind,
                    "breaking": t.breaking,
                    "changes": [{"where": c.where, "what": c.words, "weight": c.weight} for c in t.changes],
                }
                for t in found.tools
            ],
            "calls": [
                {
                    "method": c.key.method,
                    "name": c.key.name or None,
                    "arguments": c.key.arguments,
                    "before": [{"outcome": r.outcome, "code": r.code, "flow": r.flow} for r in c.before[:20]],
                    "after": [{"outcome": r.outcome, "code": r.code, "flow": r.flow} for r in c.after[:20]],
                }
                for c in found.calls
            ],
            "only_before": [k.title for k in found.only_before],
            "only_after": [k.title for k in found.only_after],
            "eras": [{"path": e.path, "before": e.before, "after": e.after} for e in found.eras],
            "findings": [
                {
                    "rule": f.rule,
                    "severity": f.severity,
                    "party": f.party,
                    "about": f.about,
                    "before": f.before,
                    "after": f.after,
                    "flow": f.flow,
                    "message": f.message,
                }
                for f in found.findings
            ],
            "latencies": [
                {
                    "about": s.about,
                    "before_ms": round(s.before_ms, 3),
                    "after_ms": round(s.after_ms, 3),
                    "samples": list(s.samples),
                }
                for s in found.latencies
            ],
            "notes": found.notes,
        }
    )
    return {"schema": SCHEMA, "before": before, "after": after, **told}


def _concealed(value: Any) -> Any:
    """With the secrets masked that stand in names and messages."""
    if isinstance(value, str):
        return concealed(value)
    if isinstance(value, dict):
        return {name: _concealed(inner) for name, inner in value.items()}
    return [_concealed(inner) for inner in value] if isinstance(value, list) else value


def as_text(found: Difference) -> list[str]:
    lines = [f"Era of {change.path}: was {change.before}, is {change.after}" for change in found.eras]
    if found.tools:
        lines.append(f"Tools: {len(found.tools)}")
        for tool in found.tools:
            lines.append(f"  {_SIGN[tool.kind]} {tool.name}{'   BREAKING' if tool.breaking else ''}")
            lines += [f"      {change.weight:10}  {change.where} {change.words}" for change in tool.changes]
    if found.calls:
        lines.append(f"Calls with another outcome: {len(found.calls)}")
        for call in found.calls:
            lines.append(f"  {call.key.title}")
            lines.append(f"      was {_words(call.before)}, is {_words(call.after)}   {call.after[0].flow[:8]}")
    came = [f for f in found.findings if f.after]
    gone = [f for f in found.findings if not f.after]
    for title, changes, sign in (("Findings that came", came, "+"), ("Findings that went", gone, "-")):
        if changes:
            lines.append(f"{title}: {len(changes)}")
            for one in changes:
                count = one.after or one.before
                lines.append(f"  {sign} {one.severity:7} {one.rule}  {one.party}, {one.about}, {count} x   {one.flow[:8]}")
                lines.append(f"      {one.message}")
    if found.latencies:
        lines.append("Latency, beyond noise")
        lines += [
            f"  {s.about}: median {s.before_ms:.1f} ms, now {s.after_ms:.1f} ms ({s.samples[0]} and {s.samples[1]} calls)"
            for s in found.latencies
        ]
    for title, keys in (("Only in the first", found.only_before), ("Only in the second", found.only_after)):
        if keys:
            more = f" and {len(keys) - 10} more" if len(keys) > 10 else ""
            lines.append(f"{title}: {len(keys)} call{'s' if len(keys) > 1 else ''}")
            lines += [f"  {key.title}" for key in keys[:10]] + ([f"  ...{more}"] if more else [])
    lines += [f"Not compared: {note}" for note in found.notes]
    if not found.any:
        alone = found.only_before or found.only_after
        lines.insert(0, f"The same tools, outcomes and findings{' in what both recordings have' if alone else ''}.")
    return [visible(concealed(line)) for line in lines]


def _words(results: list[Any]) -> str:
    return " | ".join(dict.fromkeys(r.words for r in results))


def hop_as_json(found: Crossing) -> dict[str, Any]:
    told: dict[str, Any] = _concealed(
        {
            "schema": SCHEMA,
            "pairs": [
                {
                    "operation": p.outer.key.title,
                    "client": p.outer.flow,
                    "server": p.inner.flow,
                    "paired_by": p.by,
                    "gateway_ms": round(
                        max(0.0, (p.outer.ended - p.outer.started) - (p.inner.ended - p.inner.started)) * 1000, 3
                    ),
                    "changes": p.changes,
                }
                for p in found.pairs
            ],
            "only_client": [{"operation": s.key.title, "flow": s.flow} for s in found.only_outer],
            "only_server": [{"operation": s.key.title, "flow": s.flow} for s in found.only_inner],
        }
    )
    return told


def hop_as_text(found: Crossing) -> list[str]:
    lines = [f"{len(found.pairs)} operation{'s' if len(found.pairs) != 1 else ''} seen on both sides of the gateway"]
    for one in found.pairs:
        if one.changes:
            lines.append(f"  {one.outer.key.title}   {one.outer.flow[:8]} -> {one.inner.flow[:8]}, by {one.by}")
            lines += [f"      {change}" for change in one.changes]
    same = sum(1 for one in found.pairs if not one.changes)
    if same:
        lines.append(f"  {same} passed unchanged")
    for title, sides in (("Seen at the client only", found.only_outer), ("Seen at the server only", found.only_inner)):
        if sides:
            lines.append(f"{title}: {len(sides)}")
            lines += [f"  {side.key.title}   {side.flow[:8]}" for side in sides[:20]]
    return [visible(concealed(line)) for line in lines]
