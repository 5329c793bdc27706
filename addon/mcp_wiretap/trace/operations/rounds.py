"""Multi round-trip requests: which retry continues which input_required answer, with the evidence.

A server that needs input answers `input_required` with `inputRequests`, `requestState` or both; the client asks again, as an
independent request. Nothing names the operation, so the rounds are linked by what they must have in common (catalogue MRT001):
the core (params without _meta, inputResponses, requestState) and the state, or the keys of what was asked. Contiguity proves
nothing, rounds of many operations interleave, a constant state belongs to nobody.

The facts of a round are `exchange.mrtr`. Spec: 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Item, LinkClass, Message, Round
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.secret import mask
from mcp_wiretap.wire.values import canonical, digest, digest_of_text

METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
SHORT = 8  # characters; a shorter state is likely a constant
MOST = 5_000  # items remembered, about 1 kB each besides what was asked
MOST_ASKED = 64 << 10  # bytes of one inputRequests that is kept, to judge the answers by
MOST_ASKED_IN_ALL = 16 << 20
MOST_STATE = 4_096  # characters of a state that is kept, to show where another one begins to differ
MOST_OF_A_STATE = 8  # items that were given the same state: from the second core on it belongs to nobody
MOST_OPEN = 200  # open items of one endpoint, method and name that a retry is compared with
STARTING_OVER = "starts over"  # why an exchange is held: its client may still continue an item
MOST_HELD = 200  # exchanges kept whole until their item is continued, for the note at the end of the trace

# The server refused the request before it looked at state and responses: the client is to repair it and ask again.
_UNPROCESSED = frozenset(
    {rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION, rev.PARSE_ERROR, rev.INVALID_REQUEST}
)


type _Client = tuple[str, str, tuple[str, str] | None]  # endpoint, Authorization, clientInfo


class Rounds(Tracker):
    name = "mrtr"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._items: OrderedDict[int, Item] = OrderedDict()  # by id(), oldest first
        self._open: dict[tuple[str, str, str | None], list[Item]] = {}  # endpoint, method, name
        self._states: dict[tuple[str, bytes], list[Item]] = {}
        self._asked = 0  # bytes
        self._held = 0
        self._retried: Recent[_Client, bool] = Recent(MOST_OPEN)  # clients that have continued an item
        self._starting_over: Recent[_Client, list[Exchange]] = Recent(
            MOST_OPEN
        )  # and what others started over, while that may change
        self._now = 0.0

    # What happens

    def sent(self, exchange: Exchange, side: Exchange) -> None:
        """The server is judged by the round that it was given."""
        request, received = side.request, exchange.request
        if request is None or not side.claim.modern or request.method not in METHODS:
            return
        if received is not None and received.method == request.method and _same_round(received.params, request.params):
            side.mrtr = exchange.mrtr
            return
        self._retry(request, request.params, request.method or "", link=False)
        if side.mrtr is not None and side.mrtr.continues is not None and side.mrtr.continues.altered:
            side.mrtr = None  # what the server gave for it is not kept

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The client goes on from the answer that it got."""
        round_, answer, request = exchange.mrtr, side.answer, exchange.request
        if round_ is not None and round_.issues is not None:
            item = self._items.get(id(round_.issues))
            if item is not None:
                self._forget(item)
            round_.issues = None
        asks = answer is not None and answer.rpc.kind == "result" and answer.result.get("resultType") == "input_required"
        if asks and answer is not None and request is not None and exchange.claim.modern and request.rpc.method in METHODS:
            self._asks(replace(answer, request=request), request)
            if exchange.mrtr is not None and exchange.mrtr.issues is not None:
                exchange.mrtr.issues.altered = True

    def said(self, message: Message) -> Iterable[Exchange] | None:
        self._now = message.at
        if message.party == "client":
            if message.rpc.kind == "request" and message.exchange.claim.modern:
                self._request(message)
        elif message.request is not None and message.request.answer is message:
            self._answer(message)
        return None

    def finished(self) -> Iterable[Exchange]:
        """The items that are still open (MRT021)."""
        waiting = []
        for item in self._items.values():
            round_ = item.exchange.mrtr
            if item.open and not item.abandoned and round_ is not None and round_.issues is item:
                round_.waited = max(self._now - item.at, 0.0)
                waiting.append(item.exchange)
        return waiting

    def _request(self, message: Message) -> None:
        params, method = message.params, message.rpc.method or ""
        carries = "requestState" in params or "inputResponses" in params
        if method in METHODS:
            if carries:
                self._retry(message, params, method)
            elif self._open:
                candidates = self._open.get((message.exchange.endpoint.url, method, message.exchange.name))
                if candidates:
                    self._afresh(message, candidates)
        elif carries and isinstance(params.get("requestState"), str) and not method.startswith("tasks/"):
            exchange = message.exchange
            owners = self._states.get((exchange.endpoint.url, digest_of_text(params["requestState"])), [])
            if owners:
                exchange.mrtr = Round(1, state="foreign", given=mask(params["requestState"]))
                self._own(exchange.mrtr, owners, exchange)

    def _answer(self, message: Message) -> None:
        request = message.request
        assert request is not None
        exchange = request.exchange
        round_ = exchange.mrtr
        kind = message.result.get("resultType") if message.rpc.kind == "result" else None
        if round_ is not None and round_.continues is not None:
            self._close(round_.continues, exchange, message)
        if kind == "input_required" and exchange.claim.modern and request.rpc.method in METHODS:
            self._asks(message, request)

    # An input_required answer

    def _asks(self, message: Message, request: Message) -> None:
        exchange, result = request.exchange, message.result
        round_ = exchange.mrtr
        if round_ is None:
            round_ = exchange.mrtr = Round(1)
        state, requests = result.get("requestState"), result.get("inputRequests")
        parent, own_id = round_.continues, id_key(request.rpc.id)
        item = Item(
            exchange,
            message.at,
            exchange.auth,
            exchange.client_info,
            request.rpc.method or "",
            exchange.name,
            core_of(request.params),
            state[:MOST_STATE] if isinstance(state, str) else None,
            digest_of_text(state) if isinstance(state, str) else b"",
            tuple(requests) if isinstance(requests, dict) else (),
            None,
            b"",
            0,
            round_.number,
            own_id,
            own_id,
            exchange.flow,
            frozenset(),
        )
        if parent is not None:
            item.first_id, item.first_flow = parent.first_id, parent.first_flow
            seen = parent.earlier_keys
            item.earlier_keys = seen | set(parent.keys) if len(seen) < 500 else seen
        if isinstance(requests, dict):
            asked = canonical(requests)
            item.asked = digest_of_text(asked)
            if len(asked) <= MOST_ASKED:
                item.requests, item.size = requests, len(asked)
                self._asked += len(asked)
        if parent is not None and (parent.state_key, parent.asked) == (item.state_key, item.asked):
            item.repeats = parent.repeats + 1
        if round_.restarts is not None:
            item.starts = round_.restarts.starts + 1
        round_.issues = item
        self._keep(item)

    def _keep(self, item: Item) -> None:
        self._items[id(item)] = item
        url = item.exchange.endpoint.url
        places = self._open.setdefault((url, item.method, item.name), [])
        places.append(item)
        if len(places) > MOST_OPEN:
            places.pop(0)
        if item.state_key:
            owners = self._states.setdefault((url, item.state_key), [])
            owners.append(item)
            if len(owners) > MOST_OF_A_STATE:
                owners.pop(1)  # the first one stays: it tells a state that is given to everybody
        if self._held < MOST_HELD and not item.exchange.released:
            item.held = True
            self._held += 1
            self.memory.held.keep(item.exchange, self.name)
        self.resized()
        while self._asked > MOST_ASKED_IN_ALL:
            self._let_go(next(i for i in self._items.values() if i.size))

    def resized(self) -> None:
        while len(self._items) > min(MOST, self.limits.state):
            self._forget(next(iter(self._items.values())))
            self.memory.count_dropped("input_required answers")

    def _forget(self, item: Item) -> None:
        self._let_go(item)
        self._unhold(item)
        del self._items[id(item)]
        url = item.exchange.endpoint.url
        _remove(self._open, (url, item.method, item.name), item)
        if item.state_key:
            _remove(self._states, (url, item.state_key), item)

    def _let_go(self, item: Item) -> None:
        """What was asked is needed no more."""
        self._asked -= item.size
        item.requests, item.size = None, 0

    def _unhold(self, item: Item) -> None:
        if item.held:
            item.held = False
            self._held -= 1
            self.memory.held.free(item.exchange, self.name)

    def _close(self, item: Item, exchange: Exchange, message: Message) -> None:
        """A continuation was answered."""
        if not item.open or message.error_code in _UNPROCESSED:
            return
        kind = message.result.get("resultType") if message.rpc.kind == "result" else None
        item.closed_by = exchange.flow
        if message.rpc.kind == "error":
            item.closed_how = "error"
        else:
            item.closed_how = str(kind) if kind in ("input_required", "task") else "complete"
        _remove(self._open, (item.exchange.endpoint.url, item.method, item.name), item)
        self._let_go(item)
        self._unhold(item)

    # A request that carries state or responses

    def _retry(self, message: Message, params: dict[str, Any], method: str, *, link: bool = True) -> None:
        """`link`: the retry belongs to the operation; else it is only looked at."""
        exchange = message.exchange
        state, responses = params.get("requestState"), params.get("inputResponses")
        state = state if isinstance(state, str) else None
        answered = tuple(responses) if isinstance(responses, dict) else ()
        if state is None and not answered:
            return  # inputResponses {} and a null state say nothing
        self._continues(exchange)
        state_key = digest_of_text(state) if state is not None else b""
        owners = self._states.get((exchange.endpoint.url, state_key), []) if state_key else []
        found = self._find(exchange, method, core_of(params), state_key, frozenset(answered), owners)
        round_ = exchange.mrtr = Round(1, given=mask(state) if state is not None else None, answered=answered)
        self._own(round_, owners, exchange)
        if found is None:
            core = core_of(params)
            round_.state = "foreign" if owners and all(o.core != core for o in owners) else "unknown"
            if round_.state == "foreign" and not round_.shared and round_.owner is not None:
                owner = round_.owner
                if link and (owner.method, owner.name) == (method, exchange.name) and not round_.other_auth:
                    self._link(exchange, message, round_, owner, "d")
            return
        item, by, round_.sure, round_.sure_of_keys = found
        self._state(round_, item, state, state_key, owners, core_of(params))
        self._keys(round_, item)
        if link:
            self._link(exchange, message, round_, item, by)
        else:
            round_.continues, round_.link, round_.number = item, by, item.number + 1

    @staticmethod
    def _own(round_: Round, owners: list[Item], exchange: Exchange) -> None:
        if owners:
            round_.owner = owners[-1]
            round_.shared = len({(o.method, o.core) for o in owners}) > 1
            round_.other_auth = all(o.auth != exchange.auth for o in owners)

    def _find(
        self, exchange: Exchange, method: str, core: bytes, state: bytes, keys: frozenset[str], owners: list[Item]
    ) -> tuple[Item, LinkClass, bool, bool] | None:
        """The item that a retry continues, the class of the link, whether no other item could be meant, and whether all that
        could be meant asked for the same."""

        def mine(item: Item) -> bool:
            return item.core == core and item.auth == exchange.auth and item.client == exchange.client_info

        here = [i for i in self._open.get((exchange.endpoint.url, method, exchange.name), ()) if mine(i)]
        if state and (best := _best([i for i in here if i.state_key == state], exchange)):
            return best[0], "a", *best[1:]
        if keys and (best := _best([i for i in here if not i.state_key and not keys.isdisjoint(i.keys)], exchange)):
            return best[0], "b", *best[1:]
        if keys and (best := _best([i for i in here if i.state_key and not keys.isdisjoint(i.keys)], exchange)):
            return best[0], "c", *best[1:]
        same = [i for i in owners if i.core == core and i.method == method]
        if same and (best := _best([i for i in same if mine(i)], exchange)):
            return best[0], "a", *best[1:]
        if same:  # another Authorization, or a client that renamed itself: the state alone speaks for it
            return same[-1], "a", False, True
        if state and not owners and not keys:
            alone = [i for i in here if i.state_key and i.asks_nothing and not i.abandoned]
            if len(alone) == 1:  # it had nothing to answer: only the state can show that it is meant
                return alone[0], "c", False, False
        return None

    @staticmethod
    def _state(round_: Round, item: Item, state: str | None, key: bytes, owners: list[Item], core: bytes) -> None:
        if item.state is not None:
            round_.expected = mask(item.state) if len(item.state) < MOST_STATE else "(not kept)"
        if key == item.state_key:
            round_.state = "same" if key else "none"
        elif not key:
            round_.state = "missing"
        elif owners and all(o.core != core for o in owners):
            round_.state = "foreign"
        elif not item.state_key:
            round_.state = "invented"
        else:
            round_.state = "older" if owners else "changed"
            round_.differs_at = _difference(item.state or "", state or "")
        if round_.state == "same" and item.closed_how in ("complete", "task"):
            round_.consumed, round_.consumed_how = item.closed_by or "", item.closed_how

    @staticmethod
    def _keys(round_: Round, item: Item) -> None:
        asked, answered = set(item.keys), set(round_.answered)
        round_.asked, round_.requests = item.keys, item.requests
        round_.missing = tuple(k for k in item.keys if k not in answered)
        strange = [k for k in round_.answered if k not in asked]
        if strange:
            round_.unknown = tuple(k for k in strange if k not in item.earlier_keys)
            round_.repeated = tuple(k for k in strange if k in item.earlier_keys)

    def _link(self, exchange: Exchange, message: Message, round_: Round, item: Item, link: LinkClass) -> None:
        round_.continues, round_.link, round_.number = item, link, item.number + 1
        own = id_key(message.rpc.id)
        if own == item.id:
            round_.same_id = item.flow
        elif own == item.first_id:
            round_.same_id = item.first_flow
        round_.siblings = tuple(e for e in item.continuations if e.outcome not in ("broken", "cancelled", "error"))
        if len(item.continuations) < 20:
            item.continuations.append(exchange)
        if item.closed_how == "task":
            round_.after_task = item.closed_by or ""
        by: Literal["requestState", "inputResponses"] = "requestState" if link in ("a", "d") else "inputResponses"
        if link == "c" and not round_.answered:
            by = "requestState"
        exact = link == "a" and round_.sure and item.state is not None and len(item.state) >= SHORT
        held = max(exchange.started - item.at, 0.0) * 1000
        linked = self.memory.conversations.link(item.exchange, exchange, by, "exact" if exact else "likely", client_ms=held)
        if linked is not None:
            if item.abandoned:
                item.abandoned, linked.forced = False, None
            self.memory.touched(item.exchange)

    def _continues(self, exchange: Exchange) -> None:
        """The client knows how to continue: that it starts over has another reason."""
        client = (exchange.endpoint.url, exchange.auth, exchange.client_info)
        self._retried.put(client, True)
        for earlier in self._starting_over.pop(client) or ():
            if earlier.mrtr is not None:
                earlier.mrtr.never_retried = False
                self.memory.rejudge(earlier)
            self.memory.held.free(earlier, STARTING_OVER)

    # The same call without state and responses

    def _starts_over(self, exchange: Exchange, round_: Round, item: Item) -> None:
        """MRT027: a client that never continues takes the answer for the result."""
        client = (exchange.endpoint.url, exchange.auth, exchange.client_info)
        if client in self._retried or item.starts < 2:
            return
        round_.never_retried = True
        self.memory.held.keep(exchange, STARTING_OVER)
        known = self._starting_over.get(client) or []
        for forgotten in self._starting_over.put(client, [*known, exchange][-MOST_OPEN:]):
            for earlier in forgotten if forgotten is not known else ():
                self.memory.held.free(earlier, STARTING_OVER)

    def _afresh(self, message: Message, candidates: list[Item]) -> None:
        """MRT002: a new attempt. What was open is abandoned, unless its retry comes all the same."""
        exchange = message.exchange
        core = core_of(message.params)
        for item in reversed(candidates):
            if item.abandoned or item.core != core or item.auth != exchange.auth or item.client != exchange.client_info:
                continue
            if any(e.outcome in ("none", "stream") for e in item.continuations):
                continue  # its retry is on its way: this is another call beside it
            item.abandoned = True
            if exchange.mrtr is None:
                exchange.mrtr = Round(1, restarts=item)
                self._starts_over(exchange, exchange.mrtr, item)
            conversation = item.exchange.conversation
            if conversation is not None and conversation.rounds[-1] == item.flow:
                conversation.forced = "abandoned"
                self.memory.conversations.refresh(item.exchange)
                self.memory.touched(item.exchange)


def _same_round(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a change of the request left alone what a round is told by."""
    return core_of(one) == core_of(other) and all(one.get(name) == other.get(name) for name in ("requestState", "inputResponses"))


def core_of(params: dict[str, Any]) -> bytes:
    """A digest under which params meet that are equal as JSON values, leaving out what may differ between rounds."""
    core = {k: v for k, v in params.items() if k not in ("_meta", "inputResponses", "requestState")}
    return digest(core)


def _best(candidates: list[Item], exchange: Exchange) -> tuple[Item, bool, bool] | None:
    """The item that is meant: one that nothing continues yet, not started afresh, of the same connection, the newest. Whether it
    is the only one, and whether all of them asked for the same."""
    if not candidates:
        return None
    if len(candidates) == 1:
        return candidates[0], True, True
    idle = [i for i in candidates if not any(e.outcome not in ("broken", "cancelled") for e in i.continuations)] or candidates
    live = [i for i in idle if not i.abandoned] or idle
    near = [i for i in live if i.exchange.connection == exchange.connection] or live
    return near[-1], len(idle) == 1, all(i.keys == near[-1].keys for i in idle)


def _difference(one: str, two: str) -> int:
    for index, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return index
    return min(len(one), len(two))


def _remove[K](table: dict[K, list[Item]], key: K, item: Item) -> None:
    items = table.get(key)
    if items is not None and item in items:
        items.remove(item)
        if not items:
            del table[key]
