"""What a request claims, what an answer shows, and the era that follows (the decision table of the catalogue)."""

import pytest

from mcp_wiretap.trace.limits import Limits
from tests.trace.following import INITIALIZED, SESSION, follow

CLAIMS = [
    ("an envelope", "modern tools/list", "modern", "2026-07-28"),
    (
        "an envelope, whatever the header says",
        "modern tools/list\n  header MCP-Protocol-Version: 2025-11-25",
        "modern",
        "2026-07-28",
    ),
    (
        "an envelope without any header",
        "modern tools/list\n  -header MCP-Protocol-Version\n  -header Mcp-Method",
        "modern",
        "2026-07-28",
    ),
    ("a later date", "modern tools/list\n  version 2027-01-01", "modern-unknown", "2027-01-01"),
    ("no date", "modern tools/list\n  version latest", "modern-unknown", "latest"),
    ("an unknown earlier date", "modern tools/list\n  version 1999-01-01", "modern-unknown", "1999-01-01"),
    ("a legacy revision in the envelope", "modern tools/list\n  version 2025-06-18", "legacy-envelope", "2025-06-18"),
    ("initialize with an envelope", "modern initialize", "modern", "2026-07-28"),
    ("initialize", "legacy initialize", "legacy", "2025-11-25"),
    ("initialize under modern headers", "legacy initialize\n  header MCP-Protocol-Version: 2026-07-28", "legacy", "2025-11-25"),
    (
        "initialize with a number as version",
        "modern initialize\n  meta io.modelcontextprotocol/protocolVersion 1",
        "modern-malformed",
        "2026-07-28",
    ),
    ("no envelope, modern header", "modern tools/list\n  params {}", "modern-malformed", "2026-07-28"),
    (
        "no envelope, header of a later date",
        "modern tools/list\n  params {}\n  header MCP-Protocol-Version: 2027-01-01",
        "modern-malformed",
        "2027-01-01",
    ),
    (
        "capabilities without version",
        "legacy tools/list\n  meta io.modelcontextprotocol/clientCapabilities {}",
        "modern-malformed",
        None,
    ),
    ("a method of the modern era alone", "legacy server/discover", "modern-malformed", None),
    (
        "a version that is no string",
        "modern tools/list\n  meta io.modelcontextprotocol/protocolVersion null",
        "modern-malformed",
        "2026-07-28",
    ),
    ("a modern notification", "modern-notify notifications/cancelled", "modern", "2026-07-28"),
    (
        "a notification of a later date",
        "modern-notify notifications/cancelled\n  header MCP-Protocol-Version: 2027-01-01",
        "modern-unknown",
        "2027-01-01",
    ),
    (
        "a posted response under a modern header",
        "legacy-reply 1 {}\n  header MCP-Protocol-Version: 2026-07-28",
        "modern",
        "2026-07-28",
    ),
    ("a posted response", "legacy-reply 1 {}", "legacy-transport", None),
    ("a legacy header", "legacy tools/list\n  header MCP-Protocol-Version: 2025-06-18", "legacy", "2025-06-18"),
    ("nothing at all", "legacy tools/list", "legacy", "2025-03-26"),
    ("a header that is no version", "legacy tools/list\n  header MCP-Protocol-Version: x", "legacy", None),
    ("mirrored headers alone", "legacy tools/list\n  header Mcp-Method: tools/list", "legacy", "2025-03-26"),
    ("a session that was opened before", "legacy tools/list\n  session old", "legacy", None),
    (
        "a batch",
        'POST\n  header Content-Type: application/json\n  body [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
        "legacy-transport",
        None,
    ),
    ("GET", "GET /mcp\n  header MCP-Protocol-Version: 2025-06-18", "legacy-transport", "2025-06-18"),
    ("GET under a modern header", "GET /mcp\n  header MCP-Protocol-Version: 2026-07-28", "legacy-transport", None),
    ("DELETE", "DELETE /mcp\n  header Mcp-Session-Id: x", "legacy-transport", None),
    ("GET whose body was not kept", "GET /mcp\n  body-lost\n  header Mcp-Session-Id: x", "legacy-transport", None),
    ("a body that was not kept", "modern tools/list\n  body-lost", "unknown-body", "2026-07-28"),
    ("a body that is not JSON", "modern tools/list\n  body {", "modern", "2026-07-28"),
    (
        "an envelope key in the arguments",
        'legacy tools/call {"name": "x", "arguments": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}',
        "legacy",
        "2025-03-26",
    ),
]


@pytest.mark.parametrize(("script", "kind", "revision"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS])
def test_a_request_is_classified_by_its_own_claim(script: str, kind: str, revision: str | None) -> None:
    _, [exchange] = follow(script)
    assert (exchange.claim.kind, exchange.claim.revision) == (kind, revision), exchange.claim.basis


def test_a_live_session_is_legacy_whatever_the_header_says() -> None:
    _, [_, call] = follow(SESSION + "legacy tools/list\n  header MCP-Protocol-Version: 2026-07-28\n  -> result {}\n")
    assert (call.claim.kind, call.revision, call.era) == ("legacy", "2025-11-25", "legacy")


def test_an_envelope_inside_a_session_is_modern_all_the_same() -> None:
    _, [_, call] = follow(SESSION + "modern tools/list\n  session session-1-of-the-example\n")
    assert call.claim.kind == "modern"


def test_an_ended_session_decides_nothing_any_more() -> None:
    script = SESSION + "DELETE /mcp\n  header Mcp-Session-Id: session-1-of-the-example\n  -> 200\n"
    script += "legacy tools/list\n  header MCP-Protocol-Version: 2026-07-28\n"
    _, exchanges = follow(script)
    assert exchanges[2].claim.kind == "modern-malformed"


def test_a_session_that_the_server_never_accepted_decides_nothing() -> None:
    script = "legacy tools/list\n  session bogus\n  -> 404\n"
    script += "legacy tools/list\n  session bogus\n  header MCP-Protocol-Version: 2026-07-28\n"
    _, [refused, second] = follow(script)
    assert refused.era == "unknown"
    assert second.claim.kind == "modern-malformed"


def test_a_session_opened_before_the_capture_is_legacy_once_it_is_served() -> None:
    script = "legacy tools/list\n  session old\n  header MCP-Protocol-Version: 2025-06-18\n  -> result {}\n"
    script += "legacy tools/list\n  session old\n  header MCP-Protocol-Version: 2026-07-28\n  -> result {}\n"
    _, [_, second] = follow(script)
    assert (second.claim.kind, second.revision) == ("legacy", "2025-06-18")


def test_a_body_past_the_limit_makes_no_claim() -> None:
    _, [exchange] = follow("modern tools/list", Limits(body=10))
    assert exchange.claim.kind == "unknown-body"
    assert exchange.unchecked[0].what == "request body"


ANSWERS = [
    ("a result with resultType", "modern tools/list\n  -> result {}", "modern", "modern"),
    ("a result without resultType", "modern tools/list\n  -> raw-result {}", "unknown", "legacy"),
    (
        "a list of versions from discover",
        'modern server/discover\n  -> raw-result {"supportedVersions": ["2026-07-28"]}',
        "modern",
        "modern",
    ),
    ("-32020", "modern tools/list\n  -> error -32020", "modern", "modern"),
    ("-32021 at another status", "modern tools/list\n  -> status 200\n  -> error -32021", "modern", "modern"),
    ("-32022 inside a stream", "modern tools/list\n  -> sse\n  -> error -32022", "modern", "modern"),
    ("-32022 to an unknown version", "modern tools/list\n  version latest\n  -> error -32022", "modern", "modern"),
    ("404 with -32601", "modern tools/list\n  -> error -32601", "modern", "modern"),
    ("404 with -32601 to discover", "modern server/discover\n  -> error -32601", "unknown", "unknown"),
    ("400 with -32601", "modern tools/list\n  -> status 400\n  -> error -32601", "unknown", "unknown"),
    ("400 with -32602", "modern tools/list\n  -> status 400\n  -> error -32602", "unknown", "unknown"),
    ("400 with -32600", "modern tools/list\n  -> status 400\n  -> error -32600", "unknown", "unknown"),
    ("404 with HTML", "modern tools/list\n  -> 404 text/html <p>no</p>", "unknown", "unknown"),
    ("401", "modern tools/list\n  -> 401", "unknown", "unknown"),
    ("401 with -32603", "modern tools/list\n  -> status 401\n  -> error -32603", "unknown", "unknown"),
    ("500", "modern tools/list\n  -> 500", "unknown", "unknown"),
    ("no answer", "modern tools/list\n  -> closed client", "unknown", "unknown"),
    ("initialize accepted", f"legacy initialize\n  -> result {INITIALIZED}", "legacy", "legacy"),
    ("initialize refused", "legacy initialize\n  -> status 400\n  -> error -32602", "unknown", "unknown"),
    ("initialize refused with 400 and -32022", "legacy initialize\n  -> status 400\n  -> error -32022", "modern", "unknown"),
    ("initialize accepted with 202", "legacy initialize\n  -> 202", "legacy", "legacy"),
    ("a posted answer accepted", "legacy-reply 1 {}\n  -> 202", "unknown", "legacy"),
    ("a legacy request served", "legacy tools/list\n  -> result {}", "legacy", "legacy"),
    (
        "resultType to a legacy request proves nothing",
        'legacy tools/list\n  -> raw-result {"resultType": "complete"}',
        "legacy",
        "legacy",
    ),
    ("a legacy revision in the envelope", "modern tools/list\n  version 2025-11-25\n  -> raw-result {}", "unknown", "unknown"),
    ("GET refused with 405", "GET /mcp\n  header Mcp-Session-Id: x\n  -> 405", "unknown", "unknown"),
    ("GET answered with a stream", "GET /mcp\n  header Mcp-Session-Id: x\n  -> sse\n  -> open", "legacy", "legacy"),
    ("HTTP+SSE", "GET /sse\n  -> sse\n  -> sse-raw event: endpoint\\ndata: /messages\\n\\n\n  -> open", "legacy", "legacy"),
]


@pytest.mark.parametrize(("script", "endpoint", "era"), [c[1:] for c in ANSWERS], ids=[c[0] for c in ANSWERS])
def test_the_answer_decides_the_era_of_endpoint_and_exchange(script: str, endpoint: str, era: str) -> None:
    _, [exchange] = follow(script)
    assert (exchange.endpoint.era, exchange.era) == (endpoint, era)


def test_a_probe_becomes_legacy_when_the_fallback_succeeds() -> None:
    script = "modern server/discover\n  -> status 400\n  -> error -32600\n"
    _, [probe] = follow(script)
    assert probe.era == "unknown"
    _, [probe, _] = follow(script + SESSION)
    assert probe.era == "legacy"


def test_evidence_of_the_modern_era_reaches_exchanges_before_it_even_where_legacy_evidence_came_first() -> None:
    script = "modern tools/list\n  -> 503\n" + SESSION + "modern prompts/list\n  -> result {}\n"
    inspector, [first, handshake, last] = follow(script)
    assert (first.era, handshake.era, last.era) == ("modern", "legacy", "modern")
    assert first.endpoint.era == "dual"
    assert len(inspector.held) == 0
    assert first.released and last.released


def test_two_paths_of_a_host_are_two_servers() -> None:
    script = "modern tools/list\n  path /a\n  -> result {}\nmodern tools/list\n  path /b\n  -> status 400\n  -> error -32600\n"
    _, [one, other] = follow(script)
    assert (one.era, other.era) == ("modern", "unknown")


def test_the_revisions_of_an_endpoint_are_those_that_it_served() -> None:
    script = "modern server/discover\n  -> status 400\n  -> error -32600\n" + SESSION
    _, exchanges = follow(script)
    assert list(exchanges[0].endpoint.revisions) == ["2025-11-25"]
    script = SESSION + "modern tools/list\n  -> result {}\nmodern tools/list\n  version 2027-01-01\n  -> error -32022\n"
    _, exchanges = follow(script)
    assert list(exchanges[0].endpoint.revisions) == ["2025-11-25", "2026-07-28"]
