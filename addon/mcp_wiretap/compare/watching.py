"""A judge that looks on: it passes everything to the rules, and takes each exchange when it is over or judged anew after that."""

from dataclasses import dataclass

from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange, Message, StreamItem


@dataclass(slots=True)
class Watching:
    """Override `take`; give it to an Inspector as its judge."""

    judge: Judge

    def take(self, exchange: Exchange) -> None:
        """An exchange is over, or was judged anew after that."""

    def requested(self, exchange: Exchange) -> bool:
        return self.judge.requested(exchange)

    def responded(self, exchange: Exchange) -> bool:
        return self.judge.responded(exchange)

    def said(self, message: Message) -> bool:
        return self.judge.said(message)

    def event(self, item: StreamItem) -> bool:
        return self.judge.event(item)

    def ended(self, exchange: Exchange) -> bool:
        added = self.judge.ended(exchange)
        self.take(exchange)
        return added

    def again(self, exchange: Exchange) -> bool:
        added = self.judge.again(exchange)
        if exchange.over:
            self.take(exchange)
        return added
