"""The place of the rules in a trace: what the inspector asks of them, and a judge that has none."""

from typing import Protocol

from mcp_wiretap.trace.model import Exchange, Message, StreamItem


class Judge(Protocol):
    """What the inspector asks of the rules; `mcp_wiretap.rule.RuleBook` is it. Each hook returns whether a finding was added."""

    def requested(self, exchange: Exchange) -> bool: ...
    def responded(self, exchange: Exchange) -> bool: ...
    def said(self, message: Message) -> bool: ...
    def event(self, item: StreamItem) -> bool: ...
    def ended(self, exchange: Exchange) -> bool: ...
    def again(self, exchange: Exchange) -> bool: ...


class NoRules:
    """A judge without rules: the trace alone."""

    def requested(self, exchange: Exchange) -> bool:
        return False

    def responded(self, exchange: Exchange) -> bool:
        return False

    def said(self, message: Message) -> bool:
        return False

    def event(self, item: StreamItem) -> bool:
        return False

    def ended(self, exchange: Exchange) -> bool:
        return False

    def again(self, exchange: Exchange) -> bool:
        return False
