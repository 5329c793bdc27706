"""The commands mcp.*."""

import json
import re

import pytest
from mitmproxy import exceptions
from mitmproxy.addons.view import View

from mcp_wiretap.proxy.commands import KEYS, Commands
from tests.proxy import flows


@pytest.fixture
def addon():
    with flows.proxy(mcp_select=["HDR"]) as addon:
        addon.view = View()
        addon.context.master.addons.add(addon.view)
        yield addon


def through(addon, flow, answer=None):
    addon.request(flow)
    flow.response = answer or flows.response(flows.result())
    addon.responseheaders(flow)
    addon.response(flow)
    addon.view.add([flow])
    return flow


def call(addon, name, *arguments):
    return addon.context.master.commands.call_strings(name, list(arguments))


def wrong():
    return flows.live(flows.request(headers={"Mcp-Name": "other"}))


def test_mitmweb_serves_every_command():
    names = [getattr(Commands, name).command_name for name in dir(Commands) if hasattr(getattr(Commands, name), "command_name")]
    assert {"mcp.conversation", "mcp.explain", "mcp.findings", "mcp.report"} <= set(names)
    assert all(re.fullmatch(r"[a-z.]+", name) for name in names)


def test_findings_of_flows_the_worst_first(addon):
    through(addon, flows.live())
    bad = through(addon, wrong())
    (line,) = call(addon, "mcp.findings", "@all")
    assert line.startswith("error   HDR006 client: Mcp-Name says other, the body says echo (request.header:Mcp-Name, flow ")
    assert bad.id[:8] in line


def test_a_flow_without_findings_says_so_and_the_console_has_something_to_show(addon):
    through(addon, flows.live())
    assert call(addon, "mcp.findings", "@all") == ["no findings"]


def test_explain_says_what_a_rule_demands(addon):
    text = call(addon, "mcp.explain", "HDR006")
    assert text.startswith("HDR006 name-header-mismatch") and "Why:" in text and "Spec: 2026-07-28" in text
    assert call(addon, "mcp.explain", "name-header-mismatch") == text
    with pytest.raises(exceptions.CommandError, match="did you mean"):
        call(addon, "mcp.explain", "name-header-mismach")


def test_conversation_filters_the_list_and_the_second_time_shows_all(addon):
    asks = flows.response(flows.result({"resultType": "input_required", "requestState": "s", "inputRequests": {}}))
    first = through(addon, flows.live(), asks)
    request = flows.request(params={"name": "echo", "arguments": {}, "requestState": "s"}, id=2)
    request.timestamp_start, request.timestamp_end = 1001.0, 1001.1
    through(addon, flows.live(request), flows.response(flows.result(id=2)))
    through(addon, flows.live(flows.request(id=3)), flows.response(flows.result(id=3)))
    assert call(addon, "mcp.conversation", "@focus") == first.id
    assert len(addon.view) == 2
    call(addon, "mcp.conversation", "@focus")
    assert len(addon.view) == 3


def test_a_flow_without_conversation_says_so(addon):
    through(addon, flows.live())
    with pytest.raises(exceptions.CommandError, match="no conversation"):
        call(addon, "mcp.conversation", "@focus")


@pytest.mark.parametrize("ending", ["json", "jsonl", "sarif", "xml", "html", "txt"])
def test_a_report_in_each_format(addon, tmp_path, ending):
    through(addon, wrong())
    path = tmp_path / f"report.{ending}"
    said = call(addon, "mcp.report", "@all", str(path))
    assert said == f"{path}: 1 flow: 1 error, 0 warnings"
    assert "HDR006" in path.read_text("utf-8")


def test_the_report_finds_what_the_live_trace_found(addon, tmp_path):
    some = [through(addon, wrong()), through(addon, flows.live())]
    call(addon, "mcp.report", "@all", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert {(f["flow"], f["rule"]) for f in report["findings"]} == {
        (flow.id, rule) for flow in some for rule in flow.metadata.get("mcp.rules", "").split()
    }


def test_a_report_that_cannot_be_written_says_why(addon, tmp_path):
    through(addon, flows.live())
    for name in ("report", "report.pdf"):
        with pytest.raises(exceptions.CommandError, match="must end in"):
            call(addon, "mcp.report", "@all", str(tmp_path / name))
    with pytest.raises(exceptions.CommandError, match=r"mcp\.report"):
        call(addon, "mcp.report", "@all", str(tmp_path / "no" / "report.json"))


def test_keys_are_bound_where_there_is_a_console_and_only_where_they_are_free(addon):
    from mitmproxy.tools.console.keymap import Keymap

    addon.running()  # no console: nothing happens
    addon.context.master.keymap = keymap = Keymap(addon.context.master)
    keymap.add("J", "view.focus.go 0", ["flowlist"], "mine")
    addon.running()
    assert keymap.get("flowlist", "Y").command == "mcp.findings @focus"
    assert keymap.get("flowlist", "J").command == "view.focus.go 0"
    assert not addon.faults.count


def test_no_key_of_mitmproxys_own_is_taken():
    from mitmproxy.tools.console import defaultkeys
    from mitmproxy.tools.console.keymap import Keymap

    keymap = Keymap(None)
    defaultkeys.map(keymap)
    for key, _, contexts, _ in KEYS:
        assert not any(keymap.get(context, key) for context in (*contexts, "global"))
