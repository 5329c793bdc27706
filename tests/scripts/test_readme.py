"""The README tells the truth: its commands exist with the options that they are given, its table of options is whole."""

import contextlib
import inspect
import io
import os
import re
import shlex
from pathlib import Path

import pytest
from mitmproxy.options import Options
from mitmproxy.tools import cmdline
from mitmproxy.tools.dump import DumpMaster
from mitmproxy.tools.web.master import WebMaster

from harness import run
from mcp_wiretap import cli, project
from mcp_wiretap.proxy import commands as addon_commands
from mcp_wiretap.proxy import options, replay_command
from mcp_wiretap.rule import find_rules

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
    """Every call of ours in the README, in blocks and in running text, as words."""
    blocks = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", README)
    calls = []
    for line in lines:
        words = shlex.split(line.removesuffix("&"), comments=True)
        if words and (words[0] == "mcp-wiretap" or words[0].startswith("./")) and words not in calls:
            calls.append(words)
    return calls


SCRIPTS = [words for words in commands() if words[0].startswith("./")]
WIRETAP = [words[1:] for words in commands() if words[0] == "mcp-wiretap" and words[1:]]


def test_the_two_commands_are_there() -> None:
    assert {"./scripts/run", "./scripts/test"} <= {words[0] for words in SCRIPTS}
    assert len(WIRETAP) > 10


@pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
def test_each_script_exists_and_may_be_run(words: list[str]) -> None:
    assert os.access(ROOT / words[0], os.X_OK)


@pytest.mark.parametrize("words", [words for words in SCRIPTS if words[0] == "./scripts/run"], ids=" ".join)
def test_each_call_of_run_is_understood(words: list[str]) -> None:
    run.parse(words[1:])


@pytest.mark.parametrize("words", [words for words in WIRETAP if words[0] in cli.TOOLS], ids=" ".join)
async def test_each_start_of_mitmproxy_has_arguments_that_it_knows(words: list[str]) -> None:
    known = Options()
    kind, parser = {"web": (WebMaster, cmdline.mitmweb), "dump": (DumpMaster, cmdline.mitmdump)}[words[0]]
    kind(known, with_termlog=False)  # registers the options of mitmproxy's own addons
    arguments = parser(known).parse_args(words[1:])
    for name in (entry.partition("=")[0] for entry in arguments.setoptions):
        assert name in known or name in options.NAMES


@pytest.mark.parametrize("words", [words for words in WIRETAP if words[0] not in cli.TOOLS], ids=" ".join)
def test_each_other_call_of_the_command_is_understood(words: list[str]) -> None:
    refused = io.StringIO()
    with contextlib.redirect_stderr(refused):
        try:
            cli._parser().parse_args(words)
        except SystemExit as ended:
            assert ended.code == 0, refused.getvalue()


def test_the_project_file_is_one_that_is_accepted(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(\[rules\].*?)```", README, re.DOTALL)
    (tmp_path / project.FILE).write_text(block, encoding="utf-8")
    found = project.load(tmp_path)
    found.check_rules(find_rules())
    assert (len(found.ignore), len(found.expect), len(found.silences)) == (1, 1, 1)


def test_the_table_lists_every_option_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(mcp_\w+)` \| (.+?) \|", README, re.MULTILINE))
    written = {"all": "none", "`true`": True, "`false`": False}
    said = {name: written.get(text, text.strip("`")) for name, text in rows.items()}
    assert said == {
        name: default if isinstance(default, bool) else str(default or "none") for name, _, default, _ in options._OPTIONS
    }


def test_the_table_lists_every_command_with_its_key() -> None:
    rows = dict(re.findall(r"^\| `(mcp\.[a-z.]+)[^`]*` \| (.*?) \|", README, re.MULTILINE))
    registered = set(
        re.findall(r'command\("(mcp\.[a-z.]+)"', inspect.getsource(addon_commands) + inspect.getsource(replay_command))
    )
    assert rows.keys() == registered
    for key, does, _, _ in addon_commands.KEYS:
        name = next(word for word in does.split() if word.startswith("mcp."))
        assert rows[name] == f"`{key}`"


def test_the_picture_is_there() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).read_bytes().startswith(b"\x89PNG")
