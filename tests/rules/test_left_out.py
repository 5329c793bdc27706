"""Every id of the catalogue is a rule, or stands in the table of those that are left out, with the reason; ids of rules that
came after it go on where their family ends."""

import json

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.rule import left_out
from mcp_wiretap_rules.left_out import LEFT_OUT
from tests.rules.running import installed_rules

HIGHEST_IN_CATALOGUE = {
    "APP": 7,
    "CAC": 13,
    "CMP": 4,
    "DEP": 7,
    "ELI": 12,
    "ERA": 25,
    "EXT": 5,
    "HDR": 26,
    "HTS": 26,
    "LEG": 26,
    "LOG": 7,
    "MET": 18,
    "MRT": 25,
    "OAU": 36,
    "PAR": 31,
    "PMT": 4,
    "RES": 17,
    "RPC": 31,
    "RSC": 8,
    "SEC": 13,
    "SSE": 16,
    "SUB": 17,
    "TOO": 18,
    "TSK": 26,
    "TSL": 9,
}
NEVER_GIVEN = {"DEP005", "DEP006", "SUB015"}
FAMILIES_OF_ITS_OWN = {"STD", "DRF", "CON", "RCT"}  # of rules that the catalogue does not know
CATALOGUE = {
    f"{family}{number:03}" for family, highest in HIGHEST_IN_CATALOGUE.items() for number in range(1, highest + 1)
} - NEVER_GIVEN


def test_every_id_of_the_catalogue_is_a_rule_or_is_left_out_for_a_reason() -> None:
    rules = {rule.id for rule in installed_rules()}
    assert not CATALOGUE - rules - set(LEFT_OUT)
    assert not rules & set(LEFT_OUT)
    assert set(LEFT_OUT) <= CATALOGUE


def test_an_id_beyond_the_catalogue_goes_on_where_its_family_ends() -> None:
    """Gaps are left for ids that were given and taken back only where the catalogue says so."""
    for rule in installed_rules():
        known = rule.family in HIGHEST_IN_CATALOGUE or rule.family in FAMILIES_OF_ITS_OWN
        assert known, f"{rule.id} begins a family: name it in FAMILIES_OF_ITS_OWN"
        assert rule.id in CATALOGUE or int(rule.id[3:]) > HIGHEST_IN_CATALOGUE.get(rule.family, 0), f"{rule.id} was never given"


@pytest.mark.parametrize("id", LEFT_OUT)
def test_a_reason_is_a_plain_sentence_that_names_rules_that_exist(id: str) -> None:
    why = LEFT_OUT[id]
    assert len(why) > 30 and not why.endswith(".") and "\n" not in why
    named = {word.strip(",;:.") for word in why.split() if word[:3] in HIGHEST_IN_CATALOGUE and word[3:6].isdigit()}
    assert named <= {rule.id for rule in installed_rules()}, id


def test_the_command_lists_them_and_explains_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    assert {entry["id"]: entry["why"] for entry in json.loads(capsys.readouterr().out)["left_out"]} == left_out() == LEFT_OUT
    assert main(["rules"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {id} " in listed for id in LEFT_OUT)
    assert main(["explain", "era001"]) == 0
    assert capsys.readouterr().out.startswith("ERA001 is no rule: ")
