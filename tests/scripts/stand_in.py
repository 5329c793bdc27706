"""Stands in for the servers, the client and the mcp-wiretap command, so that what can go wrong with them can be staged.

`FAULTS` in the environment names what goes wrong, by words; each process leaves its number as a file in folder `PIDS`.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

FAULTS = os.environ.get("FAULTS", "").split()
EMPTY = {
    "flows": [{"era": "modern"}, {"era": "legacy"}, {"era": None}],
    "conversations": [],
    "summary": {"error": 1, "warning": 0, "info": 2, "flows": 3, "mcp_flows": 2},
    "faults": [{"flow": None, "where": "x", "error": "y"}] if "internal-fault" in FAULTS else [],
}


def stay() -> None:
    while True:
        time.sleep(0.05)


def servers() -> None:
    if "servers-die" in FAULTS:
        sys.exit("the port is taken")
    print("some log line", flush=True)
    if "servers-silent" not in FAULTS:
        print(json.dumps({"modern": "http://127.0.0.1:1/mcp", "legacy": "http://127.0.0.1:2/mcp"}), flush=True)
    stay()


def client() -> None:
    if "client-fails" in FAULTS:
        sys.exit("the client has seen what it must not see")
    if "client-hangs" in FAULTS:
        stay()


def proxy(arguments: list[str]) -> None:
    if "-w" in arguments:
        recording = Path(arguments[arguments.index("-w") + 1])

    def end(*_: object) -> None:
        if "proxy-stays" in FAULTS:
            return
        recording.write_bytes(b"provisional")
        sys.exit(1 if "proxy-fails-at-the-end" in FAULTS else 0)

    signal.signal(signal.SIGTERM, end)
    if "port-lost" in FAULTS and not Path("tried").exists():
        Path("tried").touch()
        sys.exit("[Errno 98] error while attempting to bind: address already in use")
    for mode in (word for word in arguments if word.startswith("reverse:")):
        print(f"reverse proxy to {mode} listening at 127.0.0.1:1.", flush=True)
    if "proxy-dies" in FAULTS:
        sys.exit("Error logged during startup, exiting...")
    stay()


def main(what: str, *arguments: str) -> int:
    if pids := os.environ.get("PIDS"):
        (Path(pids) / str(os.getpid())).touch()
    match what:
        case "servers":
            servers()
        case "client":
            client()
        case "dump":
            proxy(list(arguments))
        case "annotate":
            shutil.copy(arguments[0], arguments[1])
            return 2 if "annotate-fails" in FAULTS else 0
        case "audit":
            Path(arguments[-1]).write_text(json.dumps(EMPTY), encoding="utf-8")
            return 2 if "audit-fails" in FAULTS else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
