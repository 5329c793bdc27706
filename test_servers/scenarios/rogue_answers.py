"""Tours of the rogues whose answers are wrong in themselves: results, errors, statuses, refusals."""

from typing import Any

from test_servers.scenarios.rogues import ALL, FORM, Ask, ask, call, tour

DISCOVER, TOOLS = ask("server/discover"), ask("tools/list")
UNKNOWN_VERSION: dict[str, Any] = {"protocolVersion": "2030-01-01", "replace": {"mcp-protocol-version": "2030-01-01"}}

tour("rogue-result-type", DISCOVER, TOOLS, call("unknown_type"), call("number_type"), call("no_object"))
tour(
    "rogue-cache-hints",
    DISCOVER,
    TOOLS,
    ask("prompts/list"),
    ask("resources/list"),
    ask("resources/templates/list"),
    ask("resources/read", {"uri": "demo://resource/static/1"}),
)
tour(
    "rogue-pagination",
    DISCOVER,
    TOOLS,
    ask("tools/list", {"cursor": "YWZ0ZXI6Mw=="}),
    ask("prompts/list"),
    ask("resources/list"),
    ask("resources/list", {"cursor": "again"}),
    ask("resources/list", {"cursor": "again"}),
    ask("resources/templates/list"),
    ask("resources/templates/list", {"cursor": "invented"}),
)
tour(
    "rogue-refusal-status",
    DISCOVER,
    call("header_mismatch", replace={"mcp-name": "another"}),
    call("missing_capability"),
    ask("prompts/list", **UNKNOWN_VERSION),
    ask("ping"),
    ask("logging/setLevel", {"level": "info"}),
    ask("weather/forecast"),
    ask("resources/list", protocolVersion=None),
)
tour(
    "rogue-refusal-data",
    DISCOVER,
    call("no_capabilities"),
    call("list_of_capabilities"),
    ask("prompts/list", **UNKNOWN_VERSION),
    ask("resources/list", **UNKNOWN_VERSION),
)
tour("rogue-refuses-right", DISCOVER, call("mismatch"), call("capability", capabilities=FORM), call("envelope"))
tour(
    "rogue-wrong-refusals",
    DISCOVER,
    call("header_mismatch", replace={"mcp-name": "another"}),
    call("header_missing", replace={"mcp-method": None}),
    ask("prompts/list", **UNKNOWN_VERSION),
    ask("weather/forecast"),
    call("without_id"),
)
tour(
    "rogue-accepts-mismatch",
    DISCOVER,
    TOOLS,
    call("echo", {"message": "another name"}, replace={"mcp-name": "get_weather"}),
    call("echo", {"message": "no method"}, replace={"mcp-method": None}),
    call("get_weather", {"city": "Oslo"}, mirrored={"city": "Bergen"}),
    call("get_weather", {"city": "Oslo"}),
    ask("prompts/list", **UNKNOWN_VERSION),
)
tour(
    "rogue-sentinels-undecoded",
    DISCOVER,
    TOOLS,
    call("get_weather", {"city": "Oslo"}, mirrored={"city": "Oslo"}),
    call("get_weather", {"city": "Zürich"}, mirrored={"city": "Zürich"}),
    ask(
        "resources/read", {"uri": "demo://resource/static/1"}, replace={"mcp-name": "=?base64?ZGVtbzovL3Jlc291cmNlL3N0YXRpYy8x?="}
    ),
)


def calls(name: str, *tools: str, **more: Any) -> None:
    """A tour that discovers, lists, and calls each tool once."""
    tour(name, DISCOVER, TOOLS, *(call(tool, **more) for tool in tools))


def read(uri: str) -> Ask:
    return ask("resources/read", {"uri": uri})


ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}

calls("rogue-undeclared-input", "form", "url", "sample", "roots", "generic")
tour(
    "rogue-input-required",
    DISCOVER,
    ask("tools/list", capabilities=FORM),
    *(call(name, capabilities=FORM) for name in ("empty", "number_state", "unknown_kind", "array", "impatient")),
    call("impatient", capabilities=FORM, state="sealed-state-0004", responses={"one": ACCEPTED}),
)
calls(
    "rogue-questions",
    *("no_message", "nested", "password", "leaking_url", "elicitation_id", "no_max_tokens", "old_context"),
    capabilities=ALL | {"sampling": {"context": {}}},
)
tour(
    "rogue-readable-state",
    DISCOVER,
    call("transfer", capabilities=FORM),
    call(
        "transfer",
        capabilities=FORM,
        state="eyJ1c2VyIjogImFkYSIsICJhbW91bnQiOiA5OTksICJzdGVwIjogImNvbmZpcm0ifQ==",
        responses={"q": {"action": "accept", "content": {"ok": True}}},
    ),
)
tour(
    "rogue-retired-codes",
    DISCOVER,
    read("demo://nothing"),
    *(call(name) for name in ("url_needed", "undefined_code", "old_timeout", "reserved_code")),
)
calls(
    "rogue-structured-content",
    "wrong_type",
    "missing_structure",
    "no_content",
    "bad_block",
    "bad_base64",
    "no_mime_type",
    "bad_annotations",
)
calls("rogue-session-ids")
calls("rogue-tool-definitions")
calls("rogue-header-annotations")
tour("rogue-discovery", DISCOVER, TOOLS, ask("prompts/list"), ask("resources/list"))
tour("rogue-no-discovery", TOOLS, DISCOVER)
tour("rogue-varying-lists", DISCOVER, TOOLS, TOOLS, TOOLS)
tour(
    "rogue-resources",
    DISCOVER,
    ask("resources/list"),
    ask("resources/templates/list"),
    *(read(f"demo://{name}") for name in ("empty", "both", "gone")),
    ask("prompts/list"),
    ask("prompts/get", {"name": "same"}),
    ask("prompts/get", {"name": "missing"}),
    ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "same"}, "argument": {"name": "a", "value": "v"}}),
)
tour("rogue-apps", DISCOVER, TOOLS, read("ui://no/page"), read("ui://bad/page"), call("only_page"))
tour(
    "rogue-http",
    DISCOVER,
    *(call(name) for name in ("plain_text", "no_json", "server_error", "moved")),
    call("open_to_all", extra=[("origin", "https://attacker.example")]),
)
calls("rogue-meta", "bad_key", "reserved_key", "traces", "subscription")
