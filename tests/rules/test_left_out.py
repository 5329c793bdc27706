"""Every id of the catalogue is a rule, or stands in the table of those that are left out, with the reason."""

import json

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.rule import left_out
from mcp_wiretap_rules.left_out import LEFT_OUT
from tests.rules.running import installed_rules

HIGHEST = {
    "APP": 7, "CAC": 14, "CMP": 4, "DEP": 7, "ELI": 12, "ERA": 25, "EXT": 5, "HDR": 26, "HTS": 26, "LEG": 26, "LOG": 7, "MET": 18,
    "MRT": 25, "OAU": 36, "PAR": 31, "PMT": 4, "RES": 17, "RPC": 31, "RSC": 8, "SEC": 13, "SSE": 17, "SUB": 17, "TOO": 18,
    "TSK": 26, "TSL": 9,
}  # fmt: skip
NEVER_GIVEN = {"DEP005", "DEP006", "SUB015"}
ALL = {f"{family}{number:03}" for family, highest in HIGHEST.items() for number in range(1, highest + 1)} - NEVER_GIVEN


def test_every_id_is_a_rule_or_is_left_out_for_a_reason() -> None:
    rules = {rule.id for rule in installed_rules()}
    assert rules | set(LEFT_OUT) == ALL
    assert not rules & set(LEFT_OUT)


@pytest.mark.parametrize("id", LEFT_OUT)
def test_a_reason_is_a_plain_sentence_that_names_rules_that_exist(id: str) -> None:
    why = LEFT_OUT[id]
    assert len(why) > 30 and not why.endswith(".") and "\n" not in why
    named = {word.strip(",;:.") for word in why.split() if word[:3] in HIGHEST and word[3:6].isdigit()}
    assert named <= {rule.id for rule in installed_rules()}, id


def test_the_command_lists_them_and_explains_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    assert {entry["id"]: entry["why"] for entry in json.loads(capsys.readouterr().out)["left_out"]} == left_out() == LEFT_OUT
    assert main(["rules"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {id} " in listed for id in LEFT_OUT)
    assert main(["explain", "era001"]) == 0
    assert capsys.readouterr().out.startswith("ERA001 is no rule: ")
