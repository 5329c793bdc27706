"""The loopback way to the proxy: a port and a secret in a file, both sides prove that they know it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.stdio.tap import Tap
from mcp_wiretap.stdio import address


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Path]:
    """The token file of a proxy that listens."""
    path = tmp_path / "token"
    tap = Tap(f"loopback:{path}", lambda: None, Faults())
    tap.start()
    while not path.exists() or not path.read_text():
        await asyncio.sleep(0.01)
    yield path
    tap.stop()
    assert not path.exists()


async def test_who_can_read_the_file_gets_in(file: Path) -> None:
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o600
    (await asyncio.to_thread(address.connect, str(file), 5.0)).close()


async def test_who_does_not_know_the_secret_does_not(file: Path) -> None:
    told = json.loads(file.read_text())
    other = file.with_name("other")
    other.write_text(json.dumps({**told, "token": "0" * 64}))
    with pytest.raises(OSError, match="is not that of the proxy"):
        await asyncio.to_thread(address.connect, str(other), 5.0)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"port": "x", "token": 1}'])
def test_another_file_is_no_token_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(address.NotOurs):
        address.connect(str(tmp_path / "file"), 1.0)


def test_the_usual_place_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_WIRETAP_SOCKET", "/somewhere")
    assert address.default() == "/somewhere"
    monkeypatch.delenv("MCP_WIRETAP_SOCKET")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert address.default() == os.path.join("/run/user/1", ".mcp-wiretap.sock")  # noqa: PTH118
