"""The fixtures that the conformance suite (`@modelcontextprotocol/conformance`, server suite) calls by their names.

Names and literal texts are the suite's demands. `test_servers/README.md` says how a run is made and what came of it.
"""

import asyncio
import base64
import json
import struct
from typing import Any

import mcp_types as types

from test_servers.presets.mrtr import form
from test_servers.presets.prompts import said
from test_servers.presets.resources import PIXEL, text_resource
from test_servers.registry import (
    Era,
    PromptAnswer,
    PromptItem,
    ResourceItem,
    TaskPlan,
    TemplateItem,
    ToolAnswer,
    ToolItem,
    preset,
    text_result,
    tool,
)
from test_servers.world import TASKS_EXTENSION, Call, compact, missing_capability

MODERN: frozenset[Era] = frozenset({"modern"})
STRING = {"type": "string"}
SILENCE = base64.b64encode(
    b"RIFF" + struct.pack("<I4s4sIHHIIHH4sI", 44, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", 8) + b"\x80" * 8
).decode()
"""The shortest WAV: one millisecond of silence."""
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _fixed(name: str, *content: types.ContentBlock, error: bool = False) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        return types.CallToolResult(content=list(content), is_error=error)

    return ToolItem(tool(name, f"Conformance fixture {name}"), run)


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _asks(name: str, key: str, request: types.InputRequest, *, state: bool = False) -> ToolItem:
    """A modern tool with one question, and a state to come back with if `state`."""

    async def run(call: Call) -> ToolAnswer:
        if key not in call.responses:
            return call.ask({key: request}, f"{name}:{call.world.mint()}" if state else None)
        if state and call.state is None:
            return call.ask({key: request}, f"{name}:{call.world.mint()}")
        return f"{'state-ok ' if state else ''}{compact(call.responses[key])}"

    return ToolItem(tool(name, f"Conformance fixture {name}"), run, MODERN)


def _sample(text: str, tokens: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


def _elicit(message: str, properties: dict[str, Any], *required: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


@preset("tool", "conformance")
def content_tools() -> list[ToolItem]:
    """Tools of the suite that answer at once, or speak while they work."""
    image = types.ImageContent(data=PIXEL, mime_type="image/png")
    mixed = _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')

    async def with_logging(call: Call) -> ToolAnswer:
        for index, message in enumerate(("Tool execution started", "Tool processing data", "Tool execution completed")):
            await asyncio.sleep(0.05 if index else 0)
            await call.log("info", message)
        return "Tool with logging executed successfully"

    async def with_progress(call: Call) -> ToolAnswer:
        for done in (0, 50, 100):
            await call.progress(done, 100)
            await asyncio.sleep(0.05)
        return "Tool with progress executed successfully"

    async def reconnection(call: Call) -> ToolAnswer:
        if call.ctx.close_sse_stream is not None:
            await call.ctx.close_sse_stream()
        await asyncio.sleep(0.3)
        return "Answered after the stream was closed"

    async def schema_tool(call: Call) -> ToolAnswer:
        return f"Schema tool called with {compact(call.arguments)}"

    async def change_tools(call: Call) -> ToolAnswer:
        await call.world.tools_changed()
        return "Announced a change of the tools"

    async def change_prompts(call: Call) -> ToolAnswer:
        await call.world.prompts_changed()
        return "Announced a change of the prompts"

    schema = types.Tool(
        name="json_schema_2020_12_tool",
        description="Tool with JSON Schema 2020-12 features",
        input_schema=SCHEMA_2020_12,
    )
    return [
        _fixed("test_simple_text", types.TextContent(text="This is a simple text response for testing.")),
        _fixed("test_image_content", image),
        _fixed("test_audio_content", types.AudioContent(data=SILENCE, mime_type="audio/wav")),
        _fixed(
            "test_embedded_resource",
            _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
        ),
        _fixed("test_multiple_content_types", types.TextContent(text="Multiple content types test:"), image, mixed),
        _fixed(
            "test_error_handling",
            types.TextContent(text="This tool intentionally returns an error for testing"),
            error=True,
        ),
        ToolItem(tool("test_tool_with_logging", "Logs three messages"), with_logging),
        ToolItem(tool("test_logging_tool", "Logs three messages, where asked to"), with_logging),
        ToolItem(tool("test_tool_with_progress", "Reports progress three times"), with_progress),
        ToolItem(tool("test_reconnection", "Closes its stream and answers on the resumed one"), reconnection),
        ToolItem(tool("test_trigger_tool_change", "Announces that the tools changed"), change_tools),
        ToolItem(tool("test_trigger_prompt_change", "Announces that the prompts changed"), change_prompts),
        ToolItem(schema, schema_tool),
    ]


@preset("tool", "conformance_questions")
def question_tools() -> list[ToolItem]:
    """Tools of the suite that ask the client: on a legacy session while they run, in the modern era by MRTR."""
    defaults = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{nth} Option"} for n, nth in ((1, "First"), (2, "Second"), (3, "Third"))]
    choices = [{"const": f"value{n}", "title": f"{nth} Choice"} for n, nth in ((1, "First"), (2, "Second"), (3, "Third"))]
    names = ["Option One", "Option Two", "Option Three"]
    enums = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    }

    def asking(name: str, make: Any, told: Any, properties: dict[str, Any] | None = None) -> ToolItem:
        async def run(call: Call) -> ToolAnswer:
            request = make(call.arguments)
            if call.era == "modern":
                answer = call.responses.get("answer")
                return call.ask({"answer": request}) if answer is None else told(answer)
            if call.lacks(request):
                return text_result(f"The client declared no support for {request.method}", is_error=True)
            return str(told(await call.ask_now(request)))

        definition = tool(name, f"Conformance fixture {name}", properties, required=list(properties or {}))
        return ToolItem(definition, run)

    def user(arguments: dict[str, Any]) -> types.ElicitRequest:
        properties = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        return _elicit(arguments["message"], properties, "username", "email")

    def completed(answer: dict[str, Any]) -> str:
        return f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content', {}))}"

    return [
        asking(
            "test_sampling",
            lambda arguments: _sample(arguments["prompt"]),
            lambda answer: f"LLM response: {answer['content']['text']}",
            {"prompt": STRING},
        ),
        asking("test_elicitation", user, lambda answer: f"User response: {compact(answer)}", {"message": STRING}),
        asking("test_elicitation_sep1034_defaults", lambda _: _elicit("Please check the defaults", defaults), completed),
        asking("test_elicitation_sep1330_enums", lambda _: _elicit("Please choose", enums), completed),
    ]


@preset("tool", "conformance_input_required")
def input_required_tools() -> list[ToolItem]:
    """Tools of the suite for multi-round-trip requests."""
    who = _elicit("What is your name?", {"name": STRING}, "name")
    confirm = form("Please confirm", "ok", "boolean", "OK")
    roots = types.ListRootsRequest()
    several: dict[str, types.InputRequest] = {
        "user_name": who,
        "greeting": _sample("Generate a greeting", 50),
        "client_roots": roots,
    }

    async def multiple(call: Call) -> ToolAnswer:
        if not set(several) <= set(call.responses):
            return call.ask(several, f"several:{call.world.mint()}")
        return f"All answers are in: {compact(call.responses)}"

    async def multi_round(call: Call) -> ToolAnswer:
        step = (call.state or "").partition(":")[0]
        if step == "two" and "step2" in call.responses:
            return f"Both steps are done: {compact(call.responses['step2'])}"
        if step == "two" or (step == "one" and "step1" in call.responses):
            question = _elicit("Step 2: What is your favorite color?", {"color": STRING}, "color")
            return call.ask({"step2": question}, f"two:{call.world.mint()}")
        question = _elicit("Step 1: What is your name?", {"name": STRING}, "name")
        return call.ask({"step1": question}, f"one:{call.world.mint()}")

    async def capabilities(call: Call) -> ToolAnswer:
        # Asks only for what this client can answer.
        fitting = {key: request for key, request in several.items() if not call.lacks(request)}
        if not fitting or set(fitting) <= set(call.responses):
            return f"Asked {sorted(fitting)}"
        return call.ask(fitting, f"fitting:{call.world.mint()}")

    async def needs_sampling(call: Call) -> ToolAnswer:
        request = _sample("Say something")
        if "sample" not in call.responses:
            return call.ask({"sample": request})
        return compact(call.responses["sample"])

    async def streaming(call: Call) -> ToolAnswer:
        await call.progress(1, 2, "about to ask")
        if "answer" not in call.responses:
            return call.ask({"answer": confirm})
        return "Asked and answered"

    return [
        _asks("test_input_required_result_elicitation", "user_name", who),
        _asks("test_input_required_result_sampling", "capital_question", _sample("What is the capital of France?")),
        _asks("test_input_required_result_list_roots", "client_roots", roots),
        _asks("test_input_required_result_request_state", "confirm", confirm, state=True),
        _asks("test_input_required_result_tampered_state", "confirm", confirm, state=True),
        ToolItem(tool("test_input_required_result_multiple_inputs", "Asks three things at once"), multiple, MODERN),
        ToolItem(tool("test_input_required_result_multi_round", "Asks in two rounds"), multi_round, MODERN),
        ToolItem(tool("test_input_required_result_capabilities", "Asks what can be answered"), capabilities, MODERN),
        ToolItem(tool("test_missing_capability", "Needs sampling"), needs_sampling, MODERN),
        ToolItem(tool("test_streaming_elicitation", "Speaks, then asks"), streaming, MODERN),
    ]


@preset("tool", "conformance_tasks")
def task_tools() -> list[ToolItem]:
    """Tools of the suite for the tasks extension."""

    async def greet(call: Call) -> ToolAnswer:
        return f"Hello, {call.arguments.get('name', 'World')}!"

    async def slow_compute(call: Call) -> ToolAnswer:
        seconds = call.arguments.get("seconds", 1)
        text = f"Computed for {seconds} second(s)"
        if call.takes_tasks:
            return TaskPlan(lambda answers: text_result(text), seconds=seconds, poll_interval_ms=100)
        await asyncio.sleep(seconds)
        return text

    async def failing_job(call: Call) -> ToolAnswer:
        if not call.takes_tasks:
            raise missing_capability(call.ctx, {"extensions": {TASKS_EXTENSION: {}}})
        error = text_result("This job always fails", is_error=True)
        return TaskPlan(lambda answers: error, seconds=1, poll_interval_ms=100)

    async def protocol_error_job(call: Call) -> ToolAnswer:
        error = types.ErrorData(code=types.INTERNAL_ERROR, message="The job broke down")
        if not call.takes_tasks:
            return text_result(error.message, is_error=True)
        return TaskPlan(lambda answers: error, poll_interval_ms=100)

    async def confirm_delete(call: Call) -> ToolAnswer:
        name = call.arguments.get("filename", "the file")
        question = form(f"Delete {name}?", "confirm", "boolean", "Confirm")
        if call.takes_tasks:
            done = text_result(f"Deleted {name}")
            return TaskPlan(lambda answers: done, rounds=({"confirm": question},), poll_interval_ms=100)
        return f"Deleted {name}" if "confirm" in call.responses else call.ask({"confirm": question})

    async def multi_input(call: Call) -> ToolAnswer:
        questions = {name: form(f"Your {name}?", name, "string", name.title()) for name in ("name", "city")}
        if call.takes_tasks:
            return TaskPlan(lambda a: text_result(compact(a)), rounds=(questions,), poll_interval_ms=100)
        answered = set(questions) <= set(call.responses)
        return compact(call.responses) if answered else call.ask(dict(questions))

    async def with_task(call: Call) -> ToolAnswer:
        if not call.takes_tasks:
            raise missing_capability(call.ctx, {"extensions": {TASKS_EXTENSION: {}}})
        answer = call.responses.get("user_name")
        if answer is None:
            question = _elicit("What is your name?", {"name": STRING}, "name")
            return call.ask({"user_name": question}, f"task:{call.world.mint()}")
        return TaskPlan(lambda answers: text_result(f"Hello, {compact(answer)}"), poll_interval_ms=100)

    def item(name: str, run: Any, properties: dict[str, Any] | None = None) -> ToolItem:
        return ToolItem(tool(name, f"Conformance fixture {name}", properties), run, MODERN)

    return [
        item("greet", greet, {"name": STRING}),
        item("slow_compute", slow_compute, {"seconds": {"type": "number", "minimum": 0, "maximum": 60}}),
        item("failing_job", failing_job),
        item("protocol_error_job", protocol_error_job),
        item("confirm_delete", confirm_delete, {"filename": STRING}),
        item("multi_input", multi_input),
        item("test_tool_with_task", with_task),
    ]


@preset("resource", "conformance")
def resources() -> list[ResourceItem]:
    """Resources of the suite."""
    uri = "test://static-binary"
    blob = [types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)]
    watched = "test://watched-resource"
    return [
        text_resource("test://static-text", "static-text", "This is the content of the static text resource."),
        ResourceItem(types.Resource(uri=uri, name="static-binary", mime_type="image/png"), lambda: blob),
        text_resource(watched, "watched-resource", "This resource may be watched."),
    ]


@preset("resourceTemplate", "conformance")
def templates() -> TemplateItem:
    """The resource template of the suite."""

    def read(uri: str, values: dict[str, Any]) -> list[types.TextResourceContents]:
        data = {"id": values["id"], "templateTest": True, "data": f"Data for ID: {values['id']}"}
        return [types.TextResourceContents(uri=uri, mime_type="application/json", text=compact(data))]

    definition = types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by its id",
        mime_type="application/json",
    )
    return TemplateItem(definition, read)


@preset("prompt", "conformance")
def prompts() -> list[PromptItem]:
    """Prompts of the suite."""

    def required(*names: str) -> list[types.PromptArgument]:
        return [types.PromptArgument(name=name, description=f"The {name}", required=True) for name in names]

    async def simple(call: Call) -> PromptAnswer:
        return [said("This is a simple prompt for testing.")]

    async def with_arguments(call: Call) -> PromptAnswer:
        one, two = call.arguments["arg1"], call.arguments["arg2"]
        return [said(f"Prompt with arguments: arg1='{one}', arg2='{two}'")]

    async def embedded(call: Call) -> PromptAnswer:
        uri = call.arguments["resourceUri"]
        resource = _embedded(uri, "text/plain", "Embedded resource content for testing.")
        return [said(resource), said("Please process the embedded resource above.")]

    async def with_image(call: Call) -> PromptAnswer:
        image = types.ImageContent(data=PIXEL, mime_type="image/png")
        return [said(image), said("Please analyze the image above.")]

    async def asking(call: Call) -> PromptAnswer:
        answer = call.responses.get("user_context")
        if answer is None:
            question = _elicit("What context should the prompt use?", {"context": STRING}, "context")
            return call.ask({"user_context": question})
        return [said(f"The context is {compact(answer)}")]

    def definition(name: str, *arguments: str) -> types.Prompt:
        return types.Prompt(name=name, description=f"Conformance fixture {name}", arguments=required(*arguments) or None)

    completions = {"arg1": ["paris", "park", "party"], "arg2": ["one", "two"]}
    return [
        PromptItem(definition("test_simple_prompt"), simple),
        PromptItem(definition("test_prompt_with_arguments", "arg1", "arg2"), with_arguments, completions),
        PromptItem(definition("test_prompt_with_embedded_resource", "resourceUri"), embedded),
        PromptItem(definition("test_prompt_with_image"), with_image),
        PromptItem(definition("test_input_required_result_prompt"), asking, eras=MODERN),
    ]
