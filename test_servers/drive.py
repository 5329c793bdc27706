"""Drive the scenario of a config with the Python SDK's client.

    python -m test_servers.drive CONFIG                        start the server here, drive it directly
    python -m test_servers.drive CONFIG --via URL              through a reverse proxy in front of a running server
    python -m test_servers.drive CONFIG --server URL [--forward PROXY_URL]
                                                               a running server, by way of a forward proxy if one is given
    python -m test_servers.drive --rogue NAME [--via URL]      a client that is wrong on purpose, against its honest server

CONFIG is a path or the name of a file in test_servers/configs. Servers behind OAuth want `--forward`: their metadata name
their own origin. Exit status: 0 if the scenario was completed, 1 if a step failed, 2 for a bad command line or config.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from test_servers.config import CONFIGS, Config, ConfigError, load


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m test_servers.drive", description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("config", metavar="CONFIG", nargs="?")
    what.add_argument("--rogue", metavar="NAME", help="a rogue client of test_servers/rogue_clients")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--via", metavar="URL", help="where a reverse proxy offers the server; the path may be left out")
    where.add_argument("--server", metavar="URL", help="where the server itself runs; the path may be left out")
    parser.add_argument("--forward", metavar="PROXY_URL", help="a forward proxy to go through")
    options = parser.parse_args(argv)
    if options.rogue is not None:
        from test_servers.rogue_clients import ROGUE_CLIENTS

        if options.rogue not in ROGUE_CLIENTS:
            print(f"there is no rogue client {options.rogue}; there is {', '.join(sorted(ROGUE_CLIENTS))}", file=sys.stderr)
            return 2
        options.config = ROGUE_CLIENTS[options.rogue].config
    path = config_path(options.config)
    try:
        config = load(path)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if config.transport.type == "stdio" and (options.via or options.server or options.forward):
        print("a stdio config is driven directly, without --via, --server and --forward", file=sys.stderr)
        return 2
    if options.forward:
        # The SDK's client reads the environment; loopback is not exempt unless NO_PROXY says so.
        os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = options.forward
        for name in ("NO_PROXY", "no_proxy"):
            os.environ.pop(name, None)
    return asyncio.run(_drive(config, path, options.via or options.server, options.rogue))


def config_path(given: str) -> Path:
    """The file that a name or a path means."""
    path = Path(given)
    if path.exists() or path.suffix == ".json" or len(path.parts) > 1:
        return path
    return next(CONFIGS.rglob(f"{given}.json"), CONFIGS / f"{given}.json")


def endpoint(config: Config, url: str) -> str:
    """`url` with the path of the config's endpoint, unless it has a path of its own."""
    if urlsplit(url).path.strip("/"):
        return url
    default = "/sse" if config.transport.type == "sse" else "/mcp"
    return url.rstrip("/") + (config.transport.path or default)


async def _drive(config: Config, path: Path, url: str | None, rogue: str | None) -> int:
    from test_servers.rogue_clients import ROGUE_CLIENTS
    from test_servers.scenarios import SCENARIOS, Target, run
    from test_servers.serving import bind, running

    name = rogue or path.stem
    if name not in SCENARIOS and name not in ROGUE_CLIENTS:
        print(f"there is no scenario for {name}; there is one for {', '.join(sorted(SCENARIOS))}", file=sys.stderr)
        return 2
    if config.transport.type == "stdio":
        return await run(name, Target.stdio(path))
    if url is not None:
        return await run(name, Target(endpoint(config, url), sse=config.transport.type == "sse"))
    async with running([config], [bind(0, exact=True)]) as (server,):
        return await run(name, Target(server.url, sse=config.transport.type == "sse"))


if __name__ == "__main__":
    sys.exit(main())
