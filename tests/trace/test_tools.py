"""What a client had seen of a tool when it called it."""

import gc
from typing import Any

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.lists import tools
from mcp_wiretap.trace.lists.tools import Tools
from mcp_wiretap.trace.model import Exchange, ToolView


class Views:
    """Runs a script, and keeps the view of each tools/call as it was when the call was made."""

    def __init__(self, script: str, inspector: Inspector | None = None) -> None:
        self.views: list[ToolView | None] = []
        self.inspector = inspector or Inspector(self)
        self.inspector.judge = self
        for event in read_script(script):
            self.inspector.feed(event)

    def requested(self, exchange: Exchange) -> bool:
        if exchange.method == "tools/call":
            self.views.append(exchange.tool)
        return False

    def said(self, message: Any) -> bool:
        return False

    event = ended = again = responded = said

    @property
    def last(self) -> ToolView:
        view = self.views[-1]
        assert view is not None
        return view

    @property
    def headers(self) -> list[str]:
        assert self.last.definition is not None
        return [mirror.header for mirror in self.last.definition.mirrors]


CALL = 'modern tools/call {"name": "a", "arguments": {}}\n'
NEXT = '{"tools": [{"name": "b", "inputSchema": {}}], "nextCursor": "2"}'


def listing(header: str, *more: str) -> str:
    lines = ["modern tools/list", *more, f'-> tool a {{"p": {{"type": "string", "x-mcp-header": "{header}"}}}}']
    return "\n  ".join(lines) + "\n"


def test_the_newest_definition_and_the_earlier_ones_newest_first() -> None:
    seen = Views(listing("A") + listing("B") + listing("C") + CALL)
    assert seen.headers == ["C"]
    assert [d.mirrors[0].header for d in seen.last.earlier] == ["B", "A"]
    assert seen.last.flow == "flow-3" and not seen.last.why_unknown


def test_a_definition_that_comes_back_is_the_newest_again() -> None:
    seen = Views(listing("A") + listing("B") + listing("A") + CALL)
    assert seen.headers == ["A"] and seen.last.flow == "flow-3"
    assert [d.mirrors[0].header for d in seen.last.earlier] == ["B"]


def test_the_same_definition_twice_is_one_version() -> None:
    assert Views(listing("A") + listing("A") + CALL).last.earlier == []


def test_a_list_that_ends_after_the_call_began_was_not_seen() -> None:
    seen = Views(
        listing("A") + "modern tools/list\n  label second\n  -> open\n" + CALL.rstrip() + "\n  -> open\n"
        'continue second\n  -> tool a {"p": {"type": "string", "x-mcp-header": "B"}}\n' + CALL
    )
    first, second = seen.views
    assert first is not None and first.definition is not None and first.definition.mirrors[0].header == "A"
    assert second is not None and second.definition is not None and second.definition.mirrors[0].header == "B"


def test_a_list_under_another_authorization_is_only_a_hint() -> None:
    seen = Views(listing("A", "client one") + CALL.rstrip() + "\n  client two\n")
    assert seen.last.definition is None and "another Authorization" in seen.last.why_unknown


def test_a_list_of_another_program_under_the_same_authorization_counts_less() -> None:
    other = '  meta io.modelcontextprotocol/clientInfo {"name": "other", "version": "1"}\n'
    seen = Views(listing("A") + CALL + other)
    assert seen.headers == ["A"] and seen.last.by_other
    seen = Views(listing("A", other.strip()) + listing("B") + CALL + other)
    assert seen.headers == ["A"] and not seen.last.by_other, "its own list comes first, even if it is older"


def test_why_a_definition_is_not_known() -> None:
    assert "no tools/list answer was seen" in Views(CALL).last.why_unknown
    assert "more pages" not in Views(CALL).last.why_unknown
    complete = Views("modern tools/list\n  -> tool b\n" + CALL).last
    assert complete.unlisted == "flow-1" and "does not name the tool" in complete.why_unknown
    incomplete = Views(f"modern tools/list\n  -> result {NEXT}\n" + CALL).last
    assert not incomplete.unlisted and "pages of tools/list that were seen" in incomplete.why_unknown
    twice = '{"tools": [{"name": "a", "inputSchema": {}}, {"name": "a", "inputSchema": {"type": "object"}}]}'
    assert "names the tool twice" in Views(f"modern tools/list\n  -> result {twice}\n" + CALL).last.why_unknown


def test_pages_are_chained_by_their_cursors() -> None:
    page = 'modern tools/list {"cursor": "2"}\n  -> tool c\n'
    complete = Views(f"modern tools/list\n  -> result {NEXT}\n{page}{CALL}").last
    assert complete.unlisted == "flow-2"
    assert not Views(page + CALL).last.unlisted, "its first page was not seen"
    other = page.replace('"2"', '"9"')
    assert not Views(f"modern tools/list\n  -> result {NEXT}\n{other}{CALL}").last.unlisted


def test_a_tool_of_an_earlier_page_is_not_delisted_by_a_later_one() -> None:
    first = '{"tools": [{"name": "a", "inputSchema": {}}], "nextCursor": "2"}'
    seen = Views(f'modern tools/list\n  -> result {first}\nmodern tools/list {{"cursor": "2"}}\n  -> tool c\n{CALL}')
    assert seen.last.definition is not None and not seen.last.delisted
    seen = Views(listing("A") + "modern tools/list\n  -> tool c\n" + CALL)
    assert seen.headers == ["A"] and seen.last.delisted == "flow-2"


def test_an_earlier_list_may_still_be_fresh() -> None:
    long = '{"ttlMs": 60000, "tools": [{"name": "a", "inputSchema": {}}]}'
    seen = Views(f"modern tools/list\n  -> result {long}\n" + listing("B") + CALL)
    assert seen.last.fresh == {"flow-1"}
    seen = Views(f"modern tools/list\n  -> result {long}\n" + listing("B") + CALL.rstrip() + "\n  after 90\n")
    assert seen.last.fresh == frozenset()


def test_legacy_lists_and_event_streams_are_read_alike() -> None:
    seen = Views(
        'legacy tools/list\n  -> sse\n  -> tool a {"p": {"type": "string", "x-mcp-header": "A"}}\n'
        'legacy tools/call {"name": "a", "arguments": {}}\n'
    )
    assert seen.headers == ["A"]


def test_malformed_lists_do_no_harm() -> None:
    for tools_json in ("null", "{}", '[1, null, {"name": 5}, {}, {"name": "b", "inputSchema": null}]'):
        seen = Views(f'modern tools/list\n  -> result {{"tools": {tools_json}, "nextCursor": 7, "ttlMs": "x"}}\n' + CALL)
        assert seen.last.definition is None


def test_what_is_kept_of_a_definition_does_not_keep_its_exchange() -> None:
    seen = Views(listing("A"))
    seen.inspector.exchanges.pop("flow-1").url = "gone"
    gc.collect()
    assert not [o for o in gc.get_objects() if type(o) is Exchange and o.url == "gone"]
    assert seen.inspector.endpoints["http://server.example:80/mcp"].tools["a"].message is None


def test_an_endpoint_shows_the_newest_definition_of_each_tool() -> None:
    shown = Views(listing("A") + listing("B")).inspector.endpoints["http://server.example:80/mcp"].tools
    assert list(shown) == ["a"] and shown["a"].mirrors[0].header == "B"


def test_a_server_that_changes_its_tools_all_the_time_keeps_its_last_versions() -> None:
    seen = Views("".join(listing(f"H{n}") for n in range(30)) + CALL)
    assert seen.headers == ["H29"] and len(seen.last.earlier) == tools.VERSIONS - 1
    assert seen.inspector.dropped["tool definitions"] == 30 - tools.VERSIONS


def test_sets_of_tools_are_bounded_in_number_and_in_bytes(monkeypatch: Any) -> None:
    monkeypatch.setattr(tools, "SETS", 3)
    script = "".join(listing("A", f"client c{n}") for n in range(10))
    seen = Views(script)
    assert seen.inspector.dropped["tool lists"] == 7
    monkeypatch.setattr(tools, "BYTES", 1_000)
    seen = Views(script)
    assert seen.inspector.tracker(Tools)._size <= 1_000
    assert len(seen.inspector.endpoints["http://server.example:80/mcp"].tools) <= 1


def test_more_tools_than_are_kept_are_counted_and_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(tools, "NAMES", 2)
    seen = Views("modern tools/list\n  -> tool x\n  -> tool y\n  -> tool a\n" + CALL)
    assert seen.last.definition is None and "more than 2 tools" in seen.last.why_unknown
    assert seen.inspector.dropped["tools"] == 1
