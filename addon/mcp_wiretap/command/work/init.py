"""`mcp-wiretap init [RUN.flow]`: a commented wiretap.toml, and a workflow that audits in CI."""

import argparse
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.output import replacing
from mcp_wiretap.command.tracing import check_readable, follow
from mcp_wiretap.project import FILE
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.secret import knowing, shown

SILENCES = 20
TOOLS = 50
WORKFLOW = Path(".github/workflows/mcp-wiretap.yml")


def run(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.output)
    targets = [directory / FILE, *([directory / WORKFLOW] if arguments.ci is not None else [])]
    for target in targets:
        if target.exists():
            raise Refused(f"{target} is there already; it is not overwritten")
    text = _without_recording()
    if arguments.file is not None:
        text = _of_recording(arguments)
    for target, content in zip(targets, (text, _WORKFLOW), strict=False):
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            file.write(content.encode())
        print(target)
    return 0


def _without_recording() -> str:
    return _project([], [], Counter())


def _of_recording(arguments: argparse.Namespace) -> str:
    check_readable(arguments.file)
    chosen = settings.read(arguments)
    found: Counter[tuple[str, str, str]] = Counter()

    def retire(exchange: Exchange) -> None:
        for finding in exchange.findings:
            if finding.severity in ("error", "warning"):
                found[finding.rule, _pattern(exchange.endpoint.url), finding.message] += 1

    recording = Recording(Path(arguments.file))
    inspector, _ = follow([recording], chosen, retire)
    with knowing(inspector.secrets):
        return _project(_eras(inspector), _tools(inspector), found)


def _eras(inspector: Inspector) -> list[tuple[str, str]]:
    proven = [endpoint for endpoint in inspector.endpoints.values() if endpoint.proven and not endpoint.on_stdio]
    return [(_pattern(one.url), one.era) for one in proven if one.era in ("modern", "legacy")]


def _tools(inspector: Inspector) -> list[str]:
    return sorted({name for endpoint in inspector.endpoints.values() for name in endpoint.tools})[:TOOLS]


def _pattern(url: str) -> str:
    """HOST[:PORT]/PATH of a server, as a pattern of the project file. On this machine its port is another each time: HOST."""
    parts = urlsplit(url)
    host = parts.hostname or "*"
    if host in ("127.0.0.1", "localhost", "::1"):
        return host if ":" not in host else f"[{host}]"
    return f"{parts.netloc}{parts.path}".removesuffix("/") or "*"


def _quoted(text: str) -> str:
    return '"' + shown(text, 200).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _project(eras: list[tuple[str, str]], tools: list[str], found: Counter[tuple[str, str, str]]) -> str:
    expect = [f"{_quoted(pattern)} = {_quoted(era)}" for pattern, era in dict(eras).items()]
    silences: list[str] = []
    for (rule, pattern, message), count in found.most_common(SILENCES):
        silences += [
            f"# {count} x {rule}: {shown(message, 100)}",
            "# [[silence]]",
            f"# rule = {_quoted(rule)}",
            f"# endpoint = {_quoted(pattern)}",
            '# reason = "say why it may stay"',
            "",
        ]
    named = ", ".join(map(_quoted, tools)) or '"deploy"'
    return _TEMPLATE.format(
        expect="\n".join(expect) or '# "api.example.com" = "modern"',
        tools=f"# expect_tools = [{named}]",
        silences="\n".join(silences)
        or '# [[silence]]\n# rule = "HDR005"\n# endpoint = "old.example.com/mcp"\n# reason = "say why"\n',
    )


_TEMPLATE = """\
# What mcp-wiretap is to know of this project. It is read by every command in this folder and below, and by the addon.
# All of it: mcp-wiretap's page "Audit and CI".

[rules]
# select = ["HDR", "PAR"]      # only these: ids, families, names, or a party
# ignore = ["CAC004"]
# files = ["rules/ours.py"]    # rules of your own; they run once you have allowed them: mcp-wiretap trust

# The era that you expect of a server; traffic of the other one is an error (ERA025).
[expect]
{expect}

# What you hold servers to. What breaks it is an error.
[contract]
# baseline = "mcp-baseline.json"    # made by: mcp-wiretap baseline run.flow
{tools}
# forbid_tools = ["delete_*"]
# max_ms = {{"tools/call" = 5000}}
# max_failures = 0.1
# max_definitions = 50000

# Findings that you know and leave: they are counted, and no longer shown.
{silences}"""
_WORKFLOW = """\
# Records what your tests say to your MCP server, and fails where the specification is broken.
name: mcp-wiretap
on: [push, pull_request]
permissions:
  contents: read
jobs:
  audit:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - run: pip install mcp-wiretap
      # Your server, here on port 3000, is seen through the proxy on port 8080.
      - run: |
          ./start-my-server --port 3000 &
          mcp-wiretap dump -q --mode reverse:http://127.0.0.1:3000 --listen-host 127.0.0.1 \\
            --set keep_host_header=true -w run.flow &
          proxy=$!
          sleep 5
          ./run-my-tests --server http://127.0.0.1:8080/mcp
          kill $proxy; wait $proxy || true
      - run: mcp-wiretap audit run.flow --format junit --output audit.xml
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: mcp
          path: audit.xml
"""
