"""The rules on tiny exchanges: each case in cases/*.cases says what must fire on it and what must not.

    === a sentence that says the behaviour
    fires: HDR004 HDR006:warning PAR011@2    ids that must fire, with severity or exchange (counted from 1) where given
    silent: HDR005                           ids that must not
    only: HDR004                             the exact set of ids of severity error or warning (may be empty)
    expect: modern                           what mcp_era would say: ERA, or PATTERN=ERA
    select: HDR, PAR                         the rules of this case; default: all
    contract: forbid delete_*                what the user holds servers to (`running.contract_of`)
    <a script in the notation of mcp_wiretap.example; above a line `---- later`, what was accepted of its servers>

Every finding is a plain line with evidence, in every case.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rules.running import Ran, Script, installed_rules, run_script

CASES = Path(__file__).parent / "cases"
WHERE = re.compile(r"(request|response)(\.[a-z]+(\[\d+\])?)?(:.*)?", re.DOTALL)


@dataclass
class Case:
    family: str
    title: str
    line: int
    script: Script


def read_cases(path: Path) -> list[Case]:
    cases = []
    line = 1
    for part in re.split(r"^(?==== )", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if part.startswith("=== "):
            title, _, text = part.partition("\n")
            cases.append(Case(path.stem, title[4:].strip(), line, Script.read(text)))
        elif part.strip():
            raise ValueError(f"{path.name}:{line}: text before the first case")
        line += part.count("\n")
    return cases


ALL = [case for path in sorted(CASES.glob("*.cases")) for case in read_cases(path)]


@pytest.mark.parametrize("case", ALL, ids=[f"{c.family}: {c.title}" for c in ALL])
def test_a_case_fires_what_it_names_and_nothing_that_it_forbids(case: Case) -> None:
    at = f"{case.family}.cases:{case.line}: {case.title}"
    assert set(case.script.directives) & {"fires", "silent", "only"}, f"{at}\nsays nothing about what must fire"
    ran = run_script(case.script)
    assert not ran.faults, f"{at}\n{ran.told()}"
    for wanted in case.script.words("fires"):
        assert ran.found(wanted), f"{at}\n{wanted} did not fire; there is\n{ran.told()}"
    for unwanted in case.script.words("silent"):
        assert not ran.found(unwanted), f"{at}\n{unwanted} fired:\n{ran.told()}"
    if "only" in case.script.directives:
        loud = {f.rule for f in ran.findings if f.severity != "info"}
        assert loud == set(case.script.words("only")), f"{at}\n{ran.told()}"
    assert_well_said(ran, at)


def assert_well_said(ran: Ran, at: str) -> None:
    """What holds for every finding: one plain line without a final full stop, and evidence with a place on the wire."""
    for finding in ran.findings:
        said = f"{at}\n{finding.rule}: {finding.message!r}"
        assert finding.message and "\n" not in finding.message, said
        assert not finding.message.endswith("."), said
        assert finding.evidence, f"{said} has no evidence"
        for evidence in finding.evidence:
            assert WHERE.fullmatch(evidence.where), f"{said}: where {evidence.where!r}"


def _named() -> set[str]:
    """The ids that cases name, to fire or to be silent."""
    directives = ("fires", "silent", "only")
    return {re.split("[:@]", word)[0] for case in ALL for d in directives for word in case.script.words(d)}


def test_the_ids_that_cases_name_exist() -> None:
    known = {rule.id for rule in installed_rules()}
    assert not _named() - known


def test_every_error_and_warning_is_named_by_a_case() -> None:
    """Besides the two examples of its docstring, which show it firing and not firing (test_explanations). Notes need no more."""
    lacking = {rule.id for rule in installed_rules() if rule.severity != "info"} - _named()
    assert not lacking, f"no case names {sorted(lacking)}"
