"""The commands `mcp.*`, for mitmproxy's prompt, its key bindings and mitmweb. Their names have letters and dots only: mitmweb
serves no others.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import mitmproxy.types
from mitmproxy import command, ctx, exceptions, flow, hooks
from mitmproxy.http import HTTPFlow
from mitmproxy.log import ALERT

from mcp_wiretap import explanation, selection
from mcp_wiretap.pages import text as pages
from mcp_wiretap.proxy import editing, reporting
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.report.comment import shown
from mcp_wiretap.report.words import plural, short_flow
from mcp_wiretap.trace.finding import RANK
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.operations.reactions import Reactions

logger = logging.getLogger(__name__)

KEYS = (
    ("Y", "mcp.findings @focus", ("flowlist", "flowview"), "MCP: list the findings of the flow"),
    ("J", "mcp.conversation @focus", ("flowlist", "flowview"), "MCP: show only the flows of the conversation, or all again"),
    ("T", "console.command mcp.explain ", ("flowlist", "flowview"), "MCP: explain a rule"),
)


class Commands(ABC):
    """What the addon object inherits: mitmproxy finds commands on the object itself."""

    @abstractmethod
    def find(self, flow: flow.Flow) -> tuple[Watch, Exchange] | None:
        """The trace that follows a flow, and its exchange there."""

    @abstractmethod
    def settings(self) -> Settings:
        """The options of this moment."""

    @abstractmethod
    def by_hand(self, flow: HTTPFlow) -> None:
        """A person changes this flow."""

    @abstractmethod
    def lost(self) -> dict[str, int]:
        """What was dropped outside of the trace, by name."""

    @abstractmethod
    def inspectors(self) -> list[Inspector]:
        """The traces: live traffic, then each file that was loaded."""

    @abstractmethod
    def planned_faults(self) -> list[str]:
        """The faults that are put into traffic, one line each."""

    @command.command("mcp.fault")  # type: ignore[untyped-decorator]
    def fault(self, verb: str, *line: str) -> Sequence[str]:
        """Put a fault into traffic (add KIND[:ARGUMENT] METHOD [NAME] [#N]), take all back (clear), or list what came of them
        (list)."""
        if verb == "add" and line:
            try:
                ctx.options.update(mcp_fault=[*ctx.options.mcp_fault, " ".join(line)])
            except exceptions.OptionsError as error:
                raise exceptions.CommandError(str(error)) from None
        elif verb == "clear" and not line:
            ctx.options.update(mcp_fault=[], mcp_faults="")
        elif verb != "list" or line:
            raise exceptions.CommandError("mcp.fault takes add KIND[:ARGUMENT] METHOD [NAME] [#N], clear, or list.")
        found = [str(reaction) for inspector in self.inspectors() for reaction in inspector.tracker(Reactions).all.values()]
        return _listed([*self.planned_faults(), *found] or ["no faults"])

    @command.command("mcp.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """List what mcp-wiretap has found in flows, the worst first."""
        entries: list[tuple[int, str]] = []
        for each in flows:
            found = self.find(each)
            for finding in found[1].findings if found is not None else ():
                severity = finding.severity or "info"
                where = finding.evidence[0].where if finding.evidence else ""
                line = f"{severity:<7} {finding.rule} {finding.party}: {finding.message} ({where}, flow {short_flow(each.id)})"
                entries.append((-RANK[severity], shown(line, 500)))
        # Never an empty list: mitmproxy's console cannot show one.
        return _listed([line for _, line in sorted(entries, key=lambda entry: entry[0])] or ["no findings"])

    @command.command("mcp.conversation")  # type: ignore[untyped-decorator]
    def conversation(self, flow: flow.Flow) -> str:
        """Show only the flows of this flow's conversation; once more, and all flows are shown again. Returns its id."""
        found = self.find(flow)
        conversation = found[1].conversation if found is not None else None
        if conversation is None:
            raise exceptions.CommandError("This flow belongs to no conversation of several exchanges.")
        if "view_filter" not in ctx.options:
            raise exceptions.CommandError("There is no flow list to filter here.")
        wanted = f'~meta "^mcp.conversation: {conversation.id}$"'
        ctx.options.update(view_filter=None if ctx.options.view_filter == wanted else wanted)
        return conversation.id

    @command.command("mcp.overview")  # type: ignore[untyped-decorator]
    def overview(self) -> Sequence[str]:
        """List the MCP endpoints: era, server, clients, negotiation, findings. (mitmweb has a page for it, under /mcp/.)"""
        return _listed(pages.overview_lines(pages.read(self.inspectors())))

    @command.command("mcp.conversations")  # type: ignore[untyped-decorator]
    def conversations(self) -> Sequence[str]:
        """List the operations of two or more exchanges: rounds, tasks, fallbacks, answers on other streams."""
        return _listed(pages.conversation_lines(pages.read(self.inspectors()), None))

    @command.command("mcp.streams")  # type: ignore[untyped-decorator]
    def streams(self) -> Sequence[str]:
        """List the event streams, open and closed: what they are about, their events, how they ended."""
        return _listed(pages.stream_lines(pages.read(self.inspectors()), None))

    @command.command("mcp.explain")  # type: ignore[untyped-decorator]
    def explain(self, rule: str) -> str:
        """Explain a rule, by its id or name: what it demands, why, and how to fix what breaks it."""
        try:
            found = selection.find(rule.strip(), self.settings().rules())
        except selection.UnknownRule as error:
            raise exceptions.CommandError(str(error)) from error
        told = explanation.of(found)
        parts = [f"{found.id} {found.name} ({found.severity}, {found.party}, {found.era}): {found.title}", told.demand]
        parts += [f"{word}: {text}" for word, text in (("Why", told.why), ("Fix", told.fix)) if text]
        parts += [f"{word}:\n{text}" for word, text in (("Wrong", told.wrong), ("Right", told.right)) if text]
        link = explanation.link(found.spec)
        parts.append(f"Spec: {found.spec}{f' ({link})' if link else ''}")
        text = "\n\n".join(parts)
        _tell([text])
        return text

    @command.command("mcp.edit")  # type: ignore[untyped-decorator]
    def edit(self, flow: flow.Flow, pointer: str, value: str) -> str:
        """Change a value of a request's params: a JSON Pointer below them (/arguments/city), and JSON or a text. Of a held
        request the mirrored headers follow when it is resumed (mcp_remirror)."""
        if not isinstance(flow, HTTPFlow):
            raise exceptions.CommandError("mcp.edit: this is no HTTP flow")
        try:
            said = editing.edit(flow, pointer, value)
        except ValueError as error:
            raise exceptions.CommandError(f"mcp.edit: {error}") from error
        return _edited(flow, said)

    @command.command("mcp.answer")  # type: ignore[untyped-decorator]
    def answer(self, flow: flow.Flow, *what: str) -> str:
        """Answer a held request in the server's place, and resume it: a file with a result or a JSON-RPC response, or error CODE.
        Of a held answer it takes the place."""
        if not isinstance(flow, HTTPFlow) or not flow.intercepted:
            raise exceptions.CommandError("mcp.answer: this flow is not held (mcp_intercept, intercept)")
        found = self.find(flow)
        try:
            said = editing.answer(flow, found[1] if found is not None else None, list(what))
        except (OSError, ValueError) as error:
            raise exceptions.CommandError(f"mcp.answer: {error}") from error
        self.by_hand(flow)
        flow.resume()
        return _edited(flow, said)

    @command.command("mcp.report")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: mitmproxy.types.Path) -> str:
        """Write a report of flows; the name's ending says the format: .json .jsonl .sarif .xml (JUnit) .html .txt."""
        chosen = [each for each in flows if isinstance(each, HTTPFlow)]
        target = Path(path).expanduser()
        try:
            audit = reporting.write(chosen, target, self.settings(), self.lost())
        except (OSError, ValueError) as error:
            raise exceptions.CommandError(f"mcp.report: {error}") from error
        counts = audit.summary
        found = f"{plural(counts['error'], 'error')}, {plural(counts['warning'], 'warning')}"
        said = f"{target}: {plural(counts['flows'], 'flow')}: {found}"
        _tell([said])
        return said


def _edited(flow: HTTPFlow, said: str) -> str:
    ctx.master.addons.trigger(hooks.UpdateHook([flow]))
    _tell([shown(said, 300)])
    return said


def _listed(lines: list[str]) -> Sequence[str]:
    _tell(lines)
    return lines


def bind_keys() -> None:
    """Keys of the console UI, where there is one. The user's own bindings (keys.yaml) stand above them."""
    keymap = getattr(ctx.master, "keymap", None)
    if keymap is None:
        return
    for key, does, contexts, text in KEYS:
        if not any(keymap.get(context, key) for context in contexts):
            keymap.add(key, does, list(contexts), text)


def _tell(lines: Sequence[str]) -> None:
    """Into the event log; the console shows the first line in its status bar."""
    for line in lines[:50]:
        logger.log(ALERT, line)
