"""Options: what they mean, and that a value that means nothing is refused in words."""

import os

import pytest
from mitmproxy import exceptions
from mitmproxy.addonmanager import Loader
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.test import taddons

from mcp_wiretap.proxy import options
from mcp_wiretap.proxy.wiretap import Wiretap
from tests.proxy import flows


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("mcp_era", ["mcp.example"], "HOST=ERA"),
        ("mcp_era", ["mcp.example=new"], "no era"),
        ("mcp_era", ["=modern"], "mcp_era"),
        ("mcp_select", ["HDR006,NOPE"], "unknown rule 'NOPE'"),
        ("mcp_ignore", ["HDR0006"], "unknown rule 'HDR0006'"),
        ("mcp_max_body", 0, "mcp_max_body: 0 is not a number above 0"),
        ("mcp_max_stream", -1, "mcp_max_stream"),
        ("mcp_max_state", 0, "mcp_max_state"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(option, value, says):
    with flows.proxy() as addon, pytest.raises(exceptions.OptionsError, match=says):
        addon.context.configure(addon, **{option: value})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mcp_max_body=abc", "not an integer: abc"),
        ("mcp_comment=off", 'boolean must be "true", "false"'),
        ("mcp_max_state", "Option is required: mcp_max_state"),
    ],
)
def test_a_value_of_another_type_at_the_start_is_said_and_leaves_the_addon_in(given, says, caplog):
    with taddons.context() as context:
        context.options.set(given, "mcp_mark=false", defer=True)
        addon = Wiretap()
        context.master.addons.add(addon)
        assert says in caplog.text
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert context.master.addons.get("mcpwiretap") is addon
        assert context.options.mcp_mark is False


def test_a_refused_value_leaves_the_addon_at_work():
    with flows.proxy() as addon:
        with pytest.raises(exceptions.OptionsError):
            addon.context.configure(addon, mcp_max_body=0)
        flow = flows.live()
        addon.request(flow)
        assert flow.comment


def test_select_and_ignore_take_ids_families_and_lists():
    with flows.proxy(mcp_select=["hdr, PAR"], mcp_ignore=["HDR006"]) as addon:
        ids = {rule.id for rule in addon.watch.book.rules}
    assert "HDR004" in ids and "HDR006" not in ids
    assert {rule_id[:3] for rule_id in ids} == {"HDR", "PAR"}


def test_rules_chosen_while_it_runs_judge_what_comes_from_now_on():
    wrong = flows.request(headers={"Mcp-Name": "other"})
    with flows.proxy(mcp_ignore=["HDR006"]) as addon:
        first, second = flows.live(wrong.copy()), flows.live(wrong.copy())
        addon.request(first)
        addon.context.configure(addon, mcp_ignore=[])
        addon.request(second)
    assert "mcp.rules" not in first.metadata or "HDR006" not in first.metadata["mcp.rules"]
    assert "HDR006" in second.metadata["mcp.rules"]


def test_an_expectation_reaches_the_endpoints_that_are_known_already():
    with flows.proxy() as addon:
        addon.request(flows.live())
        (endpoint,) = addon.watch.inspector.endpoints.values()
        assert endpoint.expected is None
        addon.context.configure(addon, mcp_era=["mcp.example=legacy", "*=modern"])
        assert endpoint.expected == "legacy"


def test_limits_that_change_hold_from_now_on():
    with flows.proxy() as addon:
        addon.context.configure(addon, mcp_max_body=100)
        flow = flows.live()
        addon.request(flow)
        assert "more than the limit of 100" in flow.metadata["mcp.notes"]


def test_rule_files_chosen_or_edited_while_it_runs_judge_what_comes_from_now_on(tmp_path):
    house = tmp_path / "house.py"
    house.write_text(HOUSE.replace("WORDS", "first words"))

    def findings(addon):
        flow = flows.live()
        addon.request(flow)
        exchange = addon.watch.inspector.exchanges[flow.id]
        return [finding.message for finding in exchange.findings if finding.rule == "ACME009"]

    with flows.proxy() as addon:
        assert findings(addon) == []
        addon.context.configure(addon, mcp_rules=[str(house)])
        assert findings(addon) == ["first words"]
        house.write_text(HOUSE.replace("WORDS", "other words"))
        os.utime(house, ns=(1, 1))
        addon.context.configure(addon, mcp_rules=[str(house)])
        assert findings(addon) == ["other words"]
        addon.context.configure(addon, mcp_rules=[])
        assert findings(addon) == []


HOUSE = """
from mcp_wiretap.rule import Finding, rule

@rule("ACME009", "always", "Always", on="post", level="must", party="client", era="both", severity="error", spec="house")
def always(exchange):
    yield Finding("WORDS")
"""


def test_a_lowered_mcp_max_state_reaches_what_is_remembered():
    with flows.proxy() as addon:
        for _ in range(20):
            addon.request(flows.live())
        assert len(addon.watch.inspector.exchanges) == 20
        addon.context.configure(addon, mcp_max_state=4)
        assert len(addon.watch.inspector.exchanges) == 4
        assert {tracker.limits.state for tracker in addon.watch.inspector.trackers} == {4}


def test_mitmproxys_own_options_are_changed_only_at_their_default():
    with flows.proxy() as addon:
        addon.running()
        assert addon.context.options.tcp_timeout == 24 * 3600
    with flows.proxy() as addon:
        addon.context.options.tcp_timeout = 60
        addon.running()
        assert addon.context.options.tcp_timeout == 60


@pytest.mark.parametrize(
    ("modes", "strategy"),
    [
        (["reverse:http://127.0.0.1:9@8001"], "lazy"),
        (["reverse:https://mcp.example"], "lazy"),
        (["regular"], "eager"),
        (["regular", "reverse:http://127.0.0.1:9@8001"], "eager"),
        (["reverse:tcp://127.0.0.1:9"], "eager"),
    ],
)
def test_a_reverse_proxy_connects_once_there_is_a_flow_that_can_tell_of_a_failure(modes, strategy):
    with flows.proxy() as addon:
        Proxyserver().load(Loader(addon.context.master))
        addon.context.options.mode = modes
        addon.running()
        assert addon.context.options.connection_strategy == strategy


def test_the_comment_column_is_added_to_mitmwebs_default_columns():
    from mitmproxy.tools.web.webaddons import WebAddon

    for columns, expected in ((None, "comment"), (["path"], "path")):
        with flows.proxy() as addon:
            addon.context.master.addons.add(WebAddon())
            if columns:
                addon.context.options.update(web_columns=columns)
            addon.running()
            assert addon.context.options.web_columns[-1] == expected


@pytest.mark.parametrize(("given", "says"), [("mcp_comments=1", "mcp_comments; did you mean mcp_comment"), ("mcp_q=1", "mcp_q")])
def test_an_option_that_nobody_has_is_told_when_mitmproxy_runs(given, says, caplog):
    with taddons.context() as context:
        addon = Wiretap()
        context.options.set(given, "theirs_not_ours=1", defer=True)
        context.master.addons.add(addon)
        options.tell_unknown(context.options)
        assert f"There is no option {says}" in caplog.text
        assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_option_of_another_addon_is_not_told(caplog):
    class Theirs:
        def load(self, loader):
            loader.add_option("mcp_ofanother", str, "", "An option of somebody else's.")

    with taddons.context() as context:
        context.options.set("mcp_ofanother=x", defer=True)
        context.master.addons.add(Theirs(), Wiretap())
        options.tell_unknown(context.options)
        assert not caplog.records
        assert context.options.mcp_ofanother == "x"
