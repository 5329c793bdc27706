"""A tally stays small, whatever the length of the trace."""

from mcp_wiretap.report.tally import CONVERSATIONS, Tally, host_of
from mcp_wiretap.trace.model import Conversation, Endpoint, Link


def test_conversations_are_counted_and_the_ones_worth_showing_are_kept() -> None:
    tally, endpoint = Tally(), Endpoint("http://h:80/mcp")
    for number in range(5_000):
        conversation = Conversation(f"f{number}", endpoint, "tools/call", "a", ["f", "g"], started=float(number))
        conversation.links = [Link("f", "g", "requestState", "exact")] * 3
        conversation.status = "complete" if number % 10 else "broken"
        tally.conversation(conversation, "one.flow")
    tally.close([])
    assert tally.statuses == {"complete": 4_500, "broken": 500}
    assert len(tally.conversations) == 2 * CONVERSATIONS
    assert sum(row.status == "broken" for row in tally.conversations) == CONVERSATIONS
    assert tally.conversations[0].links == [("requestState", "exact", 3)]


def test_the_port_that_a_scheme_implies_is_left_out() -> None:
    assert host_of("http://h.example:80/mcp") == "h.example/mcp"
    assert host_of("https://h.example:443/mcp") == "h.example/mcp"
    assert host_of("http://h.example:443/mcp") == "h.example:443/mcp"
    assert host_of("http://[::1]:80/mcp") == "[::1]/mcp"
