"""The demonstration: two servers, and a client that shows every situation once.

    python -m test_servers.demo servers [--modern-port N] [--legacy-port N]
    python -m test_servers.demo client --modern URL --legacy URL [--loop SECONDS]

`servers` prints one JSON line {"modern": url, "legacy": url} when both answer, and serves until a signal. `client`
goes through whatever URLs it is given (a proxy's), prints a line a step, and exits with 0 only if every step ended as
expected.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from test_servers.config import CONFIGS, load


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m test_servers.demo", description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    servers = parts.add_parser("servers", help="serve both eras")
    servers.add_argument("--modern-port", type=int, help="default: a free port; exit 2 if taken")
    servers.add_argument("--legacy-port", type=int, help="default: a free port; exit 2 if taken")
    client = parts.add_parser("client", help="drive the scenario")
    client.add_argument("--modern", required=True, metavar="URL")
    client.add_argument("--legacy", required=True, metavar="URL")
    client.add_argument("--loop", type=float, metavar="SECONDS", help="begin again after so many seconds, until stopped")
    options = parser.parse_args(argv)
    if options.part == "servers":
        return asyncio.run(_serve(options.modern_port, options.legacy_port))
    return asyncio.run(_drive(options.modern, options.legacy, options.loop))


async def _serve(modern_port: int | None, legacy_port: int | None) -> int:
    from test_servers.serving import PortTaken, bind_all, running, stop_signals

    configs = [load(CONFIGS / "demo-modern.json"), load(CONFIGS / "demo-legacy.json")]
    try:
        sockets = bind_all([(port or 0, port is not None) for port in (modern_port, legacy_port)])
    except PortTaken as error:
        print(error, file=sys.stderr)
        return 2
    with stop_signals() as stop:
        async with running(configs, sockets) as (modern, legacy):
            print(json.dumps({"modern": modern.url, "legacy": legacy.url}), flush=True)
            await stop.wait()
    return 0


async def _drive(modern: str, legacy: str, loop: float | None) -> int:
    from test_servers.demo_client import demonstrate
    from test_servers.serving import stop_signals

    if loop is None:
        return await demonstrate(modern, legacy)
    worst = 0
    with stop_signals() as stop:
        while not stop.is_set():
            round_ = asyncio.create_task(demonstrate(modern, legacy))
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait({round_, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not round_.done():
                round_.cancel()
                await asyncio.gather(round_, return_exceptions=True)
                break
            stopped.cancel()
            worst = max(worst, round_.result())
            try:
                await asyncio.wait_for(stop.wait(), loop)
            except TimeoutError:
                continue
    return worst


if __name__ == "__main__":
    sys.exit(main())
