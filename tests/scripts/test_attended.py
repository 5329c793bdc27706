"""`./scripts/run` as a person uses it: with mitmweb, until Ctrl-C."""

import json
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.bench import load
from harness.children import ROOT, Child, Children

pytestmark = pytest.mark.e2e

RUN = str(ROOT / "scripts" / "run")
PORTS = ["--port", "8300", "--web-port", "8400"]


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as children:
        yield children


def ctrl_c(child: Child) -> int:
    """The children of the run lead groups of their own, so a terminal too reaches only the run itself."""
    child.process.send_signal(signal.SIGINT)
    return child.wait(60)


def flows(page: str) -> list[dict[str, object]]:
    """What mitmweb at the address `page` (with its token) has in its list."""
    address, _, token = page.partition("?")
    with urllib.request.urlopen(f"{address}flows?{token}", timeout=20) as answer:
        return json.load(answer)


def test_in_front_of_a_server_of_ones_own_it_says_where_to_point_the_client(children: Children, tmp_path: Path) -> None:
    responder = children.start("responder", [sys.executable, "-m", "harness.bench.responder"], cwd=ROOT / "scripts")
    port = responder.wait_for(r'"port": (\d+)', 30)[1]
    home = {"HOME": str(tmp_path)}
    started = children.start("run", [RUN, f"http://127.0.0.1:{port}/mcp", *PORTS], **home)
    page = started.wait_for(r"mitmweb +(\S+)", 90)[1]
    proxied = started.wait_for(r"Point the client at +http://127\.0\.0\.1:(\d+)/mcp", 30)[1]
    load.list_tools(int(proxied))
    assert [flow["comment"] for flow in flows(page)] == ["modern tools/list -> complete"]
    assert ctrl_c(started) == 0
    assert started.output().rstrip().endswith("stopped")


def test_the_demonstration_shows_itself_in_mitmweb_and_stops_at_ctrl_c(children: Children) -> None:
    started = children.start("run", [RUN, *PORTS])
    page = started.wait_for(r"mitmweb +(\S+)", 90)[1]
    for name in ("inspector", "modern", "legacy"):
        started.wait_for(rf"^ +{name} +http://127\.0\.0\.1:\d+/mcp", 30)
    deadline = time.monotonic() + 120
    while not any(re.search("-32020 HeaderMismatch", str(flow["comment"])) for flow in flows(page)):
        assert time.monotonic() < deadline, started.output()
        time.sleep(0.5)
    assert ctrl_c(started) == 0
