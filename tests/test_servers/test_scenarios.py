"""Every honest config is driven through its scenario by the Python SDK's client."""

import pytest

from test_servers.config import CONFIGS, load
from test_servers.scenarios import SCENARIOS, Target, run
from test_servers.serving import bind, running

HONEST = sorted(path.stem for path in CONFIGS.glob("*.json") if path.stem != "schema" and "demo" not in path.stem)


def test_every_honest_config_has_a_scenario() -> None:
    assert set(HONEST) <= set(SCENARIOS)


@pytest.mark.e2e
@pytest.mark.parametrize("name", HONEST)
async def test_the_scenario_completes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = CONFIGS / f"{name}.json"
    config = load(path)
    if config.transport.type == "stdio":
        status = await run(name, Target.stdio(path))
    else:
        async with running([config], [bind(0, exact=True)]) as (server,):
            status = await run(name, Target(server.url, sse=config.transport.type == "sse"))
    assert status == 0, capsys.readouterr().out
