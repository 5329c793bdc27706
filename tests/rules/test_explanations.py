"""Every rule explains itself, and its examples are true: the wrong one fires it, the right one does not.

The docstring: what is demanded, `Why:`, `Fix:`, `Wrong::` and `Right::` with a script each (`expect:` lines above a
script say what mcp_era would). `mcp-wiretap explain` and the pages in mitmweb print it.
"""

import inspect
import re
from dataclasses import dataclass

import pytest

from mcp_wiretap.rule import Rule
from tests.rules.running import Ran, Script, installed_rules, run_script

RULES = installed_rules()
every_rule = pytest.mark.parametrize("rule", RULES, ids=[r.id for r in RULES])

FORM = re.compile(
    r"(?P<demand>.+?)\n\nWhy: (?P<why>.+?)\n\nFix: (?P<fix>.+?)"
    r"\n\nWrong::\n\n(?P<wrong>.+?)\n\nRight::\n\n(?P<right>.+)",
    re.DOTALL,
)


@dataclass
class Explanation:
    demand: str
    why: str
    fix: str
    wrong: Script
    right: Script


def explanation(rule: Rule) -> Explanation:
    """The parts of a rule's docstring; AssertionError where it has not the form."""
    text = inspect.cleandoc(rule.check.__doc__ or "")
    parts = FORM.fullmatch(text)
    assert parts is not None, f"{rule.id}: not `what`, `Why: `, `Fix: `, `Wrong::`, `Right::` in this order:\n{text}"
    wrong, right = (Script.read(inspect.cleandoc("\n" + parts[which])) for which in ("wrong", "right"))
    return Explanation(parts["demand"], parts["why"], parts["fix"], wrong, right)


def run_example(script: Script, select: list[str], accepted: str = "") -> Ran:
    ran = run_script(script, select=select, accepted=accepted)
    assert not ran.faults, ran.told()
    return ran


@every_rule
def test_a_rule_says_what_it_demands_why_and_how_to_fix_it(rule: Rule) -> None:
    parts = explanation(rule)
    for part in (parts.demand, parts.why, parts.fix):
        assert part.rstrip().endswith((".", "!", "?")), f"{rule.id}: not a whole sentence: {part!r}"
    assert "\n\n" not in parts.demand.rstrip(), f"{rule.id}: the demand is one paragraph"


@every_rule
def test_the_wrong_example_fires_the_rule(rule: Rule) -> None:
    parts = explanation(rule)
    accepted = parts.right.text if rule.family == "DRF" else ""  # drift is told against what was right
    ran = run_example(parts.wrong, [rule.id], accepted)
    assert rule.id in ran.ids, f"{rule.id} did not fire on\n{explanation(rule).wrong.text}"


@every_rule
def test_the_right_example_does_not_fire_the_rule_and_breaks_no_other(rule: Rule) -> None:
    ran = run_example(explanation(rule).right, [])
    assert rule.id not in ran.ids, f"{rule.id} fired on\n{explanation(rule).right.text}\n{ran.told()}"
    # What the right answer to a faulty request is cannot be shown without the fault of the other side.
    own = [f for f in ran.findings if f.severity == "error" and rule.party in ("either", f.party)]
    assert not own, f"{rule.id}\n{ran.told()}"


@every_rule
def test_a_rule_has_a_title_and_a_place_in_the_specification(rule: Rule) -> None:
    assert 3 <= len(rule.title) <= 80
    assert not rule.title.endswith(".")
    assert rule.level in ("must", "should", "may-note")
    assert rule.party in ("client", "server", "either")
    assert rule.era in ("modern", "legacy", "both")
    assert rule.severity in ("error", "warning", "info")
    assert rule.versions
    revision = re.match(r"(\d{4}-\d\d-\d\d) \S", rule.spec)
    elsewhere = re.match(
        r"(RFC \d+|SEP-\d+|\d{3,4} |io\.modelcontextprotocol/|ext-auth|OpenID|OAuth|your (baseline|contract)$)", rule.spec
    )
    assert revision or elsewhere, f"{rule.id}: {rule.spec!r} names no page of a specification"
    assert rule.sep is None or re.fullmatch(r"\d+", rule.sep), f"{rule.id}: sep {rule.sep!r}"
