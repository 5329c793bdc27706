"""Makes .venv what pyproject.toml and constraints.txt say, and does nothing when it already is.

Runs on a bare interpreter before anything is installed, so it imports the standard library only. Two stamps inside
.venv tell what it was made for: a change of interpreter or place makes it anew, a change of pyproject.toml or
constraints.txt installs again. A stamp is written last, so a set-up that was cut short is done again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "dev"
PLACE_STAMP = "mcp-wiretap-place"
INSTALL_STAMP = "mcp-wiretap-install"


class SetupError(Exception):
    """The environment cannot be made; the text says what is missing."""


def place(folder: Path, version: str) -> str:
    """What a virtual environment cannot survive a change of: where it stands and which Python it runs."""
    return json.dumps({"folder": str(folder), "python": version})


def wanted(root: Path) -> str:
    """A digest of everything that decides what gets installed."""
    digest = hashlib.sha256(EXTRAS.encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return digest.hexdigest()


def read_stamp(folder: Path, name: str) -> str | None:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except OSError:
        return None


def is_ready(folder: Path, root: Path) -> bool:
    return read_stamp(folder, INSTALL_STAMP) == wanted(root) and stands_here(folder)


def stands_here(folder: Path) -> bool:
    """False when there is no working environment, or it was moved, or its interpreter was exchanged.

    One without a stamp was made by somebody else and is kept.
    """
    version = python_version(folder)
    return version is not None and read_stamp(folder, PLACE_STAMP) in (None, place(folder, version))


def python_version(folder: Path) -> str | None:
    """The version of the interpreter inside `folder`, None if there is none that runs."""
    if Path(sys.prefix) == folder:
        return platform.python_version()
    command = [str(folder / "bin" / "python"), "-I", "-c", "import platform; print(platform.python_version())"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Lets one set-up at a time work on this checkout. The lock goes with the process, so none is ever left behind."""
    with (root / "scripts" / "common.sh").open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("Another set-up is at work in this checkout; waiting for it ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make(folder: Path, root: Path) -> None:
    """Create the environment where needed and install the project into it, editable, by the constraints.

    Raises SetupError when something cannot be had; the installer's own words are on stderr by then.
    """
    if not stands_here(folder):
        _say(f"Making {folder.name} with Python {platform.python_version()} ({sys.executable}) ...")
        try:
            venv.create(folder, clear=True, with_pip=True, symlinks=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SetupError(f"cannot make {folder}: {error}") from error
    (folder / INSTALL_STAMP).unlink(missing_ok=True)
    _say("Installing mcp-wiretap and what it needs (the first time this takes a minute or two) ...")
    started = time.monotonic()
    python = [str(folder / "bin" / "python"), "-I", "-m"]
    if _run([*python, "pip", "--version"], quiet=True):
        _run([*python, "ensurepip"])
    options = ["-qq", "--disable-pip-version-check", "--no-input", "--retries", "5"]
    options += ["--constraint", str(root / "constraints.txt"), "--editable", f"{root}[{EXTRAS}]"]
    if _run([*python, "pip", "install", *options]):
        raise SetupError("pip could not install what the project needs (its words are above). Is the package index reachable?")
    _run([*python, "compileall", "-q", str(root / "addon"), str(root / "rules")], quiet=True)  # as pip does where it copies
    version = python_version(folder)
    if version is None:
        raise SetupError(f"the interpreter in {folder} does not run")
    (folder / PLACE_STAMP).write_text(place(folder, version), encoding="utf-8")
    (folder / INSTALL_STAMP).write_text(wanted(root), encoding="utf-8")
    _say(f"Installed in {time.monotonic() - started:.0f} s.")


def _run(command: list[str], *, quiet: bool = False) -> int:
    """The exit status. Output goes to stderr; settings that would lead pip out of the environment are dropped."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER")}
    stderr = subprocess.DEVNULL if quiet else None
    stdout = subprocess.DEVNULL if quiet else sys.stderr
    return subprocess.run(command, env=environment, stdout=stdout, stderr=stderr, check=False).returncode


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    folder = Path(sys.argv[1])
    if is_ready(folder, ROOT):
        return 0
    try:
        with alone(ROOT):
            if not is_ready(folder, ROOT):
                make(folder, ROOT)
    except SetupError as error:
        _say(f"mcp-wiretap: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
