"""The official conformance suite, run against one server directly and through the inspector: the same checks must pass.

The suite is an npm package (Node 22). It writes `checks.json` for each scenario: a list of checks with `id` and `status`.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.children import ROOT, Children
from harness.proxies import start_proxy

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
PATIENCE = 1_200.0  # seconds for one run of the whole suite

type Checks = dict[str, Counter[tuple[str, str]]]  # scenario -> (check, status) -> how often


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/conformance", description=__doc__)
    parser.add_argument("url", help="a server that runs, such as http://localhost:3000/mcp")
    parser.add_argument("--requirements", default="2026-07-28", help="the revision whose scenarios are run")
    parser.add_argument("--suite", type=Path, help=f"a folder where {SUITE} was installed; without it npx fetches it")
    asked = parser.parse_args(arguments)
    command = suite_command(asked.suite)
    if command is None:
        print("There is neither npx nor a folder with the suite (--suite); Node 22 is needed.", file=sys.stderr)
        return 2
    with Children() as children, tempfile.TemporaryDirectory() as scratch:
        wiretap = [sys.executable, "-m", "mcp_wiretap", "dump", "--set", "flow_detail=0", "--set", "keep_host_header=true"]
        proxy = start_proxy(children, [*wiretap, "--set", f"confdir={scratch}/conf"], [asked.url], port=18_300, cwd=ROOT)
        # By name: what the suite asks of the Host header must be asked of the same one.
        through = proxy.upstreams[0].proxied.replace("127.0.0.1", "localhost")
        runs = []
        for name, url in (("direct", asked.url), ("through", through)):
            out = Path(scratch, name)
            run(command, url, asked.requirements, out)
            runs.append(read_checks(out))
    return told(*runs)


def suite_command(folder: Path | None) -> list[str] | None:
    """How the suite is started; None where it cannot be."""
    if folder is None:
        return [npx, "--yes", SUITE] if (npx := shutil.which("npx")) else None
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = folder / "node_modules" / ".bin" / "node"  # npm gives a Node, too
    found = str(node) if node.exists() else shutil.which("node")
    return [found, str(program)] if program.exists() and found else None


def run(command: Sequence[str], url: str, requirements: str, out: Path) -> None:
    """Run the suite; that checks fail is no error."""
    words = [*command, "server", "--url", url, "--requirements", requirements, "-o", str(out)]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)


def read_checks(folder: Path) -> Checks:
    """The checks of a run. A scenario's folder is its name with the time."""
    checks: Checks = {}
    for path in sorted(folder.glob("*/checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name)
        found = json.loads(path.read_text(encoding="utf-8"))
        checks.setdefault(scenario, Counter()).update((one["id"], one["status"]) for one in found)
    return checks


def told(direct: Checks, through: Checks) -> int:
    """Print the numbers and what differs. The exit status."""
    for name, checks in (("direct", direct), ("through", through)):
        total = sum(counts.total() for counts in checks.values())
        passed = sum(number for counts in checks.values() for (_, status), number in counts.items() if status == "SUCCESS")
        print(f"{name}: {len(checks)} scenarios, {total} checks, {passed} passed")
    if not direct:
        print("The suite wrote no checks: does the server run?", file=sys.stderr)
        return 2
    differing = [name for name in sorted(direct.keys() | through.keys()) if direct.get(name) != through.get(name)]
    for name in differing:
        before, after = direct.get(name, Counter()), through.get(name, Counter())
        print(f"{name}: {_words(before - after)} directly, {_words(after - before)} through the inspector")
    if not differing:
        print("The same checks pass through the inspector and without it.")
    return 1 if differing else 0


def _words(counts: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{check} {status}" for check, status in sorted(counts)) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
