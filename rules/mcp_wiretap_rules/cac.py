"""CAC: caching hints and pagination (2026-07-28 server/utilities/caching, server/utilities/pagination)."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.lists.not_read_on import NOT_READ_ON
from mcp_wiretap.trace.lists.pagination import CACHEABLE, LIST, LISTS, STALE_CALL, ListView
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line

CACHING = "2026-07-28 server/utilities/caching"
PAGINATION = "2026-07-28 server/utilities/pagination"
_REFUSED = frozenset(
    {rev.INVALID_PARAMS, rev.METHOD_NOT_FOUND, rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION}
)


def _view(message: Message) -> ListView | None:
    """What is known of the request, or of the request that an answer answers."""
    exchange = message.request.exchange if message.request is not None else message.exchange
    return exchange.facts.get(LIST)


def _is_complete(message: Message) -> bool:
    """Without resultType a result counts as complete (RES001)."""
    return message.rpc.kind == "result" and message.result.get("resultType", "complete") == "complete"


@rule(
    "CAC001",
    "cache-hints-missing",
    "Cacheable result lacks ttlMs or cacheScope",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{CACHING}#cacheable-results",
    sep="2549",
    methods=CACHEABLE,
    sorts=("result",),
)
def cache_hints_missing(message: Message) -> Iterator[Finding]:
    """The complete result of a list, of resources/read and of server/discover says how long it is fresh and who may cache it.

    Why: clients that validate results reject one without them, and drop all tools that are in it.

    Fix: add both; `"ttlMs": 0, "cacheScope": "private"` promises nothing.

    Wrong::

        modern tools/list
          -> result {"tools": [], "cacheScope": "$none"}

    Right::

        modern tools/list
          -> result {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    """
    if not _is_complete(message):
        return
    missing = [name for name in ("ttlMs", "cacheScope") if name not in message.result]
    if missing:
        yield Finding(
            f"the result has no {' and no '.join(missing)}; clients that validate results reject it",
            [evidence(message.place("result", name), None, "present") for name in missing],
        )


@rule(
    "CAC002",
    "ttl-invalid",
    "ttlMs not an integer >= 0",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{CACHING}#time-to-live-ttl-field",
    sep="2549",
    methods=CACHEABLE,
    sorts=("result",),
)
def ttl_invalid(message: Message) -> Iterator[Finding]:
    """ttlMs is an integer of milliseconds, 0 or more.

    Why: clients ignore anything else, or reject the result.

    Fix: milliseconds, not seconds, and no string; 0 where the result must not be reused.

    Wrong::

        modern tools/list
          -> result {"tools": [], "ttlMs": -1}

    Right::

        modern tools/list
          -> result {"tools": [], "ttlMs": 0}
    """
    if not _is_complete(message) or "ttlMs" not in message.result:
        return
    ttl = message.result["ttlMs"]
    if isinstance(ttl, int) and not isinstance(ttl, bool):
        if ttl >= 0:
            return
        words = "negative"
    elif isinstance(ttl, float) and ttl.is_integer() and ttl >= 0:
        yield Finding(
            f"ttlMs is written {dumps(ttl)}, with a fraction", [evidence(message.place("result", "ttlMs"), ttl)], "info"
        )
        return
    elif isinstance(ttl, Decimal) and ttl >= 0:
        return
    else:
        words = kind_of(ttl) if not isinstance(ttl, float) else "no integer"
    shown = "null" if ttl is None else one_line(dumps(ttl, most=60), 40)
    yield Finding(f"ttlMs is {shown}: {words}", [evidence(message.place("result", "ttlMs"), shown, "an integer of 0 or more")])


@rule(
    "CAC003",
    "cache-scope-invalid",
    "cacheScope not public/private",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{CACHING}#cache-scope-field",
    sep="2549",
    methods=CACHEABLE,
    sorts=("result",),
)
def cache_scope_invalid(message: Message) -> Iterator[Finding]:
    """cacheScope is exactly `public` or `private`.

    Why: a gateway that does not know the word may share what it must not.

    Fix: `private` unless the result is the same for everybody.

    Wrong::

        modern tools/list
          -> result {"tools": [], "cacheScope": "Public"}

    Right::

        modern tools/list
          -> result {"tools": [], "cacheScope": "public"}
    """
    if not _is_complete(message) or "cacheScope" not in message.result:
        return
    scope = message.result["cacheScope"]
    if scope not in ("public", "private"):
        shown = "null" if scope is None else one_line(dumps(scope, most=60), 40)
        yield Finding(
            f"cacheScope is {shown}, not public or private",
            [evidence(message.place("result", "cacheScope"), shown, "public or private")],
        )


@rule(
    "CAC004",
    "hints-on-interim-result",
    "Cache hints on input_required",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{CACHING}#cacheable-results",
    sep="2549",
    sorts=("input_required",),
)
def hints_on_interim_result(message: Message) -> Iterator[Finding]:
    """An input_required answer carries no caching hints: interim results are not cacheable.

    Why: a cache that believes them serves the question, with its state, to somebody else.

    Fix: add the hints to the complete result only.

    Wrong::

        modern resources/read {"uri": "file:///a"}
          -> result {"resultType": "input_required", "requestState": "sealed-state-1", "ttlMs": 60000}

    Right::

        modern resources/read {"uri": "file:///a"}
          -> result {"resultType": "input_required", "requestState": "sealed-state-1"}
    """
    result = message.result
    method = message.request.method if message.request is not None else None
    if result.get("resultType") != "input_required" or (method or "").startswith("tasks/"):
        return  # ttlMs of a task is how long it is kept
    hints = [name for name in ("ttlMs", "cacheScope") if name in result]
    if hints:
        yield Finding(
            f"the input_required answer carries {' and '.join(hints)}, but is not cacheable",
            [evidence(message.place("result", name), result[name], "(absent)") for name in hints],
        )


@rule(
    "CAC005",
    "page-scope-inconsistent",
    "cacheScope changes between pages",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{CACHING}#interaction-with-pagination",
    sep="2549",
    methods=LISTS,
)
def page_scope_inconsistent(message: Message) -> Iterator[Finding]:
    """All pages of one listing have the same cacheScope; their ttlMs may differ.

    Why: a shared cache would keep half of a private list.

    Fix: decide the scope once for the listing, and encode it in the cursor if need be.

    Wrong::

        modern tools/list
          -> result {"tools": [], "nextCursor": "p2", "cacheScope": "private"}
        modern tools/list {"cursor": "p2"}
          -> result {"tools": [], "cacheScope": "public"}

    Right::

        modern tools/list
          -> result {"tools": [], "nextCursor": "p2", "cacheScope": "private"}
        modern tools/list {"cursor": "p2"}
          -> result {"tools": [], "cacheScope": "private", "ttlMs": 5}
    """
    view = _view(message)
    if view is None or view.scope_was is None or view.issuer is None or not _is_complete(message):
        return
    scope, was = message.result.get("cacheScope"), view.scope_was
    if was not in ("public", "private") or scope not in ("public", "private"):
        return  # CAC003
    yield Finding(
        f"this page is {scope}, the page before was {was}",
        [evidence(message.place("result", "cacheScope"), scope, was)],
        "warning" if view.shared else None,
        related=(view.issuer.flow,),
    )


@rule(
    "CAC006",
    "public-scope-user-data",
    "public scope but content differs by authorization",
    on="answer",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{CACHING}#security-considerations",
    sep="2549",
    methods=CACHEABLE,
)
def public_scope_user_data(message: Message) -> Iterator[Finding]:
    """What is public is the same for everybody.

    Why: any gateway may serve the cached result of one user to another.

    Fix: `cacheScope: "private"` for what depends on the user.

    Wrong::

        modern tools/list
          client ann
          -> result {"tools": [{"name": "open", "inputSchema": {"type": "object"}}], "cacheScope": "public"}
        modern tools/list
          client bob
          -> result {"tools": [{"name": "close", "inputSchema": {"type": "object"}}], "cacheScope": "public"}

    Right::

        modern tools/list
          client ann
          -> result {"tools": [{"name": "open", "inputSchema": {"type": "object"}}], "cacheScope": "private"}
        modern tools/list
          client bob
          -> result {"tools": [{"name": "close", "inputSchema": {"type": "object"}}], "cacheScope": "private"}
    """
    view = _view(message)
    if view is not None and view.other_auth:
        yield Finding(
            "the result is public, but another Authorization got something else a moment before",
            [evidence(message.place("result", "cacheScope"), "public", "private")],
            related=(view.other_auth,),
        )


@rule(
    "CAC007",
    "cursor-altered",
    "Client sends a cursor the server never issued",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=f"{PAGINATION}#implementation-guidelines",
    methods=LISTS,
)
def cursor_altered(exchange: Exchange) -> Iterator[Finding]:
    """A cursor is opaque: the client sends back what it got as nextCursor, nothing of its own making.

    Why: servers change the form of their cursors; a client that counts pages breaks then.

    Fix: keep the string as it came, and treat an error for it as the end: list from the beginning again.

    Wrong::

        modern tools/list
          -> result {"tools": [], "nextCursor": "page-2"}
        modern tools/list {"cursor": "page-3"}
          -> error -32602

    Right::

        modern tools/list
          -> result {"tools": [], "nextCursor": "page-2"}
        modern tools/list {"cursor": "page-2"}
          -> result {"tools": []}
    """
    view: ListView | None = exchange.facts.get(LIST)
    request = exchange.request
    if request is not None and view is not None and view.unknown_cursor:
        cursor = view.cursor if isinstance(view.cursor, str) else dumps(view.cursor, most=60)
        yield Finding(
            f"no answer of the server gave the cursor {one_line(cursor, 40) or 'of no characters'}",
            [evidence(request.place("params", "cursor"), view.cursor, "a nextCursor of this listing")],
        )


@rule(
    "CAC008",
    "empty-cursor",
    "Empty string is a real cursor",
    on="finish",
    level="must",
    party="either",
    era="both",
    severity="info",
    spec=f"{PAGINATION}#implementation-guidelines",
)
def empty_cursor(exchange: Exchange) -> Iterator[Finding]:
    """A nextCursor that is the empty string means that there are more pages, like any other.

    Why: a client that tests the string for truth stops there, and misses the rest of the list.

    Fix: test whether nextCursor is there, not what it says.

    Wrong::

        modern resources/list
          -> result {"resources": [], "nextCursor": "p2"}
        modern resources/list {"cursor": "p2"}
          -> result {"resources": [], "nextCursor": ""}

    Right::

        modern resources/list
          -> result {"resources": [], "nextCursor": ""}
        modern resources/list {"cursor": ""}
          -> result {"resources": []}
    """
    view: ListView | None = exchange.facts.get(LIST)
    answer = exchange.answer
    if view is not None and view.unfollowed and answer is not None:
        yield Finding(
            "nextCursor is the empty string: there are more pages, but the client, which follows others, stops here",
            [evidence(answer.place("result", "nextCursor"), '""')],
        )


@rule(
    "CAC009",
    "next-cursor-type",
    "nextCursor is not a string",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{PAGINATION}#response-format",
    methods=LISTS,
)
def next_cursor_type(message: Message) -> Iterator[Finding]:
    """nextCursor is a string, or absent on the last page.

    Why: clients that validate results reject null and numbers, and with them the whole list.

    Fix: leave the member out on the last page; write a number as a string.

    Wrong::

        modern tools/list
          -> result {"tools": [], "nextCursor": 2}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    result = message.result
    if "nextCursor" not in result or isinstance(result["nextCursor"], str):
        return
    value = result["nextCursor"]
    shown = "null" if value is None else one_line(dumps(value, most=60), 40)
    yield Finding(
        f"nextCursor is {shown}, not a string" + (": on the last page it is left out" if value is None else ""),
        [evidence(message.place("result", "nextCursor"), shown, "a string, or absent")],
        "warning" if value is None else None,
    )


@rule(
    "CAC010",
    "cursor-loop",
    "Pagination repeats",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{PAGINATION}#implementation-guidelines",
    methods=LISTS,
)
def cursor_loop(message: Message) -> Iterator[Finding]:
    """A listing comes to its end: no page gives a cursor that was used for it already.

    Why: a client that follows cursors to the end never gets there.

    Fix: move the cursor on with each page.

    Wrong::

        modern tools/list
          -> result {"tools": [], "nextCursor": "p2"}
        modern tools/list {"cursor": "p2"}
          -> result {"tools": [], "nextCursor": "p2"}

    Right::

        modern tools/list
          -> result {"tools": [], "nextCursor": "p2"}
        modern tools/list {"cursor": "p2"}
          -> result {"tools": [], "nextCursor": "p3"}
        modern tools/list {"cursor": "p3"}
          -> result {"tools": []}
    """
    view = _view(message)
    if view is None or not view.loop or view.page is None:
        return
    what = "the cursor just used" if view.loop == "same" else "a cursor used before in this listing"
    yield Finding(
        f"nextCursor is {what}: the listing goes in circles",
        [evidence(message.place("result", "nextCursor"), view.page.next, "another cursor, or absent")],
        "info" if view.shared and view.loop == "again" else None,
    )


@rule(
    "CAC011",
    "invalid-cursor-error",
    "Invalid cursor should be -32602",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{PAGINATION}#error-handling",
    methods=LISTS,
)
def invalid_cursor_error(message: Message) -> Iterator[Finding]:
    """A cursor that the server does not know is answered by -32602 (invalid params).

    Why: a client that sees -32603 takes the server for broken, instead of listing from the beginning again.

    Fix: -32602.

    Wrong::

        modern tools/list
          -> result {"tools": [], "nextCursor": "page-2"}
        modern tools/list {"cursor": "page-3"}
          -> error -32603

    Right::

        modern tools/list
          -> result {"tools": [], "nextCursor": "page-2"}
        modern tools/list {"cursor": "page-3"}
          -> error -32602
    """
    view, code = _view(message), message.error_code
    if view is None or not view.unknown_cursor or code is None or code in _REFUSED or message.exchange.status in (401, 403):
        return
    yield Finding(
        f"the cursor, which the server never gave, was answered with {code}, not -32602",
        [evidence(message.place("error", "code"), str(code), "-32602")],
    )


@rule(
    "CAC012",
    "polling-inside-ttl",
    "Client refetches while fresh",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=f"{CACHING}#time-to-live-ttl-field",
    sep="2549",
    methods=CACHEABLE,
)
def polling_inside_ttl(message: Message) -> Iterator[Finding]:
    """A result that is still fresh need not be fetched again; ttlMs is no polling interval.

    Why: the requests cost both sides, and bring nothing that the client does not have.

    Fix: cache by method and parameters for ttlMs; subscribe to changes instead of polling.

    Wrong::

        modern tools/list
          -> result {"tools": [], "ttlMs": 600000}
        modern tools/list
          after 10
          -> result {"tools": [], "ttlMs": 600000}
        modern tools/list
          after 10
          -> result {"tools": [], "ttlMs": 600000}

    Right::

        modern tools/list
          -> result {"tools": [], "ttlMs": 600000}
        modern tools/list
          after 700
          -> result {"tools": [], "ttlMs": 600000}
    """
    view = _view(message)
    if view is None or view.polls is None:
        return
    count, every, ttl = view.polls
    yield Finding(
        f"fetched again every {every:.1f} s, {count} times in a row, though the result is fresh for {ttl:.0f} s",
        [evidence(message.place("method"), message.method, f"no request for {ttl:.0f} s")],
    )


@rule(
    "CAC013",
    "stale-cache-after-notification",
    "Client ignores an invalidation",
    on="exchange",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=f"{CACHING}#interaction-with-notifications",
    sep="2549",
    methods=("tools/call",),
)
def stale_cache_after_notification(exchange: Exchange) -> Iterator[Finding]:
    """A list_changed notification makes the cached list stale at once, whatever its ttlMs.

    Why: the client called a tool that is gone, and would have known had it listed the tools again.

    Fix: list again before the next use once the notification has come.

    Wrong::

        modern tools/list
          -> tool open
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          label stream
          -> sse
          -> ack {"toolsListChanged": true}
          -> publish notifications/tools/list_changed
          -> open
        modern tools/call {"name": "open"}
          -> result {"content": [], "isError": true}
        modern tools/list
          -> tool close

    Right::

        modern tools/list
          -> tool open
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          label stream
          -> sse
          -> ack {"toolsListChanged": true}
          -> publish notifications/tools/list_changed
          -> open
        modern tools/list
          -> tool close
        modern tools/call {"name": "close"}
          -> result {"content": []}
    """
    stale: tuple[str, str] | None = exchange.facts.get(STALE_CALL)
    request = exchange.request
    if stale is None or request is None:
        return
    value: Any = exchange.name
    yield Finding(
        f"called {one_line(exchange.name or '', 40)} from a list that the client had been told is stale; the new list lacks it",
        [evidence(request.place("params", "name"), value)],
        related=stale,
    )


@rule(
    "CAC014",
    "list-not-read-on",
    "Only the first page of a list is read",
    on="exchange",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec=f"{PAGINATION}#response-format",
    needs=(NOT_READ_ON,),
)
def list_not_read_on(exchange: Exchange) -> Iterator[Finding]:
    """A list goes on where its page has a `nextCursor`: what the client wants may be on a later one.

    Why: a client that reads the first page only never offers the other tools, and nobody is told.

    Fix: ask again with the cursor until no page has one.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "p2"}
        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "p2"}
        modern tools/call {"name": "a"}
          -> result {"content": []}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "p2"}
        modern tools/list {"cursor": "p2"}
          -> result {"tools": [{"name": "b", "inputSchema": {"type": "object"}}]}
        modern tools/call {"name": "a"}
          -> result {"content": []}
    """
    left = exchange.facts.get(NOT_READ_ON)
    if left is None:
        return
    yield Finding(
        f"goes on with {exchange.method}, though {left.method} ended with a nextCursor {len(left.flows)} times and it was never "
        f"followed: {left.size} {'entry was' if left.size == 1 else 'entries were'} read, the rest was not",
        [Evidence("request.body:/params/cursor", "(absent)", "the nextCursor of the page before")],
        related=tuple(left.flows),
        once=left.method,
    )
