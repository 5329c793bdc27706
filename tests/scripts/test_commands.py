"""The commands themselves: that they are well-formed, that they explain themselves, that the README tells the truth."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def is_bash(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith((b"#!/usr/bin/env bash", b"# Shared by the commands"))


SHELL = [path.relative_to(ROOT) for path in (*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run") if is_bash(path)]
COMMANDS = [path for path in SHELL if path.name != "common.sh"]


@pytest.mark.parametrize("path", SHELL, ids=str)
def test_bash_can_parse_it(path: Path) -> None:
    subprocess.run(["bash", "-n", str(ROOT / path)], check=True)


@pytest.mark.parametrize("path", COMMANDS, ids=str)
def test_it_may_be_run(path: Path) -> None:
    assert os.access(ROOT / path, os.X_OK)


@pytest.mark.parametrize("name", ["freeze", "test"])
def test_help_is_the_comment_at_the_top(name: str) -> None:
    done = subprocess.run(
        [str(ROOT / "scripts" / name), "--help"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert f"./scripts/{name}" in done.stdout
    assert "#" not in done.stdout
