"""The text report: what it looks like (golden files; UPDATE_GOLDEN=1 writes them anew), and what it never lets through."""

import io
import os
import re
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from mcp_wiretap.report import text
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.rule import Silence
from mcp_wiretap.trace.limits import Limits
from tests.report.auditing import BOTH_ERAS, audit

GOLDEN = Path(__file__).parent / "golden"


def printed(made: Audit, width: int = 100, *, ascii_only: bool = False, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
    )
    text.write(made, console, ascii_only=ascii_only, zone=timezone(timedelta(hours=2), "+02"))
    return out.getvalue()


def golden(name: str, output: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(output, "utf-8")
    assert output == path.read_text("utf-8")


def everything() -> Audit:
    """An audit in which each section has something to say."""
    return audit(
        BOTH_ERAS + "modern break/rule {}\n  -> sse\nPOST http://server.example/mcp\n  body-lost\n  -> 202\n",
        BOTH_ERAS,
        error="cut off at byte 4711, inside the flow at byte 4000",
        silences=[Silence("TST003", "", "a cookie is harmless here")],
        limits=Limits(state=7),
    )


def test_the_whole_report() -> None:
    golden("both-eras", printed(audit(BOTH_ERAS)))


def test_every_section() -> None:
    golden("everything", printed(everything()))


def test_without_utf8_the_glyphs_are_ascii() -> None:
    output = printed(everything(), ascii_only=True)
    golden("ascii", output)
    assert output.isascii()


def test_a_narrow_terminal() -> None:
    golden("narrow", printed(audit(BOTH_ERAS), width=50))


def test_a_clean_recording() -> None:
    golden("clean", printed(audit('modern tools/list\n  -> result {"tools": []}\n')))


def test_no_mcp_traffic_at_all() -> None:
    golden("no-mcp", printed(audit("GET http://x.example/\n  -> 200 text/plain hello\n")))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for line in printed(everything(), width=width).splitlines():
        assert cell_len(line) <= max(min(width, text.WIDEST), text.NARROWEST), line


def test_wide_characters_count_double() -> None:
    script = 'modern tools/call {"name": "天気予報天気予報天気予報天気予報天気予報天気予報天気予報", "arguments": {}}\n'
    script += '  -> result {"content": [], "isError": true}\n'
    for line in printed(audit(script), width=60).splitlines():
        assert cell_len(line) <= 60


def test_a_hundred_equal_findings_are_one_line_with_a_count() -> None:
    output = printed(audit("modern tools/list\n  header Mcp-Method: ping\n" * 100))
    assert len(re.findall(r"TST001  Mcp", output)) == 1
    assert "100 ×" in output


def test_what_says_the_same_is_said_once_with_how_often() -> None:
    script = "modern tools/list\n  header Mcp-Method: ping\n" * 11 + "modern prompts/list\n  header Mcp-Method: ping\n"
    lines = [line.strip() for line in printed(audit(script)).splitlines()]
    assert lines.count("Mcp-Method says ping, the body says tools/list") == 1
    assert "the same in 10 more" in lines and "1 more, in other words" in lines


def test_a_damaged_recording_without_findings_has_no_check_mark() -> None:
    damaged = printed(audit('modern tools/list\n  -> result {"tools": []}\n', error="cut off"))
    nothing = printed(audit("GET http://x.example/\n  -> 200 text/plain hello\n"))
    assert "✓" not in damaged + nothing and "no findings in 1 MCP flow" in damaged


HOSTILE = "\\u001b[31m[bold red]x[/bold red]\\u202e\\u0007\\u200b\\u0000"


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_reaches_the_terminal_as_escapes_and_is_no_markup(terminal: bool) -> None:
    script = (
        f'modern tools/call {{"name": "{HOSTILE}", "arguments": {{}}}}\n'
        f'  -> result {{"content": "{HOSTILE}", "isError": true, "_meta": '
        f'{{"io.modelcontextprotocol/serverInfo": {{"name": "{HOSTILE}", "version": "{HOSTILE}"}}}}}}\n'
    )
    output = printed(audit(script), terminal=terminal)
    without_colour = re.sub(r"\x1b\[[0-9;]*m", "", output) if terminal else output
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e]", without_colour)
    assert "[bold red]x[/bold red]" in without_colour
    assert "\\x1b[31m" in without_colour and "\\u202e" in without_colour


def test_colour_only_on_a_terminal() -> None:
    assert "\x1b[" not in printed(audit(BOTH_ERAS))
    assert "\x1b[31m" in printed(audit(BOTH_ERAS), terminal=True)


def test_a_broken_expectation_comes_first_and_is_loud() -> None:
    made = audit(BOTH_ERAS)
    row = next(row for row in made.tally.endpoints.values() if "old" in row.url)
    row.expected, row.broken = "modern", "expected modern, got initialize"
    lines = printed(made).splitlines()
    first = next(number for number, line in enumerate(lines) if "era " in line) + 1
    assert "old-server" in lines[first]
    assert "✕ expected modern, got initialize" in lines[first + 1]
