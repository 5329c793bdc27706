"""README and documentation tell the truth: commands exist with the options that they are given, tables are whole."""

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
from mcp_wiretap.proxy import options, probe_command, replay_command
from mcp_wiretap.rule import find_rules
from mcp_wiretap.stdio.wrapper import read_arguments

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}
README = "\n\n".join(TEXTS.values())


def commands() -> list[list[str]]:
    """Every call of ours in README and documentation, in blocks and in running text, as words."""
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
    if words == [words[0]] and words[0] in cli.COMMANDS:
        return  # the name of a command in a sentence
    if words[0] == "stdio":
        read_arguments([*words[1:], "server"] if words[-1] == "--" else words[1:])
        return
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


def test_the_table_lists_every_command_with_its_key() -> None:
    rows = dict(re.findall(r"^\| `(mcp\.[a-z.]+)[^`]*` \| (.*?) \|", README, re.MULTILINE))
    registered = set(
        re.findall(r'command\("(mcp\.[a-z.]+)"', "".join(map(inspect.getsource, (addon_commands, replay_command, probe_command))))
    )
    assert rows.keys() == registered
    for key, does, _, _ in addon_commands.KEYS:
        name = next(word for word in does.split() if word.startswith("mcp."))
        assert rows[name] == f"`{key}`"


def test_the_pictures_are_there() -> None:
    pictures = [(page.parent / path) for page, text in TEXTS.items() for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)]
    assert len(pictures) > 2
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_no_page_links_to_what_is_not_there() -> None:
    for page, text in TEXTS.items():
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
