"""Tools that need input: multi-round-trip requests of 2026-07-28, one tool for each shape a conversation can take.

A retry that leaves the asked question unanswered is asked again. What the client answered is only read from the key
that was asked; keys of earlier rounds are ignored.
"""

from typing import Any

import mcp_types as types

from test_servers.registry import Era, ToolAnswer, ToolItem, preset, text_result, tool
from test_servers.world import Call, compact

MODERN: frozenset[Era] = frozenset({"modern"})


def form(message: str, name: str, kind: str, title: str, *, required: bool = True) -> types.ElicitRequest:
    """A form with one field."""
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": kind, "title": title}}}
    if required:
        schema["required"] = [name]
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


@preset("tool", "mrtr_confirm")
def mrtr_confirm(name: str = "mrtr_confirm") -> ToolItem:
    """One round: asks for a confirmation of the action; `name` lets a config call the tool something else."""

    async def run(call: Call) -> ToolAnswer:
        action = call.arguments["action"]
        answer = call.responses.get("confirm")
        if answer is None:
            question = form(f"Shall I {action}?", "confirm", "boolean", "Confirm")
            return call.ask({"confirm": question}, f"mrtr:{action}:{call.world.mint()}")
        return f'Done with "{action}", confirmation was {compact(answer)}'

    definition = tool(name, "Asks before it acts", {"action": {"type": "string"}}, required=["action"])
    return ToolItem(definition, run, MODERN)


@preset("tool", "mrtr_two_step")
def mrtr_two_step() -> ToolItem:
    """Two rounds; the step is known from requestState alone."""

    async def run(call: Call) -> ToolAnswer:
        step = (call.state or "").rpartition(":")[0]
        if step == "mrtr-two:done" and "second" in call.responses:
            return f"Both values are in, the second was {compact(call.responses['second'])}"
        if step in ("mrtr-two:step2", "mrtr-two:done") and (step == "mrtr-two:done" or "first" in call.responses):
            question = form("Now the second value, please", "value", "string", "Second")
            return call.ask({"second": question}, f"mrtr-two:done:{call.world.mint()}")
        question = form("The first value, please", "value", "string", "First")
        return call.ask({"first": question}, f"mrtr-two:step2:{call.world.mint()}")

    return ToolItem(tool("mrtr_two_step", "Asks for two values, one after the other"), run, MODERN)


@preset("tool", "mrtr_sample")
def mrtr_sample() -> ToolItem:
    """One round that asks the client's model."""

    async def run(call: Call) -> ToolAnswer:
        answer = call.responses.get("sample")
        if answer is None:
            ask = types.SamplingMessage(role="user", content=types.TextContent(text="Please greet the user."))
            params = types.CreateMessageRequestParams(messages=[ask], max_tokens=64)
            request = types.CreateMessageRequest(params=params)
            return call.ask({"sample": request}, f"mrtr-sample:{call.world.mint()}")
        return f"The model answered {compact(answer)}"

    return ToolItem(tool("mrtr_sample", "Asks the client's model for a greeting"), run, MODERN)


@preset("tool", "mrtr_roots")
def mrtr_roots() -> ToolItem:
    """One round that asks for the client's roots."""

    async def run(call: Call) -> ToolAnswer:
        answer = call.responses.get("roots")
        if answer is None:
            return call.ask({"roots": types.ListRootsRequest()}, f"mrtr-roots:{call.world.mint()}")
        return f"The client has {len(answer.get('roots', []))} root(s)"

    return ToolItem(tool("mrtr_roots", "Asks for the client's roots"), run, MODERN)


@preset("tool", "mrtr_stateless")
def mrtr_stateless() -> ToolItem:
    """One round with inputRequests and no requestState."""

    async def run(call: Call) -> ToolAnswer:
        answer = call.responses.get("note")
        if answer is None:
            return call.ask({"note": form("A note, please", "value", "string", "Note")})
        return f"Noted {compact(answer)}"

    return ToolItem(tool("mrtr_stateless", "Asks for a note and keeps no state"), run, MODERN)


@preset("tool", "mrtr_checkpoint")
def mrtr_checkpoint() -> ToolItem:
    """One round with requestState and no inputRequests: the client only has to come back."""

    async def run(call: Call) -> ToolAnswer:
        if call.state is None:
            return call.ask({}, f"mrtr-checkpoint:{call.world.mint()}")
        return "Finished after the checkpoint"

    return ToolItem(tool("mrtr_checkpoint", "Works in two legs without asking anything"), run, MODERN)


@preset("tool", "mrtr_edge")
def mrtr_edge() -> ToolItem:
    """A round of inputRequests without state, then a round of state without inputRequests."""

    async def run(call: Call) -> ToolAnswer:
        if call.state is not None:
            return "Through both edge rounds"
        if "note" in call.responses:
            return call.ask({}, f"mrtr-edge:final:{call.world.mint()}")
        return call.ask({"note": form("A note for the edge case", "value", "string", "Note", required=False)})

    return ToolItem(tool("mrtr_edge", "Round one has no state, round two has no question"), run, MODERN)


@preset("tool", "mrtr_empty")
def mrtr_empty() -> ToolItem:
    """One round, then a result with no content at all."""

    async def run(call: Call) -> ToolAnswer:
        if "ack" not in call.responses:
            question = form("Acknowledge, and the result will be empty", "ack", "boolean", "Acknowledge")
            return call.ask({"ack": question}, f"mrtr-empty:{call.world.mint()}")
        return types.CallToolResult(content=[])

    return ToolItem(tool("mrtr_empty", "Ends in an empty result"), run, MODERN)


@preset("tool", "mrtr_loop")
def mrtr_loop() -> ToolItem:
    """Asks for ever, with a fresh state every time."""

    async def run(call: Call) -> ToolAnswer:
        question = form("Once more, please (this never ends)", "value", "string", "Value", required=False)
        return call.ask({"again": question}, f"mrtr-loop:{call.world.mint()}")

    return ToolItem(tool("mrtr_loop", "Never stops asking"), run, MODERN)


@preset("tool", "url_elicitation_form")
def url_elicitation_form(url: str = "https://example.com/consent") -> ToolItem:
    """Sends the user to a URL: elicitation in url mode, by MRTR or by a legacy request."""

    async def run(call: Call) -> ToolAnswer:
        message = "Please give your consent on the page"
        if call.era == "modern":
            request = types.ElicitRequest(params=types.ElicitRequestURLParams(message=message, url=url))
            answer = call.responses.get("consent")
            if answer is None:
                return call.ask({"consent": request}, f"url:{call.world.mint()}")
            return f"Consent page: {answer['action']}"
        elicitation_id = f"consent-{call.world.mint()}"
        params = types.ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
        request = types.ElicitRequest(params=params)
        if call.lacks(request):
            return text_result("This client does not open pages for a server", is_error=True)
        answer = await call.ask_now(request)
        if answer["action"] == "accept":
            await call.ctx.session.send_elicit_complete(elicitation_id, related_request_id=call.ctx.request_id)
        return f"Consent page: {answer['action']}"

    return ToolItem(tool("url_elicitation_form", "Asks the user to open a page"), run)
