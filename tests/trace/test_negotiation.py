"""Who probed, what came of it, what followed, and the story that is told of it."""

from dataclasses import replace

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.era.negotiation import NEGOTIATION, STORY, UNTOLD, Step
from mcp_wiretap.trace.events import RequestSeen
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange
from tests.trace.following import INITIALIZED, SESSION, follow

PROBE = "modern server/discover\n"
REFUSED = PROBE + "  -> status 400\n  -> error -32600\n"
OFFER = '  -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}\n'
UNSUPPORTED = '  -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}\n'


def links(inspector: Inspector) -> list[tuple[str, str, str]]:
    return [(k.earlier, k.later, k.confidence) for c in inspector.conversations for k in c.links if k.by == "negotiation"]


def story(exchange: Exchange) -> list[tuple[str, str, str]]:
    steps: list[Step] = exchange.endpoint.facts[STORY]
    return [(step.role, step.verdict, step.result) for step in steps]


def test_a_probe_and_its_fallback_are_a_conversation() -> None:
    inspector, [probe, _] = follow(REFUSED + SESSION)
    assert links(inspector) == [("flow-1", "flow-2", "exact")]
    [conversation] = inspector.conversations
    assert (conversation.method, conversation.status, conversation.over) == ("server/discover", "complete", True)
    assert story(probe) == [("probe", "refused", "HTTP 400, -32600"), ("fallback", "legacy", "agreed on 2025-11-25")]


def test_any_modern_request_may_be_the_probe() -> None:
    inspector, _ = follow("modern tools/list\n  -> status 400\n  -> error -32600\n" + SESSION)
    assert links(inspector) == [("flow-1", "flow-2", "exact")]


def test_a_silent_server_is_fallen_back_from_as_well() -> None:
    inspector, [probe, _] = follow(PROBE + "  -> closed client\n" + SESSION)
    assert links(inspector) == [("flow-1", "flow-2", "exact")]
    assert story(probe)[0] == ("probe", "no answer", "no answer")


def test_a_probe_that_succeeds_is_told_and_is_no_conversation() -> None:
    inspector, [probe, _] = follow(PROBE + OFFER + "modern tools/list\n  -> result {}\n")
    assert story(probe) == [("probe", "modern", "offers 2026-07-28")]
    assert list(inspector.conversations) == []


def test_discover_at_a_later_time_is_an_ordinary_request() -> None:
    _, [_, discover] = follow("modern tools/list\n  -> result {}\n" + PROBE + OFFER)
    assert story(discover) == [("opening", "modern", "served")]


def test_a_retry_with_an_offered_version_is_linked() -> None:
    script = PROBE + "  version 2027-01-01\n" + UNSUPPORTED + PROBE + OFFER
    inspector, [_, retry] = follow(script)
    assert links(inspector) == [("flow-1", "flow-2", "exact")]
    assert story(retry)[1] == ("retry", "modern", "offers 2026-07-28")


def test_a_version_refused_in_the_middle_of_the_modern_era_is_linked_to_its_retry() -> None:
    script = PROBE + OFFER + "modern tools/list\n  version 2027-01-01\n" + UNSUPPORTED
    inspector, _ = follow(script + "modern tools/list\n  -> result {}\n")
    assert links(inspector) == [("flow-2", "flow-3", "exact")]
    inspector, _ = follow(script + "modern prompts/list\n  -> result {}\n")
    assert links(inspector) == []


def test_the_detour_for_a_token_keeps_the_negotiation_open() -> None:
    token = "  header Authorization: Bearer t\n"
    walled = PROBE + "  -> header WWW-Authenticate: Bearer\n  -> 401\n"
    script = walled + PROBE + token + "  after 300\n  -> status 400\n  -> error -32600\n"
    script += f"legacy initialize\n{token}  -> result {INITIALIZED}\n"
    inspector, [probe, *_] = follow(script)
    assert [pair[:2] for pair in links(inspector)] == [("flow-1", "flow-2"), ("flow-2", "flow-3")]
    assert [s[:2] for s in story(probe)] == [("probe", "unauthorized"), ("retry", "refused"), ("fallback", "legacy")]


def test_the_same_request_without_a_token_again_is_another_copy_of_the_program() -> None:
    walled = PROBE + "  -> 401\n"
    inspector, _ = follow(walled + walled)
    assert links(inspector) == []


def test_an_ordinary_call_that_is_repeated_with_a_token_is_no_negotiation() -> None:
    script = "modern tools/list\n  -> 401\nmodern tools/list\n  header Authorization: Bearer t\n  -> result {}\n"
    inspector, _ = follow(script)
    assert list(inspector.conversations) == []


def test_a_client_that_goes_on_to_http_sse_is_followed_there() -> None:
    script = "modern server/discover\n  path /sse\n  -> 405\n"
    script += "GET /sse\n  label stream\n  -> sse\n  -> sse-raw event: endpoint\\ndata: /m?s=1\\n\\n\n  -> open\n"
    script += "legacy initialize\n  id 5\n  path /m?s=1\n  -> 202\n"
    script += 'continue stream\n  -> event {"jsonrpc": "2.0", "id": 5, "result": {"protocolVersion": "2024-11-05"}}\n  -> open\n'
    inspector, [probe, *_] = follow(script)
    assert [s[:2] for s in story(probe)] == [("probe", "refused"), ("http+sse", "http+sse"), ("fallback", "legacy")]
    assert story(probe)[-1][2] == "agreed on 2024-11-05 over HTTP+SSE"
    assert [pair[:2] for pair in links(inspector)] == [("flow-1", "flow-2"), ("flow-2", "flow-3")]
    assert [c.status for c in inspector.conversations] == ["complete"]


def test_calls_that_fail_one_after_the_other_are_no_negotiation() -> None:
    failed = "  -> status 200\n  -> error -32602\n"
    script = 'modern tools/call {"name": "a"}\n' + failed + 'modern tools/call {"name": "b"}\n' + failed + SESSION
    inspector, _ = follow(script)
    assert list(inspector.conversations) == []


def test_a_call_that_was_cancelled_is_not_followed_by_the_next_one() -> None:
    cancelled = 'modern tools/call {"name": "slow"}\n  -> closed client\n'
    inspector, _ = follow(cancelled * 2 + 'modern tools/call {"name": "slow"}\n  -> result {}\n')
    assert list(inspector.conversations) == []


def test_a_probe_of_another_copy_of_the_program_is_not_taken_for_a_step_of_this_one() -> None:
    inspector, [probe, *_] = follow(REFUSED * 2)
    assert links(inspector) == []
    assert [s[0] for s in story(probe)] == ["probe", "probe"]


def test_two_clients_are_not_mixed_up() -> None:
    script = PROBE + "  client a\n  -> status 400\n  -> error -32600\n"
    script += SESSION.replace("\n", "\n  client b\n", 1)
    inspector, [_, other] = follow(script)
    assert links(inspector) == []
    assert [s[:2] for s in story(other)] == [("probe", "refused"), ("opening", "legacy")]


def test_an_initialize_long_after_on_the_same_connection_still_follows() -> None:
    inspector, _ = follow(REFUSED + SESSION.replace("\n", "\n  after 100\n", 1))
    assert links(inspector) == [("flow-1", "flow-2", "exact")]


def test_a_refused_modern_request_is_repaired_not_fallen_back_from() -> None:
    script = PROBE + "  -header Mcp-Method\n  -> error -32020\n" + PROBE + OFFER
    inspector, [_, second] = follow(script)
    assert story(second)[1][:2] == ("retry", "modern")
    assert links(inspector) == [("flow-1", "flow-2", "exact")]


def test_a_modern_request_after_a_refused_handshake_is_a_new_opening() -> None:
    inspector, [_, second] = follow("legacy initialize\n  -> status 400\n  -> error -32602\n" + PROBE + OFFER)
    assert links(inspector) == []
    assert story(second)[1][:2] == ("probe", "modern")


def test_the_notes_say_why_a_fallback_is_allowed_or_not() -> None:
    def notes(script: str) -> list[str]:
        _, [first, *_] = follow(script)
        steps: list[Step] = first.endpoint.facts[STORY]
        return [step.note for step in steps]

    assert notes(REFUSED + SESSION) == ["", "allowed: HTTP 400, -32600 is no recognised modern error"]
    wrong = PROBE + "  -header Mcp-Method\n  -> error -32020\n" + SESSION
    assert notes(wrong)[1] == "HTTP 400, -32020 is a modern server's error, no reason to fall back"
    legacy_only = PROBE + '  -> error -32022 {"data": {"supported": ["2025-11-25"]}}\n' + SESSION
    assert notes(legacy_only)[1] == "allowed: no modern version is left to try"


def test_the_story_of_an_endpoint_is_bounded() -> None:
    inspector, exchanges = follow(SESSION * 60)
    assert len(story(exchanges[0])) == 40
    assert exchanges[0].endpoint.facts[UNTOLD] == 20 and not inspector.dropped


def test_clients_past_the_limit_are_forgotten() -> None:
    script = "".join(REFUSED.replace("\n", f"\n  client c{n}\n", 1) for n in range(5))
    inspector, exchanges = follow(script + SESSION.replace("\n", "\n  client c0\n", 1), Limits(state=3))
    assert links(inspector) == []
    assert exchanges[-1].outcome == "complete"


def repeated(connections: str) -> tuple[int, str] | None:
    """Probe and fallback, and again, each request on the connection named: which time it was, and the fallback before."""
    inspector = Inspector()
    for event in read_script(REFUSED + SESSION + REFUSED + "legacy initialize\n"):
        if isinstance(event, RequestSeen):
            event = replace(event, connection=connections[int(event.flow.removeprefix("flow-")) - 1])
        inspector.feed(event)
    again = inspector.exchanges["flow-4"].facts[NEGOTIATION].repeat
    return None if again is None else (again.count, again.earlier)


def test_a_client_that_opens_a_connection_for_each_request_is_one_client() -> None:
    assert repeated("abcd") == repeated("aaaa") == (2, "flow-2")


def test_another_connection_is_another_run_of_a_program_that_uses_its_connections_again() -> None:
    assert repeated("aabb") is None
