"""The import contracts: a forbidden import in any module breaks them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.house.test_imports import ROOT, modules

MAY = re.compile(r"mcp_wiretap\.(proxy|web)\b|mcp_wiretap\.command\.tools$")  # import mitmproxy
WITHOUT_CLOCK = re.compile(r"(mcp_wiretap\.(wire|trace|rule|report|view|pages)|mcp_wiretap_rules)\b")


def _lint(folder: Path) -> str:
    path = os.pathsep.join((str(folder / "addon"), str(folder / "rules")))
    command = [
        str(Path(sys.executable).parent / "lint-imports"),
        "--no-logo",
        "--no-cache",
        "--config",
        str(folder / "pyproject.toml"),
    ]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "300"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def _copy(folder: Path) -> Path:
    for name in ("addon", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_mitmproxy_and_a_clock_are_refused_in_any_module_that_may_not_have_them(tmp_path: Path) -> None:
    copied = _copy(tmp_path)
    changed = {}
    for name, path in modules().items():
        wrong = ["import mitmproxy"] if not MAY.match(name) else []
        wrong += ["import time"] if WITHOUT_CLOCK.match(name) else []
        if wrong:
            changed[name] = wrong
            with (copied / path.relative_to(ROOT)).open("a", encoding="utf-8") as file:
                file.write("\n" + "\n".join(wrong) + "\n")
    said = _lint(copied)
    for name, wrong in changed.items():
        for what in wrong:
            assert re.search(rf"{re.escape(name)} -> {what.removeprefix('import ')}\b", said), f"{name}: {what} was not refused"


def test_an_arrow_up_is_refused(tmp_path: Path) -> None:
    copied = _copy(tmp_path)
    for below, above in (("wire/uri.py", "mcp_wiretap.trace.model"), ("trace/streams/logs.py", "mcp_wiretap.trace.inspector")):
        with (copied / "addon" / "mcp_wiretap" / below).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {above}\n")
    said = _lint(copied)
    assert "mcp_wiretap.wire.uri -> mcp_wiretap.trace.model" in said
    assert "mcp_wiretap.trace.streams.logs -> mcp_wiretap.trace.inspector" in said
