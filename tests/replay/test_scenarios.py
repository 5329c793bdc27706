"""With the server switched off: real clients run their scenarios against the recording, twice, and notice nothing."""

import asyncio
import shutil

import pytest

from test_servers.config import CONFIGS, load
from test_servers.record import TS_CLIENT
from test_servers.scenarios import SCENARIOS, Target, run
from tests.replay.playing import RECORDINGS, playing, recorded

pytestmark = pytest.mark.e2e
HONEST = sorted(
    path.stem
    for path in CONFIGS.glob("*.json")
    if path.stem in SCENARIOS and (RECORDINGS / f"{path.stem}.flow").exists() and load(path).transport.type != "stdio"
)


@pytest.fixture(autouse=True)
def no_proxy_of_the_environment(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


WITH_STREAMS = ("subscriptions-modern-http", "subscriptions-legacy-http", "legacy-sse", "tasks-legacy-http", "dual-era-http")


@pytest.mark.parametrize(
    ("name", "timing"), [*((name, "recorded") for name in HONEST), *((name, "fast") for name in WITH_STREAMS)]
)
async def test_the_python_client_cannot_tell_the_difference(name, timing, capsys):
    sse = load(CONFIGS / f"{name}.json").transport.type == "sse"
    script = recorded(name)
    path = script.endpoints[0].split("/", 3)[3]
    said = []
    async with playing(script, fast=timing == "fast") as origin:
        for _ in range(2):
            status = await run(name, Target(f"{origin}/{path}", sse=sse))
            said.append(capsys.readouterr().out)
            assert status == 0, said[-1]
    assert said[0] == said[1]


@pytest.mark.skipif(
    shutil.which("node") is None or not (TS_CLIENT / "node_modules").exists(),
    reason="needs Node and an npm install in scripts/ts",
)
@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("ts-demo-modern", "modern"),  # a subscription is in it
        ("ts-demo-legacy", "legacy"),
        ("ts-mrtr-showcase-http", "tour"),
        ("ts-dual-era-http", "tour"),
    ],
)
async def test_the_typescript_client_cannot_tell_the_difference(name, scenario):
    said = []
    async with playing(recorded(name)) as origin:
        for _ in range(2):
            command = ["node", str(TS_CLIENT / "drive.mjs"), scenario, f"{origin}/mcp"]
            process = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
            told, _ = await process.communicate()
            said.append(told.decode())
            assert process.returncode == 0, said[-1]
    assert said[0] == said[1]
