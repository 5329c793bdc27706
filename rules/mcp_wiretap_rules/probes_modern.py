"""Probes of a server of 2026-07-28: what it must refuse, and what it must not."""

from mcp_wiretap.rule.probes import (
    REFUSALS,
    Call,
    as_before,
    asked,
    no_message,
    probe,
    refused,
    status,
    tool_error,
)
from mcp_wiretap.wire.headers import PREFIX, SUFFIX
from mcp_wiretap.wire.revision import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

HTTP = "2026-07-28 basic/transports/streamable-http"
UNKNOWN_VERSION = "2126-01-01"
NO_SUCH = "mcp-wiretap-there-is-no-such-thing"
MISMATCH = (refused(-32020, 400),)
NOT_VALID = (refused(-32600, 400), no_message(400))


def _sentinel(text: str) -> str:
    import base64

    return PREFIX + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode() + SUFFIX


def _decoded(call: Call, name: str) -> str:
    """What a mirrored header says, taken out of its sentinel."""
    from mcp_wiretap.wire.headers import decode

    return decode(call.header(name) or "").text or ""


# The mirrored headers


@probe("H00", "the call unchanged", era="modern", right=[as_before(), asked()], rule="HTS012", http=False)
def unchanged(call: Call) -> None:
    """What worked in the recording works at this server; without that nothing else can be told."""


@probe("H01", "no MCP-Protocol-Version", era="modern", right=MISMATCH, rule="HTS011", dual=True)
def no_version(call: Call) -> None:
    """The header is required; a server that also speaks older revisions may take the request for one of those."""
    call.drop("MCP-Protocol-Version")


@probe("H02", "no Mcp-Method", era="modern", right=MISMATCH, rule="HTS011")
def no_method(call: Call) -> None:
    """A gateway routes by Mcp-Method: a server refuses a request without it."""
    call.drop("Mcp-Method")


@probe("H03", "no Mcp-Name", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def no_name(call: Call) -> None:
    """A request whose body names a tool, prompt or resource has Mcp-Name."""
    call.drop("Mcp-Name")


@probe("H04", "Mcp-Method of another method", era="modern", right=MISMATCH, rule="HTS011")
def other_method(call: Call) -> None:
    """The header and the body name the same method."""
    call.put("Mcp-Method", "prompts/list" if call.body["method"] != "prompts/list" else "tools/list")


@probe("H05", "Mcp-Method in capitals", era="modern", right=MISMATCH, rule="HTS011")
def method_in_capitals(call: Call) -> None:
    """Values are case-sensitive."""
    call.put("Mcp-Method", call.body["method"].upper())


@probe("H06", "header names in capitals", era="modern", right=[as_before(), asked()], rule="HTS012")
def names_in_capitals(call: Call) -> None:
    """Names of header fields are case-insensitive."""
    call.headers = [(name.upper(), value) for name, value in call.headers]


@probe("H07", "Mcp-Name names something else", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def other_name(call: Call) -> None:
    """The header and the body name the same thing."""
    call.put("Mcp-Name", NO_SUCH)


@probe("H08", "Mcp-Name right, in a sentinel", era="modern", right=[as_before(), asked()], rule="HTS012", needs=["named"])
def name_in_sentinel(call: Call) -> None:
    """A client may encode any value; the server decodes before it compares."""
    call.put("Mcp-Name", _sentinel(_decoded(call, "Mcp-Name")))


@probe("H09", "Mcp-Name wrong, in a sentinel", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def wrong_in_sentinel(call: Call) -> None:
    """A sentinel is decoded and compared, not let pass."""
    call.put("Mcp-Name", _sentinel(NO_SUCH))


@probe("H10", "Mcp-Name in a sentinel that is no Base64", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def broken_sentinel(call: Call) -> None:
    """A sentinel that cannot be decoded is a mismatch."""
    call.put("Mcp-Name", f"{PREFIX}%%%{SUFFIX}")


@probe("H11", "Mcp-Name in a sentinel that is not UTF-8", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def sentinel_not_utf8(call: Call) -> None:
    """What a sentinel holds is UTF-8."""
    call.put("Mcp-Name", f"{PREFIX}/w=={SUFFIX}")


@probe("H12", "Mcp-Name with a sentinel marker in capitals", era="modern", right=MISMATCH, rule="HTS011", needs=["named"])
def sentinel_in_capitals(call: Call) -> None:
    """The marker is in lower case; anything else is a literal, and so another name."""
    call.put("Mcp-Name", _sentinel(_decoded(call, "Mcp-Name")).replace(PREFIX, PREFIX.upper(), 1))


@probe("H13", "Mcp-Method twice, different", era="modern", right=[refused(None, *REFUSALS), no_message(*REFUSALS)], rule="HTS011")
def method_twice(call: Call) -> None:
    """Two values cannot both be the body's."""
    call.add("Mcp-Method", "prompts/list" if call.body["method"] != "prompts/list" else "tools/list")


@probe("H14", "Mcp-Method twice, the same", era="modern", right=[as_before(), asked(), *MISMATCH], rule="HDR010", open=True)
def method_twice_alike(call: Call) -> None:
    """A client must not send it; what a server does is its own choice."""
    call.add("Mcp-Method", call.body["method"])


# Versions and the envelope


@probe("V01", "header and envelope name different versions", era="modern", right=MISMATCH, rule="HTS011")
def two_versions(call: Call) -> None:
    """MCP-Protocol-Version mirrors the envelope."""
    call.put("MCP-Protocol-Version", "2025-11-25")


@probe("V02", "a version that nobody knows", era="modern", right=[refused(-32022, 400, with_data=["supported"])], rule="HTS026")
def unknown_version(call: Call) -> None:
    """An unsupported version is refused with those that are supported, so that a client can choose."""
    call.meta[PROTOCOL_VERSION] = UNKNOWN_VERSION
    if call.header("MCP-Protocol-Version") is not None:
        call.put("MCP-Protocol-Version", UNKNOWN_VERSION)


@probe(
    "V03", "no protocolVersion in the envelope", era="modern", right=[refused(-32602, 400), *MISMATCH], rule="HTS004", http=False
)
def no_version_in_envelope(call: Call) -> None:
    """The envelope's version is required."""
    call.meta.pop(PROTOCOL_VERSION, None)


@probe("V04", "no clientCapabilities in the envelope", era="modern", right=[refused(-32602, 400)], rule="HTS004", http=False)
def no_capabilities(call: Call) -> None:
    """The client's capabilities are required, if only as an empty object."""
    call.meta.pop(CLIENT_CAPABILITIES, None)


@probe("V05", "no clientInfo", era="modern", right=[as_before(), asked()], rule="HTS012", http=False)
def no_client_info(call: Call) -> None:
    """Who the client is may be left out."""
    call.meta.pop(CLIENT_INFO, None)


@probe("V06", "no envelope", era="modern", right=[refused(-32602, 400), *MISMATCH], rule="HTS004", dual=True)
def no_envelope(call: Call) -> None:
    """A request under the modern header has its envelope; a server that also speaks older revisions may answer otherwise."""
    call.params.pop("_meta", None)


# Mirrored arguments


@probe("P01", "mirrored argument, header missing", era="modern", right=MISMATCH, rule="HTS011", needs=["param"])
def no_param(call: Call) -> None:
    """An argument that the tool declares with x-mcp-header stands in the header, too."""
    call.drop(next(iter(call.mirrored)))


@probe("P02", "mirrored header with another value", era="modern", right=MISMATCH, rule="HTS011", needs=["param"])
def other_param(call: Call) -> None:
    """The header and the argument have the same value."""
    name = next(iter(call.mirrored))
    value = call.mirrored[name]
    call.put(
        name,
        f"{value}1"
        if value.lstrip("-").isdigit()
        else NO_SUCH
        if value not in ("true", "false")
        else str(value == "false").lower(),
    )


@probe("P03", "mirrored header right, in a sentinel", era="modern", right=[as_before(), asked()], rule="HTS012", needs=["param"])
def param_in_sentinel(call: Call) -> None:
    """A client may encode any value."""
    name = next(iter(call.mirrored))
    call.put(name, _sentinel(_decoded(call, name)))


@probe(
    "P04", "an Mcp-Param header that no tool declares", era="modern", right=[as_before(), asked()], rule="HTS012", needs=["named"]
)
def undeclared_param(call: Call) -> None:
    """A server ignores what it does not know."""
    call.put("Mcp-Param-Of-Mcp-Wiretap", "1")


# JSON-RPC


@probe(
    "B01",
    "a body that is no JSON",
    era="modern",
    right=[refused(-32700, 400), no_message(400)],
    level="must",
    spec=f"{HTTP}#receiving-messages",
)
def no_json(call: Call) -> None:
    """What cannot be read is refused, and the server goes on."""
    call.raw = b'{"jsonrpc": "2.0", '


@probe("B02", "jsonrpc 1.0", era="modern", right=NOT_VALID, level="must", spec="2026-07-28 basic/index#error-responses")
def jsonrpc_1(call: Call) -> None:
    """Messages are JSON-RPC 2.0."""
    call.body["jsonrpc"] = "1.0"


@probe("B03", "a batch", era="modern", right=NOT_VALID, level="must", spec=f"{HTTP}#sending-messages")
def batch(call: Call) -> None:
    """A POST holds one message."""
    call.body = [call.body]


@probe("B04", "id null", era="modern", right=NOT_VALID, level="must", spec="2026-07-28 basic/index#requests")
def null_id(call: Call) -> None:
    """The id of a request is a string or a number."""
    call.body["id"] = None


@probe(
    "B05",
    "a response, posted by the client",
    era="modern",
    right=[status(*REFUSALS)],
    level="should",
    spec=f"{HTTP}#sending-messages",
)
def posted_response(call: Call) -> None:
    """Servers ask nothing of clients by requests, so there is nothing to answer."""
    call.body = {"jsonrpc": "2.0", "id": 1, "result": {}}


# Methods


@probe("M01", "a method that nobody knows", era="modern", right=[refused(-32601, 404)], rule="HTS005", http=False)
def unknown_method(call: Call) -> None:
    """An unknown method is 404 with -32601."""
    call.method("mcp-wiretap/there-is-no-such-method")


@probe("M02", "ping, which is gone", era="modern", right=[refused(-32601, 404)], rule="HTS006", http=False)
def ping(call: Call) -> None:
    """Methods of the older revisions are unknown in this one."""
    call.method("ping")


@probe(
    "M03",
    "initialize in an envelope",
    era="modern",
    right=[refused(-32601, 404), refused(-32022, *REFUSALS)],
    rule="HTS006",
    level="should",
)
def initialize(call: Call) -> None:
    """There is no handshake any more."""
    call.method("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "mcp-wiretap", "version": "0"})


@probe("M04", "server/discover", era="modern", right=[as_before()], rule="ERA024", http=False)
def discover(call: Call) -> None:
    """Every server answers server/discover."""
    call.method("server/discover")


@probe(
    "M05",
    "server/discover in an unknown version",
    era="modern",
    right=[refused(-32022, 400, with_data=["supported"])],
    rule="HTS003",
    http=False,
)
def discover_unknown(call: Call) -> None:
    """It is how a client learns which version to speak."""
    call.method("server/discover")
    unknown_version(call)


# Tools, lists, resources


@probe(
    "T01",
    "a tool that does not exist",
    era="modern",
    right=[refused(-32602, 200, 400)],
    rule="TOO013",
    needs=["tools"],
    http=False,
)
def unknown_tool(call: Call) -> None:
    """An unknown tool is a protocol error, not a result that a model reads."""
    call.method("tools/call", name=NO_SUCH, arguments={})
    if call.header("Mcp-Method") is not None:
        call.put("Mcp-Name", NO_SUCH)


@probe(
    "T02",
    "arguments that are a list",
    era="modern",
    right=[refused(-32602), refused(-32600), tool_error()],
    level="should",
    spec="2026-07-28 server/tools#error-handling",
    needs=["call"],
    http=False,
)
def arguments_as_list(call: Call) -> None:
    """Arguments are an object."""
    call.params["arguments"] = ["a", "list"]
    for name in call.mirrored:
        call.drop(name)


@probe("T03", "a cursor that nobody gave", era="modern", right=[refused(-32602)], rule="CAC011", needs=["listed"], http=False)
def bad_cursor(call: Call) -> None:
    """A cursor that is not the server's own is refused."""
    call.params["cursor"] = NO_SUCH


@probe(
    "T04", "a resource that does not exist", era="modern", right=[refused(-32602)], rule="RSC002", needs=["resources"], http=False
)
def unknown_resource(call: Call) -> None:
    """An unknown resource is -32602 with its URI, not an empty result."""
    call.method("resources/read", uri=f"file:///{NO_SUCH}")
    if call.header("Mcp-Method") is not None:
        call.put("Mcp-Name", f"file:///{NO_SUCH}")


# The endpoint


@probe("E01", "GET", era="modern", right=[status(405)], rule="HTS008", dual=True)
def get(call: Call) -> None:
    """There is no GET stream any more."""
    call.http_method, call.body, call.raw = "GET", None, b""
    call.put("Accept", "text/event-stream")


@probe("E02", "DELETE", era="modern", right=[status(405)], rule="HTS008", dual=True)
def delete(call: Call) -> None:
    """There is no session to end."""
    call.http_method, call.body, call.raw = "DELETE", None, b""


@probe("E03", "an Mcp-Session-Id", era="modern", right=[as_before(), asked()], rule="HTS012", level="should")
def session_id(call: Call) -> None:
    """A server ignores it."""
    call.put("Mcp-Session-Id", NO_SUCH)


@probe("E04", "a Last-Event-ID", era="modern", right=[as_before(), asked()], rule="HTS012", level="should")
def last_event_id(call: Call) -> None:
    """Streams are not resumed; the header is ignored."""
    call.put("Last-Event-ID", "7")


@probe(
    "E05",
    "Content-Type text/plain",
    era="modern",
    right=[status(*REFUSALS)],
    level="may-note",
    spec=f"{HTTP}#sending-messages",
    open=True,
)
def other_type(call: Call) -> None:
    """A client sends application/json; what a server does with another type is its own choice."""
    call.put("Content-Type", "text/plain")


@probe("S01", "a foreign Origin", era="modern", right=[status(403)], rule="HTS009")
def foreign_origin(call: Call) -> None:
    """A page of another site must not reach the server through a browser (DNS rebinding)."""
    call.put("Origin", "http://mcp-wiretap.invalid")


@probe("S02", "a foreign Host", era="modern", right=[status(*REFUSALS)], rule="SEC010", open=True)
def foreign_host(call: Call) -> None:
    """A server on the loopback interface refuses names that are not its own."""
    call.host = "mcp-wiretap.invalid"


@probe("S03", "no Authorization", era="modern", right=[status(401, challenged=True)], rule="OAU001", needs=["authorized"])
def no_authorization(call: Call) -> None:
    """A request without its token is challenged, with the place of the resource's metadata."""
    call.drop("Authorization")


@probe(
    "A01",
    "Accept without text/event-stream",
    era="modern",
    right=[as_before(), asked(), status(400, 406)],
    rule="HDR016",
    open=True,
)
def accept_json(call: Call) -> None:
    """A client lists both; what a server does otherwise is its own choice."""
    call.put("Accept", "application/json")


# Rounds


@probe(
    "R01",
    "requestState tampered with",
    era="modern",
    right=[refused(None), asked(), tool_error()],
    level="must",
    spec="2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow",
    needs=["retry"],
    http=False,
)
def tampered_state(call: Call) -> None:
    """State that comes back changed is not trusted: any error, or the question again."""
    state = str(call.params.get("requestState", ""))
    middle = len(state) // 2
    call.params["requestState"] = state[:middle] + ("A" if state[middle : middle + 1] != "A" else "B") + state[middle + 1 :]


@probe(
    "R02",
    "the retry sent a second time",
    era="modern",
    right=[refused(None), as_before(), asked(), tool_error()],
    rule="SEC004",
    needs=["retry"],
    http=False,
    open=True,
)
def second_retry(call: Call) -> None:
    """State that was used up may be refused; a server decides."""
    call.twice = True


@probe(
    "R03",
    "answers to questions that were not asked",
    era="modern",
    right=[as_before(), asked()],
    rule="HTS012",
    level="should",
    needs=["retry"],
    http=False,
)
def unasked_answers(call: Call) -> None:
    """Keys that were not asked are ignored, beside those that were."""
    call.params.setdefault("inputResponses", {})[NO_SUCH] = {"action": "decline"}


@probe(
    "C01",
    "no capabilities, for a call that asks",
    era="modern",
    right=[refused(-32021, 400, with_data=["requiredCapabilities"]), as_before(), tool_error()],
    rule="HTS018",
    needs=["asked"],
    http=False,
)
def no_capability(call: Call) -> None:
    """A server asks only for what the client declared: it refuses, or does without."""
    call.meta[CLIENT_CAPABILITIES] = {}
