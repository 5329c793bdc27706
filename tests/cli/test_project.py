"""The project file: what it may say, where it is found, and errors that name file, key and fix."""

from pathlib import Path

import pytest

from mcp_wiretap import expectation, project
from mcp_wiretap.expectation import Expectations
from mcp_wiretap.rule import Silence, find_rules

WHOLE = """
[rules]
select = ["HDR", "client"]
ignore = ["hdr004"]

[expect]
"api.example.com" = "modern"
"https://*.old.example:8443/mcp" = "legacy"

[[silence]]
rule = "HDR005"
endpoint = "old.example.com/mcp"
reason = "the gateway strips it"

[[silence]]
rule = "*"
reason = "not our server"
"""


def test_all_that_it_may_say(tmp_path: Path) -> None:
    (tmp_path / "wiretap.toml").write_text(WHOLE)
    found = project.load(tmp_path)
    found.check_rules(find_rules())
    assert found.path == tmp_path / "wiretap.toml"
    assert (found.select, found.ignore) == (["HDR", "client"], ["HDR004"])
    assert found.expect == [("api.example.com", "modern"), ("https://*.old.example:8443/mcp", "legacy")]
    assert found.silences == [
        Silence("HDR005", "old.example.com/mcp", "the gateway strips it"),
        Silence("*", "*", "not our server"),
    ]


def test_pyproject_holds_the_same(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.mcp-wiretap.rules]\nignore = ["CAC"]\n')
    assert project.load(tmp_path).ignore == ["CAC"]


def test_the_nearest_file_counts_and_a_pyproject_without_the_table_does_not(tmp_path: Path) -> None:
    (tmp_path / "wiretap.toml").write_text('[rules]\nignore = ["CAC"]\n')
    (tmp_path / ".git").mkdir()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert project.load(below).ignore == ["CAC"]
    (tmp_path / "a" / "wiretap.toml").write_text('[rules]\nignore = ["LOG"]\n')
    assert project.load(below).ignore == ["LOG"]


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    found = project.load(tmp_path)
    assert (found.select, found.ignore, found.expect, found.silences) == ([], [], [], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules = 1", "rules: "),
        ("[rule]\n", "rule: no such key; did you mean rules?"),
        ("[rules]\nignored = []\n", "rules.ignored: no such key; did you mean ignore?"),
        ('[rules]\nignore = "HDR"\n', "rules.ignore: should be a valid list, not 'HDR'"),
        ("[rules]\nignore = [1]\n", "rules.ignore[0]: should be a valid string, not 1"),
        ('[[silence]]\nrule = "HDR005"\n', "silence[0].reason: missing; a silence needs a rule and a reason"),
        ('[[silence]]\nrule = "HDR005"\nreason = ""\n', "silence[0].reason: empty; say it in words"),
        ('[[silence]]\nrule = "HDR005"\nreason = "x"\nendpoint = "a b"\n', "silence[0].endpoint: 'a b' is not"),
        ('[expect]\n"a.example" = "moderne"\n', "expect.\"a.example\": 'moderne'"),
        ('[expect]\n"a.example" = 1\n', "expect.a.example: should be a valid string, not 1"),
        ('[expect]\n"" = "modern"\n', 'expect."": '),
        ("[rules\n", "not valid TOML: "),
    ],
)
def test_an_error_names_file_key_and_fix(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "wiretap.toml").write_text(text)
    with pytest.raises(project.ProjectError) as error:
        project.load(tmp_path)
    assert f"{tmp_path / 'wiretap.toml'}: {message}" in str(error.value)


@pytest.mark.parametrize("where", ["rules.select", "rules.ignore", "silence[0].rule"])
def test_an_unknown_rule_in_the_file_is_an_error(where: str, tmp_path: Path) -> None:
    key = where.split(".")[1]
    text = f'[rules]\n{key} = ["HDR04"]\n' if where.startswith("rules") else '[[silence]]\nrule = "HDR04"\nreason = "x"\n'
    (tmp_path / "wiretap.toml").write_text(text)
    found = project.load(tmp_path)
    with pytest.raises(project.ProjectError, match=r"unknown rule 'HDR04'; did you mean") as error:
        found.check_rules(find_rules())
    assert where in str(error.value)


@pytest.mark.parametrize("text", ["", "host", "=modern", "host=", "host=new", "ho st=modern", "host?q=modern", "http://=modern"])
def test_what_is_no_expectation_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        expectation.parse(text)


def test_the_first_expectation_that_fits_counts_and_auto_expects_nothing() -> None:
    entries = ["http://a.example/mcp=auto", "a.example=modern", "*.example:8080=legacy"]
    expected = Expectations(expectation.parse(entry) for entry in entries)
    assert expected("http://a.example:80/mcp") is None
    assert expected("https://a.example:443/other") == "modern"
    assert expected("http://b.example:8080/mcp") == "legacy"
    assert expected("http://b.example:80/mcp") is None
