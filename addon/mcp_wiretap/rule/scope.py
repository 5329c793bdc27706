"""Decides whether a rule applies to an exchange, and the most that it may say there (catalogue ERA023)."""

import re

from mcp_wiretap.rule.api import ALL_REVISIONS, Rule
from mcp_wiretap.trace.finding import Party, Severity
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire import uri

type Cap = Severity | None


_NO_CAP: tuple[Cap, str] = (None, "")


_IF_MODERN: tuple[Cap, str] = ("info", "if modern: ")


_UNKNOWN_VERSION: tuple[Cap, str] = ("info", "version not known to this tool: ")


_MALFORMED: tuple[Cap, str] = ("info", "if modern: ")


_UNKNOWN_REVISION: tuple[Cap, str] = ("info", "revision not known: ")


def scope_of(found: Rule, exchange: Exchange, server: str, sender: Party) -> tuple[Cap, str] | None:
    """Whether the rule applies, and the cap on its severity (catalogue ERA023): client rules follow the request's own claim,
    server rules follow the evidence that the server gave. `sender` decides for rules about either party."""
    if found.kinds is not None and exchange.kind not in found.kinds:
        return None
    if exchange.endpoint.on_stdio:
        return _scope_on_stdio(found, exchange, server, sender)
    return _scope_of_era(found, exchange, server, sender) if "http" in found.transport else None


def _scope_on_stdio(found: Rule, exchange: Exchange, server: str, sender: Party) -> tuple[Cap, str] | None:
    if "stdio" not in found.transport or (exchange.kind == "process" and found.kinds is None):
        return None
    scope = _scope_of_era(found, exchange, server, sender)
    return ("info", scope[1]) if scope is not None and "stdio" in found.hint_on else scope


def _scope_of_era(found: Rule, exchange: Exchange, server: str, sender: Party) -> tuple[Cap, str] | None:
    if exchange.kind != "mcp":  # oauth and preflight: their rules are marked `always`
        return _NO_CAP if found.always else None
    if found.always:
        return _NO_CAP
    claim = exchange.claim
    if found.party != "either":
        sender = found.party
    if claim.modern:
        return _scope_of_modern(found, sender, exchange, server)
    if claim.kind == "legacy-envelope":
        return _NO_CAP if found.era == "both" else None
    if found.era == "modern":
        return None
    if exchange.era == "legacy" or claim.kind == "legacy":
        if exchange.revision is None or exchange.revision not in ALL_REVISIONS:
            return _NO_CAP if found.versions == ALL_REVISIONS else _UNKNOWN_REVISION
        return _NO_CAP if exchange.revision in found.versions else None
    if found.era == "both":
        return _NO_CAP if found.versions == ALL_REVISIONS or exchange.revision in found.versions else _UNKNOWN_REVISION
    return None


def _scope_of_modern(found: Rule, sender: str, exchange: Exchange, server: str) -> tuple[Cap, str] | None:
    if found.era == "legacy":
        return None
    if "2026-07-28" not in found.versions:
        return None
    kind = exchange.claim.kind
    if found.era == "both" and sender == "server" and server != "modern":
        # What holds in every revision holds whatever the server is; what does not needs evidence.
        return _NO_CAP if found.versions == ALL_REVISIONS else _IF_MODERN
    if sender == "server":
        if server == "legacy":
            return None
        if server == "unknown":
            return _IF_MODERN
    if kind == "modern-unknown" and not found.structural:
        return _UNKNOWN_VERSION
    if kind == "modern-malformed" and sender == "client" and not found.malformed and found.era == "modern":
        return _MALFORMED
    return _NO_CAP


def endpoint_matches(pattern: str, url: str) -> bool:
    """Whether an endpoint URL is meant by `[SCHEME://]HOST[:PORT][/PATH]`, `*` allowed (mcp_era, silences). "" means all."""
    if pattern in ("", "*"):
        return True
    scheme, _, rest = pattern.rpartition("://")
    host, slash, path = rest.partition("/")
    parts = uri.split(url)
    if scheme and scheme.lower() != parts.scheme:
        return False

    def fits(want: str, have: str) -> bool:
        return re.fullmatch(".*".join(map(re.escape, want.split("*"))), have, re.I | re.S) is not None

    netloc = parts.netloc
    has_port = re.search(r":[0-9*]+$", host) is not None
    have = netloc if has_port else re.sub(r":[0-9]+$", "", netloc)
    return fits(host, have) and (not slash or fits("/" + path, parts.path))
