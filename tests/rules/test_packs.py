"""Rules of one's own: a plain Python file beside the installed packs, and what happens when such a rule is wrong."""

import re
from pathlib import Path

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules, load_file
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange

EXAMPLE = Path(__file__).parent.parent / "example_pack" / "house_rules.py"
CALL = 'modern tools/call {"name": "deploy"}\n  -> result {"content": []}\n'


def _judged(script: str, rules: list[object]) -> list[Exchange]:
    inspector = Inspector(RuleBook.of(rules))  # type: ignore[arg-type]
    for event in read_script(script):
        inspector.feed(event)
    return list(inspector.exchanges.values())


def test_a_rule_of_a_plain_file_finds_what_it_looks_for() -> None:
    (exchange,) = _judged(CALL, load_file(str(EXAMPLE)))
    assert [(f.rule, f.severity, f.party) for f in exchange.findings] == [("ACME001", "warning", "client")]


def test_a_rule_of_a_plain_file_stands_among_the_installed_ones() -> None:
    ids = [rule.id for rule in find_rules([str(EXAMPLE)])]
    assert "ACME001" in ids and "HDR006" in ids and ids == sorted(ids)


def test_an_id_that_is_taken_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text(EXAMPLE.read_text().replace("ACME001", "HDR006"))
    with pytest.raises(ValueError, match="rule id HDR006 is defined twice"):
        find_rules([str(copy)])


@pytest.mark.parametrize(
    ("text", "why"),
    [("raise RuntimeError('boom')", "cannot be run: RuntimeError: boom"), ("x = 1", "has no rule"), ("def (", "SyntaxError")],
)
def test_a_file_that_is_no_rule_file_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "rules.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=why):
        load_file(str(path))


def test_a_fault_in_a_users_rule_is_counted_and_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    text = EXAMPLE.read_text().replace("ACME001", "ACME002")
    path.write_text(text.replace('if isinstance(name, str) and "." not in name:', "if 1 / 0:"))
    (exchange,) = _judged(CALL, [*load_file(str(path)), *load_file(str(EXAMPLE))])
    assert [f.rule for f in exchange.findings] == ["ACME001"]
    assert exchange.faults == [("rule ACME002", "ZeroDivisionError: division by zero")]


def test_the_rule_of_the_readme_works(tmp_path: Path) -> None:
    readme = (Path(__file__).parent.parent.parent / "docs" / "writing-rules.md").read_text()
    [written] = [block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "@rule(" in block]
    file = tmp_path / "house_rules.py"
    file.write_text(written)
    (exchange,) = _judged(CALL, load_file(str(file)))
    assert [f.message for f in exchange.findings] == ["the tool deploy names no team"]
