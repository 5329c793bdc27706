"""A rule pack as a team would write it: one file, one rule, its explanation beside it.

Run it with `mcp-wiretap audit RECORDING --rules tests/example_pack/house_rules.py`, or install a package whose entry point in the
group `mcp_wiretap.rules` names such a module.
"""

from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.model import Message


@rule(
    "ACME001",
    "tool-name-without-team",
    "Tool name does not begin with a team",
    on="request",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="https://acme.example/handbook#tools",
    methods=("tools/call",),
)
def tool_name_without_team(message: Message) -> Iterator[Finding]:
    """The tools of this house are called `team.tool`.

    Why: whoever reads a log sees whom to ask.

    Fix: put the team before the name.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "infra.deploy"}
          -> result {"content": []}
    """
    name = message.params.get("name")
    if isinstance(name, str) and "." not in name:
        yield Finding(f"the tool {name} names no team", [evidence(message.place("params", "name"), name, "team.tool")])
