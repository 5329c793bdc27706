"""The content view "MCP": chosen by itself for MCP messages, it says in words what stands in one.

The page is made in `mcp_wiretap.view`; here the flow's own bytes are read again (the trace lets parsed bodies go) and
brought together with what the trace knows of the flow and of those that belong to it.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

from mitmproxy.contentviews import Contentview, Metadata
from mitmproxy.contentviews._api import SyntaxHighlight
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.loaded import recorded_address
from mcp_wiretap.proxy.options import Settings, installed_rules
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.rule import Rule, RuleFile
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view import order
from mcp_wiretap.view.subject import Subject, following, read_alone

CHOSEN, NOT_CHOSEN = 2, -1  # mitmproxy's own JSON view says 1
_SNIFFED = 2_000  # bytes looked at where nothing is known of a flow
_TYPES = ("application/json", "text/event-stream")

type Find = Callable[[Flow], tuple[Watch, Exchange] | None]


class McpContentview(Contentview):
    """`find` gives the trace that follows a flow, and its exchange there; None where none does."""

    name = "MCP"
    syntax_highlight: SyntaxHighlight = "yaml"

    def __init__(self, find: Find, settings: Callable[[], Settings], faults: Faults) -> None:
        self._find = find
        self._settings = settings
        self._faults = faults

    def render_priority(self, data: bytes, metadata: Metadata) -> float:
        flow, content_type = metadata.flow, metadata.content_type
        if flow is None or metadata.http_message is None:
            return NOT_CHOSEN
        if data and content_type not in _TYPES:
            return NOT_CHOSEN
        if "mcp.era" in flow.metadata:
            return CHOSEN
        return CHOSEN if data and b'"jsonrpc"' in data[:_SNIFFED] else NOT_CHOSEN

    def prettify(self, data: bytes, metadata: Metadata) -> str:
        flow = metadata.flow
        if not isinstance(flow, HTTPFlow) or metadata.http_message is None:
            raise ValueError("not an HTTP message")
        try:
            subject = self.subject(flow)
            return order.request(subject) if metadata.http_message is flow.request else order.response(subject)
        except Exception as error:
            self._faults.note("content view", error, flow.id)
            raise

    def rules(self) -> Mapping[str, Rule]:
        """All rules there are, by id."""
        return _by_id(self._settings().files)

    def subject(self, flow: HTTPFlow) -> Subject:
        """A flow read again, with what the trace knows of it."""
        settings = self._settings()
        found = self._find(flow)
        whole = _read(flow, settings, None if found is not None else settings.book())
        if whole is None:
            raise ValueError("the flow has no request")
        if found is None:
            return Subject(whole, whole, known=False, rules=self.rules())
        watch, record = found

        @cache
        def sibling(flow_id: str) -> Exchange | None:
            other = watch.flows.get(flow_id)
            return _read(other, settings, None) if other is not None else None

        later = partial(following, watch.inspector, record)
        return Subject(record, whole, sibling=sibling, rules=self.rules(), following=later)


def _read(flow: HTTPFlow, settings: Settings, judge: Judge | None) -> Exchange | None:
    """A flow read again, by itself."""
    address = recorded_address(flow) if not flow.live else None
    return read_alone(events_of(flow.get_state(), settings.limits.stream, address=address), settings.limits, judge)


@cache
def _by_id(files: tuple[RuleFile, ...]) -> Mapping[str, Rule]:
    return {rule.id: rule for rule in installed_rules(files)}
