"""What a rule declares is checked when it is made, and what slips through costs nobody else's findings."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import Finding, Rule, RuleBook, find_rules, load_file, rule
from mcp_wiretap.trace.inspector import Inspector

RIGHT: dict[str, Any] = {
    "id": "ACME001",
    "name": "no-rule",
    "title": "A rule",
    "on": "request",
    "level": "must",
    "party": "client",
    "era": "both",
    "severity": "error",
    "spec": "the house",
}


def declare(**changes: Any) -> Callable[[Any], Any]:
    return rule(**(RIGHT | changes))


def check(fact: object) -> Iterator[Finding]:
    yield Finding("it speaks")


def declared(check: Callable[..., Any], **changes: Any) -> Rule:
    found: Rule = declare(**changes)(check).__rule__
    return found


# What is wrong, and what the refusal must name besides the rule.
WRONG: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"on": "requests"}, ("on", "'requests'", "request, notification, reply")),
    ({"on": ("request", "anser")}, ("on", "'anser'")),
    ({"on": ()}, ("on", "empty")),
    ({"level": "MUST"}, ("level", "must, should, may-note")),
    ({"party": "clients"}, ("party", "client, server, either")),
    ({"era": "new"}, ("era", "modern, legacy, both")),
    ({"severity": "fatal"}, ("severity", "error, warning, info")),
    ({"once": "session"}, ("once", "endpoint, client")),
    ({"sorts": ("requst",)}, ("sorts", "'requst'", "input_required")),
    ({"sorts": "request"}, ("sorts", "must be a tuple")),
    ({"kinds": ("mpc",), "always": True}, ("kinds", "'mpc'", "preflight")),
    ({"kinds": ("oauth",)}, ("kinds", "always=True")),
    ({"kinds": ("mcp", "oauth")}, ("kinds", "always=True")),
    ({"versions": ("2025-11-26",)}, ("versions", "2025-11-25")),
    ({"versions": "2025-11-25"}, ("versions", "must be a tuple")),
    ({"methods": ("tools call",)}, ("methods", "'tools call'")),
    ({"methods": ("",)}, ("methods", "''")),
    ({"methods": "tools/call"}, ("methods", "must be a tuple")),
    ({"needs": ("parms:name",)}, ("needs", "'parms:name'", "params")),
    ({"needs": ("params",)}, ("needs", "params:KEY")),
    ({"needs": ("params:",)}, ("needs", "params:KEY")),
    ({"needs": ("mrtr:x",)}, ("needs", "without a key")),
    ({"needs": ("header:Mcp-Name",)}, ("needs", "'header:mcp-name'")),
    ({"needs": ("params:name",), "on": "exchange"}, ("needs", "on='exchange'")),
    ({"needs": ("cap:roots",), "on": ("request", "tool")}, ("needs", "on='tool'")),
    ({"sorts": ("error",), "on": "post"}, ("sorts", "on='post'")),
    ({"sorts": ("error",), "on": ("answer", "event")}, ("sorts", "on='event'")),
    ({"id": "AC1"}, ("id", "ACME001")),
    ({"id": "acme001"}, ("id",)),
    ({"id": "ACME"}, ("id",)),
    ({"name": "No Rule"}, ("name", "hyphens")),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[str(changes) for changes, _ in WRONG])
def test_a_declaration_with_a_word_that_nothing_knows_is_refused_by_name(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError) as refused:
        declare(**changes)(check)
    for word in (f"rule {changes.get('id', 'ACME001')}", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"methods": ("acme/anything",)},
        {"needs": ("fact:token", "header:authorization", "headers", "mrtr"), "on": "exchange"},
        {"needs": ("meta:a:b",)},
        {"sorts": ("stream",), "on": "exchange"},
        {"kinds": ("mcp",)},
        {"kinds": ("mcp", "oauth"), "always": True},
        {"versions": ("2025-06-18", "2025-11-25")},
        {"id": "ACMETWO12"},
    ],
    ids=str,
)
def test_a_declaration_that_means_something_is_taken(changes: dict[str, Any]) -> None:
    assert declared(check, **changes).title == "A rule"


def test_a_rule_file_with_a_mistyped_word_is_refused_with_the_name_of_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "house.py"
    path.write_text(
        "from mcp_wiretap.rule import rule\n"
        '@rule("ACME007", "a-b", "T", on="request", level="must", party="client", era="both", severity="error", spec="s",\n'
        '      needs=("parms:name",))\n'
        "def check(message): yield\n"
    )
    with pytest.raises(ValueError, match=r"rule ACME007: needs has 'parms:name'"):
        load_file(str(path))


class Shapeless:
    """A container that breaks whoever looks into it."""

    def __contains__(self, key: object) -> bool:
        raise TypeError("no such thing")

    def __len__(self) -> int:
        return 1


SCRIPT = """\
modern tools/call {"name": "x"}
  -header Mcp-Method
  -> result {}
"""


def inspected(rules: list[Rule]) -> Inspector:
    inspector = Inspector(RuleBook.of(rules))
    for event in read_script(SCRIPT):
        inspector.feed(event)
    inspector.finish()
    return inspector


def test_a_rule_object_that_breaks_the_table_costs_no_finding_of_the_others() -> None:
    installed = find_rules()
    before = inspected(installed)
    found = declared(check)
    broken = Rule(
        id=found.id,
        name=found.name,
        title=found.title,
        check=check,
        on=("exchange",),
        level="must",
        party="client",
        era="both",
        severity="error",
        spec="",
        needs=frozenset({"params:name"}),
    )  # made without `rule()`
    after = inspected([*installed, broken])

    def ids(inspector: Inspector) -> list[str]:
        return [f.rule for e in inspector.exchanges.values() for f in e.findings]

    assert [i for i in ids(after) if i != "ACME001"] == ids(before) and ids(before)
    faults = [fault for e in after.exchanges.values() for fault in e.faults]
    assert [where for where, _ in faults] == ["rule table (on=exchange, method=tools/call)"]


def test_facts_of_odd_shape_are_booked_as_a_fault_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_wiretap.rule import book

    monkeypatch.setitem(book._KEYS, "params", lambda fact, exchange: Shapeless())
    inspector = inspected([declared(check, needs=("params:name",)), declared(check, id="ACME002", on="exchange")])
    [exchange] = inspector.exchanges.values()
    assert [f.rule for f in exchange.findings] == ["ACME002"]
    assert exchange.faults == [("rule table (on=request, method=tools/call)", "TypeError: no such thing")]
