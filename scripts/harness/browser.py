"""Where Chromium is and how it is started: without a screen, as root too, and without a word to anybody outside."""

import shutil
from pathlib import Path

from harness.children import ChildError

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> Path:
    """The system's Chromium. Raises ChildError when there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    raise ChildError(f"there is no Chromium (looked for {', '.join(NAMES)}); on Debian and Ubuntu: apt install chromium")
