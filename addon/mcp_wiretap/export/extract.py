"""The smallest part of a recording that still shows what was found in one conversation, and the test that expects it.

Which flows a finding needs (the tools/list that declared a header, the initialize of the session, the round before) is not
guessed: flows are left out, and the audit of the rest says whether the findings are still there (delta debugging).
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_AUDITS = 400  # of one search; what is left then is small enough, if not the smallest

type Shown = frozenset[tuple[str, str]]  # (rule, party)


@dataclass(slots=True)
class Search:
    """`shows(flows)`: whether a recording of these flows has the same findings."""

    shows: Callable[[Sequence[str]], bool]
    budget: int = MOST_AUDITS
    exhausted: bool = False

    def smallest(self, needed: Sequence[str], others: Sequence[str], likely: Sequence[str] = ()) -> list[str]:
        """The flows beside `needed` without which the findings are gone. `likely`: those to try alone first."""
        if self._asks([*needed]):
            return []
        if likely and len(likely) < len(others) and self._asks([*needed, *likely]):
            others = likely
        return self._reduced(list(needed), list(others))

    def _reduced(self, needed: list[str], left: list[str]) -> list[str]:
        parts = 2
        while left:
            size = max(len(left) // parts, 1)
            for start in range(0, len(left), size):
                without = left[:start] + left[start + size :]
                if self._asks(needed + without):
                    left, parts = without, max(parts - 1, 2)
                    break
                if self.exhausted:
                    return left
            else:
                if size == 1:
                    return left
                parts = min(parts * 2, len(left))
        return left

    def _asks(self, flows: Sequence[str]) -> bool:
        if self.budget <= 0:
            self.exhausted = True
            return False
        self.budget -= 1
        return self.shows(flows)


def name_of(method: str | None, name: str | None, shown: Shown) -> str:
    """A file name, and the name of a test, that says what it is about."""
    words = [method or "exchange", name or "", *sorted({rule for rule, _ in shown})[:3]]
    return re.sub(r"[^A-Za-z0-9]+", "_", " ".join(words)).strip("_").lower()[:80] or "case"


def test_file(name: str, recording: str, flows: Sequence[str], shown: Shown, told: Sequence[str], version: str) -> str:
    """A pytest file. `told`: the findings in words, for the reader."""
    described = "\n".join(f"    {line}" for line in told)
    expected = "\n".join(f"    ({json.dumps(rule)}, {json.dumps(party)})," for rule, party in sorted(shown))
    listed = "\n".join(f"    {json.dumps(flow)}," for flow in flows)
    return _TEST.format(
        name=name, recording=json.dumps(recording), version=version, told=described, expected=expected, flows=listed
    )


_TEST = '''\
"""What mcp-wiretap {version} found in {recording}:

{told}
"""

import json
from pathlib import Path

from mcp_wiretap.cli import main

RECORDING = Path(__file__).with_name({recording})
CONVERSATION = {{
{flows}
}}
EXPECTED = {{
{expected}
}}


def test_{name}(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    main(["audit", str(RECORDING), "--format", "json", "--fail-on", "never", "--output", str(report)])
    findings = json.loads(report.read_text(encoding="utf-8"))["findings"]
    assert {{(f["rule"], f["party"]) for f in findings if f["flow"] in CONVERSATION}} == EXPECTED
'''


def replay_test(name: str, recording: str, told: Sequence[str], version: str) -> str:
    """A pytest file that asks a server once more what the recording asked. `told`: the operations in words, for the reader."""
    lines = "\n".join(f"- {line}" for line in told)
    return _REPLAY.format(version=version, recording=json.dumps(recording), told=lines, name=name)


_REPLAY = '''"""What a recorded client asked, asked once more; mcp-wiretap {version} made it of a recording:

{told}

    MCP_SERVER=http://127.0.0.1:3000/mcp pytest          a server over HTTP
    MCP_SERVER_COMMAND="my-server --flag" pytest         a server on stdio

All recorded calls are made, those of tools that change something, too.
"""

import json
import os
from pathlib import Path

import pytest

from mcp_wiretap.cli import main

RECORDING = Path(__file__).with_name({recording})
URL, COMMAND = os.environ.get("MCP_SERVER"), os.environ.get("MCP_SERVER_COMMAND")


@pytest.mark.skipif(not (URL or COMMAND), reason="needs MCP_SERVER or MCP_SERVER_COMMAND")
def test_{name}(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    server = ["--to", URL] if URL else ["--command", COMMAND]
    main(["replay", str(RECORDING), *server, "--yes", "--timing", "fast", "--format", "json", "--output", str(report)])
    told = json.loads(report.read_text(encoding="utf-8"))
    assert told["stopped"] is None
    assert [one for one in told["operations"] if one["outcome"] != "same"] == []
    assert told["findings"]["new"] == []
'''
