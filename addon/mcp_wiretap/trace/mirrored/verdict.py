"""How one mirrored header is written down as a `HeaderCheck`: what was sent, what the body says, all that is wrong with it.

`HeaderCheck.problems` is in these words:

    missing, mismatch, undecodable, should-be-encoded   as the verdicts
    lookalike            the body value looks like a sentinel and was sent raw
    invalid-octet        a byte that no header value may have, which no missing sentinel explains
    duplicate-equal, duplicate-different                sent more than once
    merged-equal, merged-different                      a comma list in a header that has one value
    needless-encoding, spare-bits, not-plain            odd, but right
    null, absent         a header although the argument is null, or is not there
    unsafe-integer       outside the range of integers that JavaScript keeps apart
    undeclared, stale    no definition that the client had seen asks for it; only an older one explains it
    elsewhere            the method has nothing that it could mirror
"""

from collections.abc import Iterable, Iterator

from mcp_wiretap.trace.model import HeaderCheck
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire.headers import Comparison, Fields
from mcp_wiretap.wire.secret import looks_secret, mask

VERSION, METHOD, NAME, PARAM = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-"
LONGEST = 1_000  # characters of a value that are kept for showing
_FROM_COMPARISON = frozenset({"missing", "mismatch", "undecodable", "should-be-encoded", "needless-encoding"})


def present(fields: Fields) -> Iterator[tuple[str, list[str]]]:
    """The mirrored headers that are there: shown name, values."""
    for name in (VERSION, METHOD, NAME):
        values = fields.all(name)
        if values:
            yield name, values
    for lower in fields.names_starting("mcp-param-"):
        yield fields.as_sent(lower), fields.all(lower)


def plain(name: str, values: list[str], body: str | None, verdict: str, detail: str, problems: Iterable[str] = ()) -> HeaderCheck:
    raw = ", ".join(values) if values else None
    decoded = wire.decode(values[0]).text if values else None
    if name[: len(PARAM)].lower() == PARAM.lower() and looks_secret(name[len(PARAM) :]):
        raw, decoded = (mask(text) if text is not None else None for text in (raw, decoded))
    return HeaderCheck(name, _short(raw), _short(decoded), _short(body), verdict, detail, problems=frozenset(problems))


def matching(name: str, values: list[str], body: str, steps: tuple[str | int, ...]) -> HeaderCheck | None:
    """The check of a header that is plainly right, as nearly all are; None where it takes a comparison to tell."""
    if len(values) != 1 or values[0] != body or not body.isascii() or not body.isprintable() or len(body) > LONGEST:
        return None
    if body[:1] == " " or body[-1:] == " " or body.startswith(wire.PREFIX):  # the only whitespace that is printable
        return None
    return HeaderCheck(name, body, body, body, "match", "", steps, body)


def made(
    name: str, values: list[str], body: str, steps: tuple[str | int, ...], found: Comparison, fields: Fields, doubt: str = ""
) -> HeaderCheck:
    """The check of a comparison."""
    problems = _problems(found, body)
    detail = found.detail
    if len(values) > 1:
        detail = f"{detail}; sent {len(values)} times" if detail else f"sent {len(values)} times"
    made = HeaderCheck(
        name,
        _short(found.raw),
        _short(found.decoded),
        _short(body),
        found.verdict,
        detail,
        steps,
        _short(found.expected),
        frozenset(problems),
        doubt,
    )
    return made if "should-be-encoded" in problems else octets(made, name, fields)


def _problems(found: Comparison, body: str) -> set[str]:
    problems: set[str] = {found.verdict} if found.verdict in _FROM_COMPARISON else set()
    if found.lookalike_raw:
        return {"lookalike", "should-be-encoded"}
    if found.duplicate != "none":
        problems.add(f"duplicate-{found.duplicate}")
    if found.merged:
        problems.add("merged-equal" if len(set(found.merged)) == 1 else "merged-different")
    if found.spare_bits:
        problems.add("spare-bits")
    if found.verdict == "should-be-encoded" and found.decoded == wire.trim_ows(body) != body:
        problems.add("mismatch")  # the edge whitespace that a raw header cannot carry is lost
    elif found.verdict == "mismatch" and not found.sentinel and found.detail.endswith("needs a sentinel"):
        problems.add("should-be-encoded")
    return problems


def octets(check: HeaderCheck, name: str, fields: Fields) -> HeaderCheck:
    """Note a byte that no mirrored header may have (HDR009)."""
    for value in fields.all_bytes(name):
        found = wire.invalid_octets(value)
        if found is not None:
            check.problems |= {"invalid-octet"}
            at, byte = found
            check.detail = f"{check.detail}; " * bool(check.detail) + f"byte 0x{byte:02x} at {at}"
            break
    return check


def syntax(check: HeaderCheck, name: str, fields: Fields) -> HeaderCheck:
    """What can be said of a header that may hold a sentinel, without a body value to compare it with."""
    values = fields.all(name)
    problems = set()
    for value in values:
        decoded = wire.decode(value)
        if decoded.text is None:
            problems.add("undecodable")
            check.detail = f"{decoded.problem}; {check.detail}" if check.detail else decoded.problem or ""
        elif decoded.spare_bits:
            problems.add("spare-bits")
        elif name.startswith("mcp-param-") and wire.is_needless(decoded):
            problems.add("needless-encoding")
    if len(values) > 1:
        equal = len({wire.trim_ows(v) for v in values}) == 1
        problems.add("duplicate-equal" if equal else "duplicate-different")
    check.problems |= problems
    return octets(check, name, fields)


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"
