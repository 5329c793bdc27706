"""Pages chained by cursor, listings compared, what is remembered of them."""

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.lists.pagination import LIST, Lists, ListView
from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.model import Exchange


class Kept(Held):
    """Releases nothing, so that the facts can be looked at."""

    def settle(self, exchange: Exchange) -> None:
        return None


def trace(script: str) -> list[ListView]:
    """What was found of each exchange of a script."""
    inspector = Inspector()
    inspector.held = Kept(1, 1, lambda _: None)
    for event in read_script(script):
        inspector.feed(event)
    return [exchange.facts[LIST] for exchange in inspector.exchanges.values()]


def page(cursor: str | None, following: str | None, *names: str, more: str = "") -> str:
    params = f' {{"cursor": "{cursor}"}}' if cursor is not None else ""
    tools = ", ".join(f'{{"name": "{name}", "inputSchema": {{"type": "object"}}}}' for name in names)
    tail = f', "nextCursor": "{following}"' if following is not None else ""
    return f'modern tools/list{params}\n{more}  -> result {{"tools": [{tools}]{tail}}}\n'


def test_pages_are_one_listing_in_order() -> None:
    views = trace(page(None, "2", "a") + page("2", "3", "b") + page("3", None, "c"))
    last = views[-1].page
    assert last is not None
    assert last.names == ("a", "b", "c")
    assert last.first_flow == "flow-1"
    assert last.visited == {"2", "3"}


def test_a_page_continues_the_newest_page_that_gave_its_cursor() -> None:
    views = trace(page(None, "2", "a") + page("2", None, "b") + page(None, "2", "x") + page("2", None, "y"))
    assert views[3].page is not None
    assert views[3].page.names == ("x", "y")
    assert not views[3].shared


def test_pages_of_another_client_are_told_apart_or_told_to_be_shared() -> None:
    other = "  client other\n  -header Authorization\n"
    views = trace(page(None, "2", "a") + page(None, "2", "b", more=other) + page("2", None, "c"))
    assert views[2].issuer is not None
    assert views[2].issuer.flow == "flow-1"
    assert views[2].shared


def test_another_authorization_never_continues_a_listing() -> None:
    views = trace(page(None, "2", "a") + page("2", None, "b", more="  client other\n"))
    assert views[1].issuer is None
    assert not views[1].unknown_cursor


def test_a_long_listing_is_no_longer_compared() -> None:
    names = [f"t{i}" for i in range(3_000)]
    views = trace(page(None, "2", *names) + page("2", None, *reversed(names)))
    assert views[1].page is not None
    assert views[1].page.names is None


def test_what_is_remembered_is_bounded() -> None:
    inspector = Inspector(limits=Limits(state=20))
    for event in read_script("".join(page(None, f"c{i}", "a") for i in range(80))):
        inspector.feed(event)
    tracker = inspector.tracker(Lists)
    assert len(tracker._pages) == 20
    assert tracker._held == 0
