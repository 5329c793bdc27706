"""The other subcommands, and how quickly and clearly the command line answers."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from mcp_wiretap import __version__, explanation
from mcp_wiretap.cli import main
from mcp_wiretap.command import Refused, tools
from mcp_wiretap.command.output import console
from mcp_wiretap.command.work import explain
from mcp_wiretap.rule import Rule, find_rules
from tests.cli.recordings import record

WRONG = 'modern tools/list\n  header Mcp-Method: ping\n  -> result {"tools": []}\n'


def test_rules_as_json_lists_each_with_its_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in find_rules()]
    assert all(list(rule) == ["id", "name", "title", "level", "severity", "party", "era", "spec"] for rule in rules)


def test_rules_as_text_names_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    output = capsys.readouterr().out
    assert all(f"  {rule.id} " in output for rule in find_rules())


@pytest.mark.parametrize("word", ["HDR004", "hdr004", "method-header-mismatch", "Method-Header-Mismatch"])
def test_a_rule_is_explained_by_id_or_name(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 0
    output = capsys.readouterr().out
    assert output.startswith("HDR004  ")
    for heading in ("Why", "Fix", "Wrong", "Right", "Specification"):
        assert f"\n{heading}\n" in output
    assert "https://modelcontextprotocol.io/specification/2026-07-28/" in output


def test_every_rule_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in find_rules():
        explain.show(rule, console())
        output = capsys.readouterr().out
        assert output.startswith(rule.id) and (explanation.link(rule.spec) or rule.spec) in output
        assert not [line for line in output.splitlines() if line != line.rstrip()], rule.id


def test_a_fault_of_our_own_is_2_and_not_1_which_means_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explain, "show", lambda *_: 1 / 0)
    assert main(["explain", "HDR006"]) == 2
    assert "ZeroDivisionError" in (said := capsys.readouterr().err) and said.endswith("about the recording\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_of_another_encoding_shows_escapes(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding=encoding))
    assert main(["explain", "PAR018"]) == 0
    sys.stdout.flush()
    assert shown.getvalue().startswith(b"PAR018  ")


@pytest.mark.parametrize(
    ("word", "hint"), [("HDR04", "HDR0"), ("HDR", "HDR001"), ("method-header", "mismatch"), ("q", "`mcp-wiretap rules`")]
)
def test_an_unknown_rule_is_2_with_a_suggestion(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 2
    assert hint in capsys.readouterr().err


def test_the_addon_path_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["addon-path"]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.is_file() and path.name == "addon.py"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mcp-wiretap {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["audit"], ["audti", "x"], ["audit", "a", "--format", "xml"], ["audit", "a", "--jobs", "0"]]
)
def test_a_wrong_call_is_2_and_says_where_to_look(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "--help" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom mcp_wiretap.cli import main\n"
        "try:\n    main(['audit', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'mitmproxy', 'pydantic', 'rich', 'jinja2', 'jsonschema', 'mcp_types'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


KNOWN = frozenset({"mcp_era", "mcp_select", "mcp_max_body"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "mcp_er=x=modern"],
        ["-p", "8080", "--set=mcp_er=1"],
        ["--set", "mcp_er"],
        ["--set", "mcp_era=a=b", "--set", "mcp_er=1"],
    ],
)
def test_a_misspelt_option_of_ours_is_refused_with_the_right_one(arguments: list[str]) -> None:
    with pytest.raises(Refused, match="there is no option mcp_er; did you mean mcp_era"):
        tools.check_options(arguments, KNOWN)


@pytest.mark.parametrize("option", ["mcp_fault=x", "mcp_er=1", "mcp_x"])
@pytest.mark.parametrize("script", [["-s", "other.py"], ["--scripts=other.py"], ["--set", "scripts=other.py"]])
def test_an_option_of_somebody_elses_script_is_not_refused(script: list[str], option: str) -> None:
    tools.check_options([*script, "--set", option], KNOWN)


def test_an_option_that_looks_like_none_of_ours_is_not_refused() -> None:
    tools.check_options(["--set", "mcp_qqqqqq=1"], KNOWN)


def test_options_of_mitmproxy_are_none_of_our_business() -> None:
    tools.check_options(["--set", "stream_large_bodies=1", "--mode", "reverse:http://x", "--set", "mcp_era=a=modern"], KNOWN)


@pytest.mark.parametrize(("name", "tool"), [("web", "mitmweb"), ("dump", "mitmdump"), ("console", "mitmproxy")])
def test_a_tool_starts_with_the_addon_and_all_arguments(name: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(f"mitmproxy.tools.main.{tool}", lambda arguments: given.append(arguments))
    assert main([name, "-p", "0", "--set", "mcp_era=a=modern", "-h"]) == 0
    assert given == [["-s", tools.addon_path(), "-p", "0", "--set", "mcp_era=a=modern", "-h"]]


def test_mitmdump_prints_what_is_known_of_each_flow_unless_it_prints_nothing() -> None:
    recording = Path(__file__).parent.parent / "recordings" / "mrtr-showcase-http.flow"

    def printed(*options: str) -> list[str]:
        command = [sys.executable, "-m", "mcp_wiretap", "dump", "-n", "-r", str(recording), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.splitlines()

    lines = printed()
    told = [place for place, line in enumerate(lines) if "] modern tools/call mrtr_two_step -> " in line]
    assert len(told) == 3 and all("POST http" in lines[place + 1] for place in told)
    assert printed("-q") == []
    assert not [line for line in printed("--set", "flow_detail=0") if "tools/call" in line]


def test_the_addon_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "-s", tools.addon_path()]) == 2
    assert "loaded already" in capsys.readouterr().err


def test_help_of_a_tool_says_where_its_own_help_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["web", "--help"])
    assert "All arguments go to mitmweb" in capsys.readouterr().out


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flows(path: Path) -> list[HTTPFlow]:
    with path.open("rb") as file:
        return list(FlowReader(file).stream())  # type: ignore[arg-type]


def test_annotate_writes_the_final_verdicts_on_the_flows(place: Path) -> None:
    script = (
        WRONG
        + 'legacy initialize {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}\n'
    )
    ids = record(place / "in.flow", script + "GET http://x.example/\n  -> 200 text/plain hello\n")
    assert main(["annotate", "in.flow", "out.flow"]) == 0
    written = flows(place / "out.flow")
    assert {flow.id for flow in written} == set(ids)
    first = next(flow for flow in written if flow.id == ids[0])
    assert first.comment.startswith("modern tools/list -> complete: ")
    assert first.marked == ":red_circle:" and "HDR004" in str(first.metadata["mcp.rules"])
    other = next(flow for flow in written if flow.id == ids[2])
    assert other.comment == "" and not other.metadata


def test_annotate_twice_changes_nothing(place: Path) -> None:
    record(place / "in.flow", WRONG + 'modern tools/list\n  -> sse\n  -> result {"tools": []}\n')
    assert main(["annotate", "in.flow", "once.flow"]) == 0
    assert main(["annotate", "once.flow", "twice.flow"]) == 0
    once, twice = flows(place / "once.flow"), flows(place / "twice.flow")
    assert [flow.get_state() for flow in once] == [flow.get_state() for flow in twice]


def test_annotate_changes_no_byte_of_the_traffic(place: Path) -> None:
    record(place / "in.flow", WRONG)
    main(["annotate", "in.flow", "out.flow"])
    [before], [after] = flows(place / "in.flow"), flows(place / "out.flow")
    assert before.request.get_state() == after.request.get_state()
    assert before.response is not None and after.response is not None
    assert before.response.get_state() == after.response.get_state()


def test_annotate_keeps_the_users_own_comment(place: Path) -> None:
    record(place / "in.flow", WRONG)
    [flow] = flows(place / "in.flow")
    flow.comment = "mine"
    from tests.cli.recordings import write

    with (place / "in.flow").open("wb") as file:
        write(file, flow)
    main(["annotate", "in.flow", "out.flow"])
    assert flows(place / "out.flow")[0].comment == "mine"


def test_annotate_of_a_damaged_recording_writes_what_there_is_and_gives_2(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(place / "in.flow", WRONG * 2)
    (place / "in.flow").write_bytes((place / "in.flow").read_bytes()[:-10])
    assert main(["annotate", "in.flow", "out.flow"]) == 2
    assert "cut off" in capsys.readouterr().err
    assert [flow.comment[:6] for flow in flows(place / "out.flow")] == ["modern"]


def test_annotate_does_not_overwrite_its_input(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place / "in.flow", WRONG)
    before = (place / "in.flow").read_bytes()
    assert main(["annotate", "in.flow", "./in.flow"]) == 2
    assert (place / "in.flow").read_bytes() == before
    assert "name another file" in capsys.readouterr().err


def test_a_rule_pack_that_cannot_be_loaded_is_2_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(files: object = ()) -> list[Rule]:
        raise ValueError("rule id HDR004 is defined twice (again in acme_rules.headers, entry point acme)")

    monkeypatch.setattr("mcp_wiretap.command.settings.find_rules", broken)
    assert main(["rules"]) == 2
    assert "acme_rules.headers" in capsys.readouterr().err


def test_rules_of_ones_own_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    own = str(Path(__file__).parent.parent / "example_pack" / "house_rules.py")
    assert main(["rules", "--rules", own]) == 0
    assert "ACME001" in capsys.readouterr().out
    assert main(["explain", "acme001", "--rules", own]) == 0
    assert "put the team before the name" in capsys.readouterr().out.replace("Put", "put")


def test_the_project_names_rule_files_from_its_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = (Path(__file__).parent.parent / "example_pack" / "house_rules.py").read_text()
    (tmp_path / "ours.py").write_text(own)
    (tmp_path / "wiretap.toml").write_text('[rules]\nfiles = ["ours.py"]\n')
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert main(["rules", "--trust-project"]) == 0
    assert "ACME001" in capsys.readouterr().out


def test_a_rule_file_that_is_not_there_is_2_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--rules", "nowhere.py"]) == 2
    assert "nowhere.py cannot be run: FileNotFoundError" in capsys.readouterr().err
