"""The documentation: generated pages are those of now, the site builds without a warning, and what the code cites is there."""

import re
import subprocess
import sys
from pathlib import Path

from harness import docs
from mcp_wiretap.proxy import options

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = docs.REFERENCE / "commands.md"  # argparse words its help differently from one Python to the next


def test_the_generated_pages_are_those_of_now() -> None:
    stale = [path.relative_to(ROOT) for path in docs.stale() if path != COMMANDS]
    assert not stale, "write them anew: ./scripts/docs --write"


def test_the_page_of_commands_has_every_command() -> None:
    written = COMMANDS.read_text(encoding="utf-8")
    made = docs.commands_page()
    for heading in re.findall(r"^### .+$|^\| `mcp\.[a-z.]+`", made, re.MULTILINE):
        assert heading in written


def test_the_page_of_options_has_every_option() -> None:
    written = (docs.REFERENCE / "options.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(mcp_\w+)`", written, re.MULTILINE)) == options.NAMES


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ".mkdocs.yml", "-d", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "rules" / "HDR004.html").is_file()


def test_each_reading_that_the_code_cites_is_explained() -> None:
    explained = set(re.findall(r"^\| (A[0-9]+) ", (ROOT / "docs" / "ambiguities.md").read_text(encoding="utf-8"), re.MULTILINE))
    cited = set()
    for base in ("addon", "rules"):
        for path in (ROOT / base).rglob("*.py"):
            cited |= set(re.findall(r"\((?:[^()]*[ ,])?(A[0-9]{1,2})[),:]", path.read_text(encoding="utf-8")))
    assert cited and cited <= explained
