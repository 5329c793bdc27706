"""No operation of the recordings failed without its cause: words, a finding, who ended it, or that it is foreseen."""

import pytest

from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.report import comment, failures
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.inspector import Inspector
from test_servers.record import RECORDINGS

FLOWS = sorted(RECORDINGS.glob("*.flow"))


def cause(exchange):
    told = exchange.error_message or exchange.findings or failures.of(exchange, "").foreseen
    return told or (exchange.outcome == "broken" and comment.outcome(exchange) != "broken")


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_no_failure_without_a_cause(path):
    inspector = Inspector(RuleBook.of(find_rules()))
    for event in Recording(path).events():
        inspector.feed(event)
    inspector.finish()
    failed = [e for e in inspector.exchanges.values() if failures.is_failed(e)]
    assert [comment.comment(e) for e in failed if not cause(e)] == []
    alike = [
        (f.rule, e.where, e.value)
        for exchange in inspector.exchanges.values()
        for f in exchange.findings
        for e in f.evidence
        if e.value == e.expected and f.rule != "HTS012"  # it shows that what was refused is right
    ]
    assert alike == []
