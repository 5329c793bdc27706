"""`python -m test_servers CONFIG.json [CONFIG.json ...] [--port N]`: serve, print the URLs, wait for a signal.

Exit status: 0 after SIGINT or SIGTERM, 2 for a bad command line, a bad config or a taken `--port`.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from test_servers.config import Config, ConfigError, load
from test_servers.stdio_rogues import ROGUES, serve


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m test_servers", description="Serve MCP test servers from configs.")
    parser.add_argument("configs", nargs="+", type=Path, metavar="CONFIG", help="a file of test_servers/configs")
    parser.add_argument("--port", type=int, help="port of the first config, the next ones follow it; exit 2 if one is taken")
    parser.add_argument("--stdio", action="store_true", help="serve one config over standard input and output, whatever it says")
    parser.add_argument("--misbehave", choices=ROGUES, help="with --stdio: what the server does wrong with its pipes")
    options = parser.parse_args(argv)
    if options.port is not None and not 0 <= options.port <= 65535 - len(options.configs) + 1:
        parser.error(f"--port {options.port}: ports go from 0 to 65535, one for each config")
    try:
        configs = _load_all(options.configs)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if options.misbehave is not None and options.stdio:
        return serve(str(options.configs[0]), options.misbehave)
    if options.stdio or any(config.transport.type == "stdio" for config in configs):
        if len(configs) > 1 or options.port is not None:
            print("a stdio config is served alone and without --port", file=sys.stderr)
            return 2
        from test_servers.stdio import serve_stdio

        return asyncio.run(serve_stdio(configs[0]))
    return asyncio.run(_serve(configs, options.port))


def _load_all(paths: Sequence[Path]) -> list[Config]:
    configs, faults = [], []
    for path in paths:
        try:
            configs.append(load(path))
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return configs


async def _serve(configs: Sequence[Config], port: int | None) -> int:
    # Imported late: a bad config is told before the SDK is loaded.
    from test_servers.serving import PortTaken, bind_all, running, stop_signals

    if port is None:
        wanted = [(config.transport.port, False) for config in configs]
    else:
        wanted = [(port + index if port else 0, True) for index in range(len(configs))]
    try:
        sockets = bind_all(wanted)
    except PortTaken as error:
        print(error, file=sys.stderr)
        return 2
    with stop_signals() as stop:
        async with running(configs, sockets) as servers:
            for config, server in zip(configs, servers, strict=True):
                print(f"{config.server_info.name} {server.url}", flush=True)
            await stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
