"""A directory in which somebody stands: what may be read there, and whose code runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_wiretap import project, trust
from mcp_wiretap.cli import main
from tests.cli.recordings import record

CALL = 'modern tools/call {"name": "deploy"}\n  -> result {"content": []}\n'
HOUSE = (Path(__file__).parent.parent / "example_pack" / "house_rules.py").read_text()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose project file names a rule file that leaves a mark when it runs; the configuration is elsewhere."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    root = tmp_path / "checkout"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "rules").mkdir()
    (root / "rules" / "house.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{HOUSE}")
    (root / "wiretap.toml").write_text('[rules]\nignore = ["CAC"]\nfiles = ["rules/house.py"]\n')
    record(root / "in.flow", CALL)
    monkeypatch.chdir(root / "a" / "b")
    return root


def ran(place: Path) -> bool:
    mark = place.parent / "ran"
    found = mark.exists()
    mark.unlink(missing_ok=True)
    return found


COMMANDS = {
    "rules": ["rules"],
    "explain": ["explain", "HDR006"],
    "audit": ["audit", "../../in.flow", "--fail-on", "never"],
    "diff": ["diff", "../../in.flow", "../../in.flow"],
    "annotate": ["annotate", "../../in.flow", "out.flow"],
    "export": ["export", "../../in.flow", "--format", "jsonl"],
    "replay": ["replay", "../../in.flow", "--to", "http://127.0.0.1:9", "--yes"],
}
every_command = pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)


@every_command
def test_no_command_runs_what_nobody_allowed(arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    assert not ran(place)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "house" in line]
    assert str(place / "wiretap.toml") in line and f"`mcp-wiretap trust {place}`" in line and "--trust-project" in line


@every_command
def test_every_command_runs_what_was_allowed_and_says_so(
    arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust"]) == 0
    assert not ran(place) and str(place / "rules" / "house.py") in capsys.readouterr().out
    main(arguments)
    assert ran(place) and str(place / "rules" / "house.py") in capsys.readouterr().err


def test_allowed_for_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "../../in.flow", "--format", "json", "--trust-project", "--select", "ACME001"]) == 0
    assert ran(place)
    report = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in report["findings"]] == ["ACME001"]
    (told,) = report["tool"]["rules"]
    assert told["file"] == str(place / "rules" / "house.py") and told["project"] == str(place / "wiretap.toml")
    assert main(["audit", "../../in.flow", "--fail-on", "never"]) == 0
    assert not ran(place)


def test_what_a_user_names_needs_no_leave_and_is_told_in_the_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(place / "rules" / "house.py")
    assert main(["audit", "../../in.flow", "--format", "json", "--rules", file, "--fail-on", "never"]) == 0
    assert ran(place)
    (told,) = json.loads(capsys.readouterr().out)["tool"]["rules"]
    assert told["file"] == file and told["project"] is None


def test_nothing_is_told_where_nothing_ran(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "../../in.flow", "--format", "json", "--fail-on", "never"]) == 0
    assert set(json.loads(capsys.readouterr().out)["tool"]) == {"name", "version"}


@pytest.mark.parametrize("changed", ["rules/house.py", "wiretap.toml"])
def test_a_changed_file_asks_again(changed: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(place)]) == 0
    with (place / changed).open("a") as file:
        file.write("\n# more\n")
    capsys.readouterr()
    assert main(["rules"]) == 0
    assert not ran(place) and "have changed since they were allowed" in capsys.readouterr().err
    assert main(["trust", str(place)]) == 0 and main(["rules"]) == 0
    assert ran(place)


def test_the_same_content_elsewhere_asks_again(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["trust"]) == 0
    place.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    assert main(["rules"]) == 0
    assert not ran(place)


def test_what_was_allowed_is_listed_and_taken_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 0
    capsys.readouterr()
    assert main(["trust", "--list"]) == 0
    assert str(place / "wiretap.toml") in capsys.readouterr().out
    assert main(["trust", "--remove"]) == 0 and main(["rules"]) == 0
    assert not ran(place)
    assert main(["trust", "--remove"]) == 2
    capsys.readouterr()
    assert main(["trust", "--list"]) == 0 and capsys.readouterr().out == ""


def test_settings_without_code_are_read_all_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "wiretap.toml").write_text(
        '[rules]\nignore = ["CAC", "ACME001"]\nfiles = ["rules/house.py"]\n[[silence]]\nrule = "ACME002"\nreason = "x"\n'
    )
    found = project.load(Path.cwd())
    assert found.ignore == ["CAC", "ACME001"] and found.silences[0].rule == "ACME002"
    assert main(["audit", "../../in.flow", "--fail-on", "never"]) == 0
    assert not ran(place)
    (place / "wiretap.toml").write_text('[rules]\nignore = ["CACC"]\n')  # where nothing is missing a wrong word is one
    assert main(["audit", "../../in.flow", "--fail-on", "never"]) == 2


@pytest.mark.parametrize("name", ["../elsewhere.py", "{tmp}/elsewhere.py", "rules/link.py"])
def test_files_outside_of_the_project_never_run(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "elsewhere.py"
    outside.write_text((place / "rules" / "house.py").read_text())
    (place / "rules" / "link.py").symlink_to(outside)
    (place / "wiretap.toml").write_text(f"[rules]\nfiles = ['{name.format(tmp=tmp_path)}']\n")
    assert main(["trust"]) == 2 and "outside" in capsys.readouterr().err
    assert main(["rules", "--trust-project"]) == 0
    assert not ran(place) and "outside of that directory; --rules" in capsys.readouterr().err


def test_a_rule_file_that_is_allowed_and_not_there_is_an_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "rules" / "house.py").unlink()
    assert main(["rules"]) == 0
    assert main(["rules", "--trust-project"]) == 2
    assert main(["trust"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "rules/house.py cannot be read: No such file or directory" in said[-1] and len(said) == 3


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_git_root_ends_the_search(kind: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = place / "a"
    if kind == "directory":
        (inner / ".git").mkdir()
    else:
        (inner / ".git").write_text("gitdir: elsewhere\n")
    assert project.load(Path.cwd()).path is None
    (inner / "wiretap.toml").write_text("")
    assert project.load(Path.cwd()).path == inner / "wiretap.toml"


def test_home_ends_the_search_and_outside_of_both_nothing_above_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / ".git").rmdir()
    assert project.load(Path.cwd()).path is None
    monkeypatch.setenv("HOME", str(place / "a"))
    assert project.load(Path.cwd()).path is None
    monkeypatch.setenv("HOME", str(place))
    assert project.load(Path.cwd()).path == place / "wiretap.toml"
    monkeypatch.setenv("HOME", "/")
    assert project.load(Path.cwd()).path is None
    monkeypatch.setenv("HOME", str(place.parent))
    assert project.load(place).path == place / "wiretap.toml"


@pytest.mark.parametrize("what", ["wiretap.toml", "pyproject.toml", "."])
@pytest.mark.parametrize("by", ["another user", "everybody", "a group"])
def test_what_others_can_write_is_not_read(
    what: str, by: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if what == "pyproject.toml":
        (place / "wiretap.toml").unlink()
        (place / "pyproject.toml").write_text('[tool.mcp-wiretap.rules]\nignore = ["HDR"]\nfiles = ["rules/house.py"]\n')
    assert project.load(Path.cwd()).ignore
    path = place / what
    if by == "everybody":
        path.chmod(0o777)
    else:
        path.chmod(0o775)
        monkeypatch.setattr(trust, "_is_private", lambda gid: False)
        if by == "another user":
            path.chmod(0o755)
            wrong = path.stat().st_ino
            real = trust._check_own

            def check(there: Path, found: os.stat_result) -> None:
                fields = [*found[:4], 4_242 if found.st_ino == wrong else found.st_uid, *found[5:10]]
                real(there, os.stat_result(fields))

            monkeypatch.setattr(trust, "_check_own", check)
    found = project.load(Path.cwd())
    assert found.path is None and found.ignore == []
    assert main(["rules", "--trust-project"]) == 0
    assert not ran(place)
    said = capsys.readouterr().err
    assert "is not read: " in said and by.removeprefix("a ") in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_file_of_another_user_is_not_read(place: Path) -> None:
    assert project.load(Path.cwd()).path is not None
    os.chown(place / "wiretap.toml", 4_242, 4_242)
    assert project.load(Path.cwd()).path is None
    os.chown(place / "wiretap.toml", 0, 0)
    os.chown(place / "rules" / "house.py", 4_242, 4_242)
    assert main(["rules", "--trust-project"]) == 0 and not ran(place)
    os.chown(place / "rules" / "house.py", 0, 0)
    assert main(["rules", "--trust-project"]) == 0 and ran(place)


def test_ones_own_file_in_a_directory_like_tmp_is_read(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.chmod(0o1777)
    assert project.load(place).path == place / "wiretap.toml"


def test_a_nearer_file_that_is_not_read_does_not_hide_the_one_above(place: Path) -> None:
    near = place / "a" / "wiretap.toml"
    near.write_text("")
    near.chmod(0o666)
    found = project.load(Path.cwd())
    assert found.path == place / "wiretap.toml" and len(found.passed_over) == 1


def test_what_is_kept_of_consent_counts_only_where_nobody_else_can_write_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust"]) == 0
    store = place.parent / "config" / "mcp-wiretap" / "trusted.json"
    assert store.stat().st_mode & 0o777 == 0o600 and store.parent.stat().st_mode & 0o777 == 0o700
    store.chmod(0o666)
    assert main(["rules"]) == 0 and not ran(place)
    store.chmod(0o600)
    assert main(["rules"]) == 0 and ran(place)
    capsys.readouterr()
    for damage in ("{", "[]", '{"version": 1, "projects": []}', '{"version": 1, "projects": {"a": 1}}', "[" * 100_000, "\udcff"):
        store.write_bytes(damage.encode("utf-8", "surrogateescape"))
        assert main(["rules"]) == 0 and not ran(place)
        said = capsys.readouterr().err
        assert "Traceback" not in said and len(said.splitlines()) == 2


def test_a_silence_of_a_directory_above_is_shown_with_its_path(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "wiretap.toml").write_text('[[silence]]\nrule = "*"\nreason = "not ours"\n')
    record(place / "in.flow", 'modern tools/list\n  header Mcp-Method: ping\n  -> result {"tools": []}\n')
    assert main(["audit", "../../in.flow"]) == 0
    assert f"not ours ({place / 'wiretap.toml'})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 3_000, "a = " + "9" * 5_000, "a = 1\udcff", "a\0 = 1", "[rules"],
)
def test_odd_toml_is_one_plain_line(text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "wiretap.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["rules"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{place / 'wiretap.toml'}: not valid TOML: " in said


@pytest.mark.parametrize("files", ['["a\\u0000b.py"]', '[""]', '["."]', '["wiretap.toml"]', '["\\u001b]0;x\\u0007.py"]'])
def test_odd_names_of_rule_files_are_one_plain_line(files: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "wiretap.toml").write_text(f"[rules]\nfiles = {files}\n")
    assert main(["rules"]) == 0
    assert main(["rules", "--trust-project"]) in (0, 2)
    said = capsys.readouterr().err
    assert said.count("\n") == 2 and "\x1b" not in said and "Traceback" not in said


@pytest.mark.e2e
def test_python_modules_of_the_current_directory_are_not_imported(place: Path) -> None:
    """`python -m` looks for modules in the current directory first."""
    mark = place.parent / "ran"
    for name in ("rich", "pydantic", "mcp_wiretap_rules", "jsonschema"):
        (place / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    called = subprocess.run([sys.executable, "-m", "mcp_wiretap", "rules"], cwd=place, capture_output=True, text=True)
    assert called.returncode == 0 and not ran(place)
