"""Two scripts compared: tools, calls with other outcomes, findings that came and went, latencies beyond noise."""

from mcp_wiretap.compare.difference import Difference, compare
from mcp_wiretap.compare.hop import Hops, pair
from mcp_wiretap.compare.profile import Profile
from mcp_wiretap.compare.render import as_json, as_text, hop_as_text
from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge

LIST = 'modern tools/list\n  -> tool echo {"text": {"type": "string"}}\n'


def _followed[W: Judge](script: str, watcher: W) -> W:
    inspector = Inspector(watcher)
    for event in read_script(script):
        inspector.feed(event)
    inspector.finish()
    return watcher


def _profile(script: str) -> Profile:
    profile = _followed(script, Profile(RuleBook.of()))
    profile.close()
    return profile


def _compared(before: str, after: str) -> Difference:
    return compare(_profile(before), _profile(after))


def _call(text: str, answer: str) -> str:
    return f'modern tools/call {{"name": "echo", "arguments": {{"text": "{text}"}}}}\n  -> {answer}\n'


DONE = 'result {"content": []}'


def test_a_recording_is_the_same_as_itself() -> None:
    script = LIST + _call("a", DONE)
    found = _compared(script, script)
    assert not found.any and not found.breaking
    assert as_text(found)[0] == "The same tools, outcomes and findings."


def test_another_era_is_a_difference_and_what_one_recording_lacks_is_not_called_the_same() -> None:
    opening = """legacy initialize
  -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
"""
    found = _compared(LIST + _call("a", DONE) + opening, LIST + _call("a", DONE))
    assert found.any and not found.breaking
    assert as_text(found)[0] == "Era of /mcp: was dual, is modern"
    assert as_json(found, "a", "b")["eras"] == [{"path": "/mcp", "before": "dual", "after": "modern"}]
    found = _compared(LIST + _call("a", DONE) + _call("b", DONE), LIST + _call("a", DONE))
    assert as_text(found)[:2] == [
        "The same tools, outcomes and findings in what both recordings have.",
        "Only in the first: 1 call",
    ]


def test_a_tool_that_is_gone_breaks() -> None:
    found = _compared(LIST, 'modern tools/list\n  -> result {"tools": []}\n')
    assert [(t.name, t.kind, t.breaking) for t in found.tools] == [("echo", "removed", True)]


def test_tools_are_not_compared_where_one_side_never_listed_them() -> None:
    found = _compared(LIST, _call("a", DONE))
    assert found.tools == [] and "no tools/list answer in the second recording" in found.notes[0]


def test_a_call_that_fails_now_is_told_with_both_outcomes() -> None:
    found = _compared(LIST + _call("a", DONE), LIST + _call("a", 'error -32603 {"message": "no"}'))
    (change,) = found.calls
    assert (change.before[0].words, change.after[0].words) == ("complete", "error -32603") and found.breaking


def test_arguments_are_compared_as_json_values() -> None:
    other = 'modern tools/call {"arguments": {"text": "a"}, "name": "echo"}\n  id 77\n  -> result {"content": []}\n'
    found = _compared(LIST + _call("a", DONE), LIST + other)
    assert found.only_before == [] and found.only_after == []


def test_a_tools_own_error_is_another_outcome() -> None:
    found = _compared(LIST + _call("a", DONE), LIST + _call("a", 'result {"content": [], "isError": true}'))
    assert found.calls[0].after[0].words == "tool error"


def test_a_finding_that_came_is_told_with_its_flow() -> None:
    wrong = LIST + 'modern tools/call {"name": "echo", "arguments": {"text": "a"}}\n  header Mcp-Name: x\n  -> error -32020\n'
    found = _compared(LIST + _call("a", DONE), wrong)
    assert ("HDR006", 0, 1) in [(f.rule, f.before, f.after) for f in found.findings] and found.breaking


def test_a_latency_is_told_only_beyond_noise() -> None:
    def calls(wait: float) -> str:
        return LIST + "".join(_call(f"n{i}", f"after {wait}\n  -> {DONE}") for i in range(8))

    assert _compared(calls(0.01), calls(0.011)).latencies == []
    (shift,) = _compared(calls(0.01), calls(0.5)).latencies
    assert shift.about == "tools/call echo" and shift.after_ms > 400


def test_as_json_names_what_changed() -> None:
    found = _compared(LIST, 'modern tools/list\n  -> tool echo {"text": {"type": "integer"}}\n')
    data = as_json(found, "a.flow", "b.flow")
    assert data["breaking"] is True
    assert data["tools"][0]["changes"][0]["where"] == "/inputSchema/properties/text/type"


def test_a_gateway_that_drops_a_header_and_numbers_anew() -> None:
    outer = _followed(LIST + _call("a", DONE), Hops(RuleBook.of([])))
    call = 'modern tools/call {"name": "echo", "arguments": {"text": "a"}}'
    inside = f'{LIST}{call}\n  -header Mcp-Name\n  id 900\n  -> result {{"content": []}}\n'
    crossing = pair(outer, _followed(inside, Hops(RuleBook.of([]))))
    assert [one.changes for one in crossing.pairs] == [[], ["request header mcp-name: taken out (was echo)"]]


def test_what_only_one_side_saw_is_listed() -> None:
    crossing = pair(_followed(LIST + _call("a", DONE), Hops(RuleBook.of([]))), _followed(LIST, Hops(RuleBook.of([]))))
    assert [side.key.name for side in crossing.only_outer] == ["echo"]
    assert any("Seen at the client only: 1" in line for line in hop_as_text(crossing))


def _hops(script: str) -> Hops:
    return _followed(script, Hops(RuleBook.of(find_rules(), select=["HDR", "LEG"])))


def _lists(*names: str) -> str:
    return "modern tools/list\n" + "".join(f'  -> tool {name} {{"{name[-1]}": {{"type": "string"}}}}\n' for name in names)


def _named(name: str, text: str = "a") -> str:
    return f'modern tools/call {{"name": "{name}", "arguments": {{"text": "{text}"}}}}\n'


ANSWER = '  -> result {"content": []}\n'


def test_a_tool_that_the_gateway_renames_is_paired_and_the_header_that_it_left_is_told() -> None:
    outer = _hops(_lists("calc__echo") + _named("calc__echo") + ANSWER)
    inner = _hops(_lists("echo") + _named("echo") + "  header Mcp-Name: calc__echo\n" + ANSWER)
    crossing = pair(outer, inner)
    assert not crossing.only_outer and not crossing.only_inner
    changes = crossing.pairs[1].changes
    assert 'request body /params/name: "calc__echo" became "echo"' in changes
    assert "request header mcp-name: unchanged, calc__echo, contradicts the body now" in changes
    assert "inside only: HDR006 Mcp-Name says calc__echo, the body says echo" in changes


def test_without_lists_a_renamed_call_is_paired_only_where_one_fits() -> None:
    one = pair(_hops(_named("x__echo") + ANSWER), _hops(_named("echo") + ANSWER))
    assert len(one.pairs) == 1 and one.pairs[0].by == "arguments, time and outcome"
    two = pair(_hops(_named("x__echo") + ANSWER + _named("x__say") + ANSWER), _hops(_named("echo") + ANSWER))
    assert not two.pairs and len(two.only_outer) == 2 and len(two.only_inner) == 1
    other = pair(_hops(_named("x__echo") + ANSWER), _hops(_named("echo") + "  -> error -32602\n"))
    assert not other.pairs
    known = pair(_hops(_lists("x__a", "x__b") + _named("x__a") + ANSWER), _hops(_lists("a", "b") + _named("b") + ANSWER))
    assert len(known.pairs) == 1  # the lists contradict it


def test_events_that_the_gateway_held_back_are_told_with_the_time() -> None:
    events = "".join("  -> after 1\n  -> notify notifications/message {}\n" for _ in range(3))
    held = "  -> after 3\n" + "  -> notify notifications/message {}\n" * 3
    (one,) = pair(_hops(_named("a") + f"  -> sse\n{held}{ANSWER}"), _hops(_named("a") + f"  -> sse\n{events}{ANSWER}")).pairs
    assert "events: delayed by up to 2.0 s, passed on in one burst" in one.changes
    (same,) = pair(_hops(_named("a") + f"  -> sse\n{events}{ANSWER}"), _hops(_named("a") + f"  -> sse\n{events}{ANSWER}")).pairs
    assert same.changes == []
    (late,) = pair(_hops(_named("a") + "  -> after 4\n" + ANSWER), _hops(_named("a") + ANSWER)).pairs
    assert any(change.startswith("first byte: at the client after 4.0 s") for change in late.changes)
