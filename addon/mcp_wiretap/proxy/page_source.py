"""What the addon gives to the inspector's pages (`mcp_wiretap.web.Source`)."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_wiretap.proxy.contentview import McpContentview
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject


class Pages:
    """`watches` gives the traces of this moment: the live one first."""

    def __init__(self, watches: Callable[[], list[Watch]], contentview: McpContentview, faults: Faults) -> None:
        self._watches = watches
        self._contentview = contentview
        self._faults = faults

    def inspectors(self) -> list[Inspector]:
        return [watch.inspector for watch in self._watches()]

    def subject(self, flow: Any) -> Subject:
        return self._contentview.subject(flow)

    def rules(self) -> Mapping[str, Rule]:
        return self._contentview.rules()

    def silence(self, silence: Silence) -> None:
        for watch in self._watches():
            if silence not in watch.book.silences:
                watch.book.silences.append(silence)

    def redraw(self, exchanges: list[Exchange]) -> None:
        wanted = {exchange.flow for exchange in exchanges}
        for watch in self._watches():
            watch.show(e for flow in wanted if (e := watch.inspector.exchanges.get(flow)) is not None)

    def fault(self, where: str, error: Exception) -> None:
        self._faults.note(where, error)
