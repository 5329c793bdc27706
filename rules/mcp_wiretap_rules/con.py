"""CON: the user's own contract with servers: tools that must or must not be there, times, failures, context cost.

These rules are silent where no contract is given (`[contract]` in wiretap.toml, or options of `audit`).
"""

from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.lists.promises import BREACHES
from mcp_wiretap.trace.model import Exchange

SPEC = "your contract"


def _breaches(exchange: Exchange, *lines: str) -> Iterator[Finding]:
    for breach in exchange.facts.get(BREACHES) or ():
        if breach.line in lines:
            yield Finding(breach.words, [evidence(breach.where, breach.value, breach.expected)])


@rule(
    "CON001",
    "contract-tool-missing",
    "A tool that the contract expects is not offered",
    on="finish",
    level="may-note",
    party="server",
    era="both",
    severity="error",
    spec=SPEC,
    needs=(BREACHES,),
)
def contract_tool_missing(exchange: Exchange) -> Iterator[Finding]:
    """Each tool that the contract expects is in a tools/list answer of some server.

    Why: whoever relies on it has nothing to call; a recording without tools/list shows nothing, and that is no pass.

    Fix: offer the tool, record a tools/list, or take it out of the contract.

    Wrong::

        contract: expect deploy
        modern tools/list
          -> tool search

    Right::

        contract: expect deploy
        modern tools/list
          -> tool deploy
    """
    yield from _breaches(exchange, "missing")


@rule(
    "CON002",
    "contract-tool-forbidden",
    "A tool is offered that the contract forbids",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="error",
    spec=SPEC,
    needs=(BREACHES,),
)
def contract_tool_forbidden(exchange: Exchange) -> Iterator[Finding]:
    """No server offers a tool whose name a forbidden pattern of the contract fits.

    Why: a model that is given a tool may call it.

    Fix: take the tool away from this server, or the pattern out of the contract.

    Wrong::

        contract: forbid delete_*
        modern tools/list
          -> tool delete_all

    Right::

        contract: forbid delete_*
        modern tools/list
          -> tool search
    """
    yield from _breaches(exchange, "forbidden")


@rule(
    "CON003",
    "contract-too-slow",
    "An answer took longer than the contract allows",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="error",
    spec=SPEC,
    needs=(BREACHES,),
)
def contract_too_slow(exchange: Exchange) -> Iterator[Finding]:
    """Each answer comes within the time that the contract gives its method or tool.

    Why: a person waits for it, or a client gives up.

    Fix: make the tool quicker, let it answer with a task, or allow it more time.

    Wrong::

        contract: longest search=1000
        modern tools/call {"name": "search", "arguments": {}}
          -> after 3
          -> result {"content": []}

    Right::

        contract: longest search=5000
        modern tools/call {"name": "search", "arguments": {}}
          -> after 3
          -> result {"content": []}
    """
    yield from _breaches(exchange, "slow")


@rule(
    "CON004",
    "contract-too-many-failures",
    "More tool calls failed than the contract allows",
    on="finish",
    level="may-note",
    party="server",
    era="both",
    severity="error",
    spec=SPEC,
    needs=(BREACHES,),
)
def contract_too_many_failures(exchange: Exchange) -> Iterator[Finding]:
    """Of the tool calls of one server no greater share fails than the contract allows.

    Why: a model that is told of failures tries again, and each try is paid for.

    Fix: mend what fails: `mcp-wiretap audit` names the causes.

    Wrong::

        contract: failures 0.1
        modern tools/call {"name": "search", "arguments": {}}
          -> result {"content": [], "isError": true}

    Right::

        contract: failures 0.1
        modern tools/call {"name": "search", "arguments": {}}
          -> result {"content": []}
    """
    yield from _breaches(exchange, "failures")


@rule(
    "CON005",
    "contract-context-cost",
    "A model is given more bytes than the contract allows",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="error",
    spec=SPEC,
    needs=(BREACHES,),
)
def contract_context_cost(exchange: Exchange) -> Iterator[Finding]:
    """The definitions of a server's tools, and each result, take no more bytes than the contract allows.

    Why: they fill the context of the model: with each turn they are paid for, and leave less room for the rest.

    Fix: shorten descriptions and schemas, offer fewer tools, answer with links or pages.

    Wrong::

        contract: definitions 40
        modern tools/list
          -> tool search

    Right::

        contract: definitions 4000
        modern tools/list
          -> tool search
    """
    yield from _breaches(exchange, "definitions", "result")
