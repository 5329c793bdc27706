"""A baseline: what servers offer, in a file that people review and keep beside their code.

`Offered` gathers it from a trace (a judge that looks on). The file is JSON with sorted members, so that its own differences can
be read; secrets are masked in it.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_wiretap import __version__
from mcp_wiretap.compare.watching import Watching
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.promised import KINDS, Offer, key_of
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.revision import SERVER_INFO
from mcp_wiretap.wire.secret import concealed, masked, shown

SCHEMA = 1
ITEMS = 5_000  # of one list
ENDPOINTS = 500


class NotABaseline(ValueError):
    """The file is no baseline. The message says why."""


class _Endpoint(BaseModel):
    model_config = ConfigDict(extra="forbid")
    server: dict[str, Any] = {}
    revisions: list[str] = []
    capabilities: dict[str, Any] = {}
    instructions: str | None = None
    tools: dict[str, dict[str, Any]] | None = None
    resources: dict[str, dict[str, Any]] | None = None
    resourceTemplates: dict[str, dict[str, Any]] | None = None
    prompts: dict[str, dict[str, Any]] | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    baseline: Literal[1]
    written_by: str = ""
    endpoints: dict[str, _Endpoint]


@dataclass(slots=True)
class Offered(Watching):
    """What the servers of a trace offer, by `key_of` their URLs: the newest of everything."""

    offers: dict[str, Offer] = field(default_factory=dict)
    _walks: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = field(default_factory=dict)

    def said(self, message: Message) -> bool:
        added = Watching.said(self, message)
        request = message.request
        if request is None or message.party != "server" or message.rpc.kind != "result" or request.exchange.kind != "mcp":
            return added
        key = key_of(request.exchange.endpoint.url)
        if key not in self.offers and len(self.offers) >= ENDPOINTS:
            return added
        known = KINDS.get(request.method or "")
        if known is not None:
            self._listed(key, message, request, known[0], known[1])
        elif request.method in ("initialize", "server/discover"):
            self._of_server(self.offers.setdefault(key, Offer()), message.result)
        return added

    def take(self, exchange: Exchange) -> None:
        """Nothing of an exchange that is over is needed."""

    def _of_server(self, offer: Offer, result: dict[str, Any]) -> None:
        capabilities, instructions = result.get("capabilities"), result.get("instructions")
        if isinstance(capabilities, dict):
            offer.capabilities = masked(capabilities)
        if isinstance(instructions, str):
            offer.instructions = concealed(instructions)
        meta = result.get("_meta")
        info = result.get("serverInfo") or (meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
        if isinstance(info, dict):
            offer.server = {name: info[name] for name in ("name", "version") if isinstance(info.get(name), str)}
        versions = result.get("supportedVersions")
        if isinstance(versions, list):
            offer.revisions = [version for version in versions[:20] if isinstance(version, str)]

    def _listed(self, key: str, message: Message, request: Message, member: str, named: str) -> None:
        items = message.result.get(member)
        if not isinstance(items, list):
            return
        place = (key, request.exchange.auth, member)
        if request.params.get("cursor") is None or place not in self._walks:
            self._walks[place] = {}
        walk = self._walks[place]
        for item in items[:ITEMS]:
            if isinstance(item, dict) and isinstance(item.get(named), str) and len(walk) < ITEMS:
                walk[item[named]] = masked(item)
        if message.result.get("nextCursor") is None:
            self.offers.setdefault(key, Offer()).lists[member] = self._walks.pop(place)


def write(offers: dict[str, Offer]) -> str:
    """The file, with members sorted and a line for each."""
    endpoints = {}
    for key, offer in sorted(offers.items()):
        one: dict[str, Any] = {"server": offer.server, "revisions": offer.revisions, "capabilities": offer.capabilities}
        if offer.instructions is not None:
            one["instructions"] = offer.instructions
        endpoints[shown(key, 500)] = one | {member: dict(sorted(items.items())) for member, items in sorted(offer.lists.items())}
    made = {"baseline": SCHEMA, "written_by": f"mcp-wiretap {__version__}", "endpoints": endpoints}
    return json.dumps(json.loads(dumps(made)), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(content: bytes) -> dict[str, Offer]:
    """The offers of a file. NotABaseline where it is none."""
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotABaseline(f"it is no JSON ({shown(str(error), 100)})") from None
    if not isinstance(value, dict) or "baseline" not in value:
        raise NotABaseline("it is no baseline: the member `baseline` is missing")
    if value["baseline"] != SCHEMA:
        raise NotABaseline(f"it is of another version than this mcp-wiretap reads ({shown(str(value['baseline']), 20)})")
    try:
        found = _File.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise NotABaseline(f"{shown('.'.join(map(str, first['loc'])), 100)}: {shown(first['msg'], 100)}") from None
    return {key: _offer(one) for key, one in found.endpoints.items()}


def _offer(one: _Endpoint) -> Offer:
    lists = {member: items for member, _, _ in KINDS.values() if (items := getattr(one, member)) is not None}
    return Offer(one.server, one.revisions, one.capabilities, one.instructions, lists)
