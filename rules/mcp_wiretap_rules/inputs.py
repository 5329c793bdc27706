"""What servers ask of clients, and what clients answer, wherever either is carried.

A server asks for input (elicitation, sampling, roots) by a request of its own (legacy), in the inputRequests of an
input_required answer, of a task, or, in 2025-11-25, in the data of error -32042. The client answers by a posted result, or in
the inputResponses of a retry or of tasks/update. The same demands hold for all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.operations.tasks import TASK
from mcp_wiretap.wire import revision as rev

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
KINDS = frozenset({ELICIT, SAMPLE, ROOTS})
MRTR = frozenset({"tools/call", "prompts/get", "resources/read"})
MOST = 100  # inputs of one message that are judged

type Steps = tuple[str | int, ...]
type Origin = Literal["request", "mrtr", "task", "error"]


@dataclass(slots=True, frozen=True)
class Ask:
    """One request for input. `steps` lead to its params."""

    message: Message
    origin: Origin
    key: str
    method: str
    params: dict[str, Any]
    steps: Steps

    def place(self, *more: str | int) -> str:
        return self.message.place(*self.steps, *more)

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """What the client declares for it; None where that is not known."""
        exchange = self.message.exchange
        if self.message.request is not None:
            exchange = self.message.request.exchange
        return declared(exchange)


@dataclass(slots=True, frozen=True)
class Reply:
    """One answer to such a request. `method` and `asked` (its params) are None where it is not known what was asked."""

    message: Message
    origin: Origin
    key: str
    value: Any
    steps: Steps
    method: str | None
    asked: dict[str, Any] | None

    def place(self, *more: str | int) -> str:
        return self.message.place(*self.steps, *more)

    @property
    def wrapped(self) -> bool:
        """Whether a JSON-RPC message stands where its bare result belongs: MRT017 says so, and there is nothing to look into."""
        value = self.value
        if self.origin != "mrtr" or not isinstance(value, dict):
            return False
        return "jsonrpc" in value or (bool(value) and value.keys() <= {"result", "error", "id"})

    @property
    def name(self) -> str:
        """The input in a sentence: `the answer to confirm`."""
        return f"the answer to {self.key}" if self.key else "the answer"


def declared(exchange: Exchange) -> dict[str, Any] | None:
    """The capabilities that hold for a request; None where they are not known (no envelope, no recorded initialize)."""
    request = exchange.request
    if exchange.claim.modern:
        found = request.meta.get(rev.CLIENT_CAPABILITIES) if request is not None else None
    else:
        found = exchange.session.client_capabilities if exchange.session is not None else None
    return found if isinstance(found, dict) else None


def asks(message: Message) -> Sequence[Ask]:
    """The requests for input in a message of the server."""
    rpc = message.rpc
    if rpc.kind == "result":
        result = rpc.result
        requests = result.get("inputRequests") if isinstance(result, dict) else None
        if not isinstance(requests, dict) or message.request is None:
            return ()
        method = message.request.method
        if method in MRTR:
            if result.get("resultType") != "input_required":
                return ()
            return list(_many(message, "mrtr", requests, ("result", "inputRequests")))
        if method == "tasks/get":
            return list(_many(message, "task", requests, ("result", "inputRequests")))
        return ()
    if rpc.kind == "request":
        if rpc.method in KINDS and message.party == "server":
            return (Ask(message, "request", "", rpc.method or "", message.params, ("params",)),)
        return ()
    if rpc.kind == "error" and rpc.error_code == rev.URL_ELICITATION_REQUIRED:
        return list(_required(message))
    if rpc.kind == "notification" and rpc.method == "notifications/tasks":
        requests = message.params.get("inputRequests")
        if isinstance(requests, dict):
            return list(_many(message, "task", requests, ("params", "inputRequests")))
    return ()


def _many(message: Message, origin: Origin, requests: dict[str, Any], steps: Steps) -> Iterator[Ask]:
    for key, request in list(requests.items())[:MOST]:
        if isinstance(request, dict) and isinstance(method := request.get("method"), str):
            params = request.get("params")
            yield Ask(message, origin, key, method, params if isinstance(params, dict) else {}, (*steps, key, "params"))


def _required(message: Message) -> Iterator[Ask]:
    """URLElicitationRequired of 2025-11-25 lists the elicitations that are needed first."""
    data = message.rpc.error.get("data")
    listed = data.get("elicitations") if isinstance(data, dict) else None
    for index, params in enumerate(listed[:MOST] if isinstance(listed, list) else ()):
        if isinstance(params, dict):
            yield Ask(message, "error", "", ELICIT, params, ("error", "data", "elicitations", index))


def replies(message: Message) -> Sequence[Reply]:
    """The answers to requests for input in a message of the client."""
    rpc = message.rpc
    if rpc.kind == "result":
        asked = message.request
        if message.party != "client" or asked is None or asked.method not in KINDS:
            return ()
        return (Reply(message, "request", "", rpc.result, ("result",), asked.method, asked.params),)
    if rpc.kind != "request" or message.party != "client":
        return ()
    responses = message.params.get("inputResponses")
    if not isinstance(responses, dict) or not responses:
        return ()
    exchange = message.exchange
    if rpc.method in MRTR:
        round_ = exchange.mrtr
        known = round_.requests if round_ is not None and round_.sure_of_keys else None
        return list(_answers(message, "mrtr", responses, known or {}))
    if rpc.method == "tasks/update":
        view = exchange.facts.get(TASK)
        known = view.task.requests if view is not None and view.task is not None else {}
        return list(_answers(message, "task", responses, known))
    return ()


def _answers(message: Message, origin: Origin, responses: dict[str, Any], known: dict[str, Any]) -> Iterator[Reply]:
    for key, value in list(responses.items())[:MOST]:
        request = known.get(key)
        method = request.get("method") if isinstance(request, dict) else None
        params = request.get("params") if isinstance(request, dict) else None
        yield Reply(
            message,
            origin,
            key,
            value,
            ("params", "inputResponses", key),
            method if isinstance(method, str) else None,
            params if isinstance(params, dict) else None,
        )


def mode(params: dict[str, Any]) -> Any:
    """The mode of an elicitation: a missing one is form."""
    return params.get("mode", "form")


def supports(capabilities: dict[str, Any], method: str, params: dict[str, Any]) -> str | None:
    """None where the client declared what such a request needs; else the capability that is missing: `elicitation.url`."""
    if method == ROOTS:
        return None if isinstance(capabilities.get("roots"), dict) else "roots"
    if method == SAMPLE:
        sampling = capabilities.get("sampling")
        if not isinstance(sampling, dict):
            return "sampling"
        if ("tools" in params or "toolChoice" in params) and not isinstance(sampling.get("tools"), dict):
            return "sampling.tools"
        return None
    elicitation = capabilities.get("elicitation")
    if not isinstance(elicitation, dict):
        return "elicitation"
    wanted = mode(params)
    if wanted == "url":
        return None if isinstance(elicitation.get("url"), dict) else "elicitation.url"
    if wanted == "form" and elicitation and not isinstance(elicitation.get("form"), dict) and "url" in elicitation:
        return "elicitation.form"
    return None
