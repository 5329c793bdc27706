"""The report for a terminal: endpoints, findings grouped by rule, conversations, what was not checked, one line of summary.

Repeating findings are one line with a count. Everything from the wire is shown with its control and bidirectional characters as
escapes, and never read as markup. Without UTF-8 the glyphs have ASCII spellings; words stand beside every glyph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.tally import ConversationRow, EndpointRow, Example, Group, host_of
from mcp_wiretap.report.words import (
    HEADINGS,
    counted,
    duration,
    evidence_words,
    link_words,
    plural,
    revisions_words,
    short_flow,
    sorted_failures,
    sorted_groups,
    worst_first,
)
from mcp_wiretap.trace.finding import RANK
from mcp_wiretap.wire.secret import shown

WIDEST = 120  # lines longer than this are hard to read
NARROWEST = 40
SHOWN = 25  # rows of one table; the rest is counted
LONGEST = 300  # characters of one value from the wire

STYLES = {"error": "red", "warning": "yellow", "info": "blue"}


@dataclass(slots=True, frozen=True)
class Glyphs:
    error: str
    warning: str
    info: str
    ok: str
    times: str
    none: str
    absent: str
    line: str
    more: str

    def of(self, severity: str) -> str:
        return {"error": self.error, "warning": self.warning}.get(severity, self.info)


UNICODE = Glyphs("✕", "▲", "i", "✓", "×", "·", "–", "─", "…")
ASCII = Glyphs("x", "!", "i", "=", "x", ".", "-", "-", "~")


def write(audit: Audit, console: Console, *, ascii_only: bool = False, zone: tzinfo = UTC) -> None:
    """Print the report on `console`; times of day are those of `zone`."""
    _Report(audit, console, ASCII if ascii_only else UNICODE, ascii_only, zone).write()


class _Report:
    def __init__(self, audit: Audit, console: Console, glyphs: Glyphs, ascii_only: bool, zone: tzinfo) -> None:
        self.audit = audit
        self.tally = audit.tally
        self.console = console
        self.glyphs = glyphs
        self.ascii_only = ascii_only
        self.zone = zone
        self.width = max(min(console.width, WIDEST), NARROWEST)

    def write(self) -> None:
        self._head()
        self._inputs()
        self._endpoints()
        for severity in ("error", "warning", "info"):
            self._groups(severity)
        if self.tally.groups:
            example = next(iter(sorted_groups(self.tally, max(self.tally.groups, key=lambda k: RANK[k[0]])[0])))
            self._line()
            self._wrapped(
                f"Evidence of every finding: --format json or html. A rule in full: mcp-wiretap explain {example.rule}",
                "dim",
                indent=2,
            )
        self._failures()
        self._conversations()
        self._not_checked()
        self._silenced()
        self._own_limits()
        self._summary()

    # Sections

    def _head(self) -> None:
        tally, inputs = self.tally, self.audit.inputs
        right = ", ".join(
            (
                plural(len(inputs), "recording"),
                plural(tally.flows, "flow"),
                plural(len(tally.endpoints), "MCP endpoint"),
            )
        )
        self._ends(Text("mcp-wiretap audit", "bold"), Text(right))
        if tally.first is not None and tally.last is not None:
            self._ends(Text(""), Text(self._span(tally.first, tally.last), "dim"))

    def _span(self, first: float, last: float) -> str:
        """When the traffic was: date once where it is one day, with the offset from UTC."""
        one, other = self._moment(first), self._moment(last)
        if one is None or other is None:
            return ""
        end = f"{other:%H:%M:%S}" if one.date() == other.date() else f"{other:%Y-%m-%d %H:%M:%S}"
        return f"{one:%Y-%m-%d %H:%M:%S} {self.glyphs.absent} {end} {one:%Z}"

    def _inputs(self) -> None:
        damaged = self.audit.damaged
        if not damaged:
            return
        self._heading(f"Not read to the end: {len(damaged)}")
        for input_ in damaged:
            mark = Text(f"{self.glyphs.error} ", "red")
            self._row(mark, Text(self._shown(input_.path)), Text(f"  {plural(input_.flows, 'flow')} read", "dim"))
            self._wrapped(input_.error or "", "", indent=4)

    def _endpoints(self) -> None:
        rows = sorted(self.tally.endpoints.values(), key=worst_first)
        if not rows:
            self._line()
            asked, flows = self.tally.preflights, plural(self.tally.flows, "flow")
            what = f"No MCP request followed {plural(asked, 'preflight')} for one" if asked else "No MCP traffic"
            self._row(Text(f"{what} in {flows}."))
            return
        self._heading("Endpoints")
        glyphs = self.glyphs
        columns = self._columns(
            [
                ("era", 7, 0),
                ("server", 18, 3),
                ("endpoint", 20, 2),
                ("revisions", 21, 0),
                ("flows", -6, 0),
                (glyphs.error, -4, 0),
                (glyphs.warning, -4, 0),
            ],
            drop=("revisions", "server", "flows"),
        )
        self._cells(columns, [name for name, _ in columns], "dim")
        for row in rows[:SHOWN]:
            self._endpoint(columns, row)
        self._more(len(rows) - SHOWN, "endpoint")

    def _endpoint(self, columns: list[tuple[str, int]], row: EndpointRow) -> None:
        values = {
            "era": row.era,
            "server": row.server or self.glyphs.absent,
            "endpoint": host_of(row.url),
            "revisions": revisions_words(row.revisions) or self.glyphs.absent,
            "flows": str(row.flows),
            self.glyphs.error: str(row.counts.get("error") or self.glyphs.none),
            self.glyphs.warning: str(row.counts.get("warning") or self.glyphs.none),
        }
        styles = {
            self.glyphs.error: "red" if row.counts.get("error") else "dim",
            self.glyphs.warning: "yellow" if row.counts.get("warning") else "dim",
        }
        self._cells(columns, [values[name] for name, _ in columns], styles=[styles.get(name, "") for name, _ in columns])
        if row.broken is not None:
            said = row.broken if row.broken.startswith("expected ") else f"expected {row.expected or 'otherwise'}: {row.broken}"
            self._wrapped(f"{self.glyphs.error} {said}", "red", indent=10)

    def _groups(self, severity: str) -> None:
        groups = sorted_groups(self.tally, severity)
        if not groups:
            return
        self._heading(f"{HEADINGS[severity]}: {self.tally.severities[severity]}")
        for group in groups:
            self._group(group)

    def _group(self, group: Group) -> None:
        rule = self.audit.rules.get(group.rule)
        title = rule.title if rule is not None else group.rule
        style = STYLES[group.severity]
        left = Text.assemble((f"{self.glyphs.of(group.severity)} ", style), (f"{group.rule:<7} ", f"bold {style}"))
        right = f"{group.party:<6} {group.count:>6} {self.glyphs.times}   {self._clock(group.first)}"
        room = self.width - cell_len(left.plain) - len(right) - 2
        narrow = room < 20  # then the title gets lines of its own
        lines = self._lines(title, self.width - cell_len(left.plain) if narrow else room)
        for number, line in enumerate(lines):
            start = left if number == 0 else Text(" " * cell_len(left.plain))
            end = Text("  " + right) if number == 0 and not narrow else Text()
            self._row(start, Text(line if narrow or number else self._fit(line, room), "bold"), end)
        if narrow:
            self._row(Text("    " + right, "dim"))
        said: list[str] = []
        for example in group.examples:
            if example.message not in said and len(said) < (2 if group.severity == "error" else 1):
                said.append(example.message)
                self._example(example, evidence=group.severity != "info")
                if (again := group.messages[example.message] - 1) > 0:
                    self._wrapped(f"the same in {again} more", "dim", indent=4)
        if other := group.count - sum(group.messages[message] for message in said):
            self._wrapped(f"{other} more, in other words", "dim", indent=4)

    def _example(self, example: Example, *, evidence: bool) -> None:
        flow, server = short_flow(example.flow), example.server
        server_width = min(26, self.width // 3)
        room = self.width - 4 - len(flow) - 2 - 2 - server_width
        self._row(
            Text("    "),
            Text(self._shown(flow), "cyan"),
            Text("  "),
            Text(self._fit(example.operation, room)),
            Text("  "),
            Text(self._fit(server, server_width), "dim"),
        )
        self._wrapped(example.message, "", indent=4)
        for place in example.evidence[:2] if evidence else ():
            self._wrapped(evidence_words(place), "dim", indent=4)

    def _failures(self) -> None:
        """What failed, in the words of the other side."""
        rows = sorted_failures(self.tally)
        if not rows:
            return
        tally = self.tally
        self._heading(f"Failed: {tally.failed} of {plural(tally.operations, 'operation')}")
        several = len(tally.endpoints) > 1
        for row in rows[:SHOWN]:
            count = f"{row.count:>6} {self.glyphs.times}  "
            end = f" (first: flow {short_flow(row.first)})" if row.count > 1 else f" (flow {short_flow(row.first)})"
            lines = self._lines(row.line + end, self.width - len(count))
            for number, line in enumerate(lines):
                self._row(Text(count if number == 0 else " " * len(count)), Text(line))
            where = f" at {host_of(row.endpoint)}" if several else ""
            self._wrapped(f"{row.explained}{where}", "dim", indent=len(count))
        self._more(len(rows) - SHOWN, "kind of failure", "kinds of failure")

    def _conversations(self) -> None:
        rows = self.tally.conversations
        if not rows:
            return
        self._heading("Conversations: " + counted(self.tally.statuses))
        columns = self._columns(
            [
                ("id", 8, 0),
                ("outcome", 14, 0),
                ("operation", 14, 20),
                ("rounds", -6, 0),
                ("total", -7, 0),
                ("client", -7, 0),
                ("links", 22, 1),
            ],
            drop=("links", "client", "total", "rounds"),
        )
        self._cells(columns, [name for name, _ in columns], "dim")
        chosen = sorted(rows, key=lambda row: (row.status == "complete", row.started))[:SHOWN]
        for row in sorted(chosen, key=lambda row: row.started):
            values = self._conversation(row)
            style = {"error": "red", "broken": "red", "complete": "green"}.get(row.status, "yellow")
            self._cells(columns, [values[n] for n, _ in columns], styles=[style if n == "outcome" else "" for n, _ in columns])
        self._more(sum(self.tally.statuses.values()) - len(chosen), "conversation")

    def _conversation(self, row: ConversationRow) -> dict[str, str]:
        absent = self.glyphs.absent
        return {
            "id": short_flow(row.id),
            "outcome": row.status.replace("-", " "),
            "operation": row.operation,
            "rounds": str(row.rounds),
            "total": duration(row.total_ms) if row.total_ms is not None else absent,
            "client": duration(row.client_ms) if row.client_ms else absent,
            "links": link_words(row, self.glyphs.times),
        }

    def _not_checked(self) -> None:
        reasons = sorted(self.tally.reasons.values(), key=lambda reason: -reason.count)
        if not reasons:
            return
        self._heading("Not checked (silence is not a pass)")
        for reason in reasons[:SHOWN]:
            count = f"{reason.count:>6} {self.glyphs.times}  "
            flow = f" (flow {short_flow(reason.flow)})" if reason.count == 1 else f" (first: flow {short_flow(reason.flow)})"
            lines = self._lines(f"{reason.what}: {reason.why}{flow}", self.width - len(count))
            for number, line in enumerate(lines):
                self._row(Text(count if number == 0 else " " * len(count)), Text(line))
        self._more(len(reasons) - SHOWN, "reason")

    def _silenced(self) -> None:
        silenced = self.audit.silenced
        if not silenced:
            return
        self._heading(f"Silenced: {sum(entry.count for entry in silenced)}")
        for entry in silenced[:SHOWN]:
            self._wrapped(f"{entry.count} {self.glyphs.times} {entry.rule} at {entry.endpoint}: {entry.told}", "", indent=2)
        self._more(len(silenced) - SHOWN, "entry", "entries")

    def _own_limits(self) -> None:
        """What went wrong on our side, and what did not fit our limits."""
        if self.tally.faults:
            self._heading(f"Faults of mcp-wiretap itself: {self.tally.faults}")
            for number, fault in enumerate(self.audit.objects("fault")):
                if number >= 5:
                    break
                self._wrapped(f"{fault['where']}: {fault['error']} (flow {short_flow(fault['flow'] or '?')})", "red", indent=2)
            self._more(self.tally.faults - 5, "fault")
        if self.tally.dropped:
            self._heading("Dropped at a limit")
            for what, count in sorted(self.tally.dropped.items()):
                self._wrapped(f"{count} {what}", "", indent=2)

    def _summary(self) -> None:
        tally, status = self.tally, self.audit.exit_status
        self._line()
        self._row(Text(self.glyphs.line * self.width, "dim"))
        left = Text()
        for severity, word in (("error", "error"), ("warning", "warning"), ("info", "note")):
            if count := tally.severities[severity]:
                left.append(f"{self.glyphs.of(severity)} {plural(count, word)}  ", STYLES[severity])
        failed = f"{tally.failed} of {plural(tally.operations, 'operation')} failed" if tally.failed else ""
        if not left and failed:
            left = Text(f"no rule was broken, {failed}", "yellow")
        elif not left:
            looked = tally.mcp_flows and not self.audit.damaged  # a check mark over nothing would say too much
            left = Text(f"{self.glyphs.ok} no findings  " if looked else "no findings ", "green" if looked else "")
            left.append(f"in {plural(tally.mcp_flows, 'MCP flow')}")
        else:
            left.append(f" in {tally.flows_with_findings} of {plural(tally.flows, 'flow')}")
            if failed:
                left.append(f", {failed}")
        why = "damaged input" if self.audit.damaged else f"--fail-on {self.audit.fail_on}"
        self._ends(left, Text(f"exit {status} ({why})"))

    # Layout

    def _line(self) -> None:
        self.console.line()

    def _heading(self, words: str) -> None:
        self._line()
        line = self.glyphs.line
        self._row(Text(line * 2 + " ", "dim"), Text(words, "bold"), Text(" " + line * (self.width - cell_len(words) - 4), "dim"))

    def _row(self, *parts: Text) -> None:
        text = Text.assemble(*parts)
        text.rstrip()
        self.console.print(text, no_wrap=True, overflow="crop", crop=False, highlight=False, soft_wrap=True)

    def _ends(self, left: Text, right: Text) -> None:
        """One part at the left edge, one at the right; two lines where they do not fit one."""
        room = self.width - cell_len(left.plain) - cell_len(right.plain)
        if room < 1:
            for part in (left, right):
                for line in part.wrap(self.console, self.width):
                    self._row(line)
        else:
            self._row(left, Text(" " * room), right)

    def _wrapped(self, words: str, style: str, *, indent: int) -> None:
        for line in self._lines(words, self.width - indent):
            self._row(Text(" " * indent), Text(line, style))

    def _lines(self, words: str, width: int) -> list[str]:
        """Wrapped at words, by cells."""
        return [line.plain.rstrip() for line in Text(self._shown(words)).wrap(self.console, width)]

    def _columns(self, wanted: list[tuple[str, int, int]], drop: Sequence[str]) -> list[tuple[str, int]]:
        """Names and widths: (name, least width (negative: right-aligned), share of what is left). `drop` goes first where the
        terminal is too narrow."""
        wanted = list(wanted)
        for name in drop:
            if sum(abs(least) + 1 for _, least, _ in wanted) + 1 <= self.width:
                break
            wanted = [column for column in wanted if column[0] != name]
        spare = max(self.width - 1 - sum(abs(least) + 1 for _, least, _ in wanted), 0)
        shares = sum(share for _, _, share in wanted) or 1
        return [(name, (abs(least) + spare * share // shares) * (-1 if least < 0 else 1)) for name, least, share in wanted]

    def _cells(
        self, columns: list[tuple[str, int]], values: Sequence[str], style: str = "", styles: Sequence[str] | None = None
    ) -> None:
        parts = [Text(" ")]
        for number, ((_, width), value) in enumerate(zip(columns, values, strict=True)):
            shown = self._fit(value, abs(width), right=width < 0)
            parts += [Text(" "), Text(shown, styles[number] if styles is not None else style)]
        self._row(*parts)

    def _more(self, number: int, word: str, words: str | None = None) -> None:
        if number > 0:
            self._row(Text(f"  {self.glyphs.more} {number} more {word if number == 1 else words or word + 's'}", "dim"))

    def _fit(self, words: str, width: int, *, right: bool = False) -> str:
        """Exactly `width` cells, cut with an ellipsis."""
        words = self._shown(words)
        width = max(width, 1)
        have = cell_len(words)
        if have > width:
            return set_cell_size(words, width - 1) + self.glyphs.more
        return " " * (width - have) + words if right else words + " " * (width - have)

    def _shown(self, words: str) -> str:
        """Text that may come from the wire, as it may reach a terminal."""
        words = shown(words, LONGEST)
        return words.encode("ascii", "backslashreplace").decode() if self.ascii_only else words

    def _moment(self, at: float) -> datetime | None:
        try:
            return datetime.fromtimestamp(at, self.zone)
        except (ValueError, OverflowError, OSError):
            return None

    def _clock(self, at: float) -> str:
        moment = self._moment(at)
        return f"{moment:%H:%M:%S}" if moment is not None else "??:??:??"
