"""What the user expects of servers: `[SCHEME://]HOST[:PORT][/PATH]=legacy|modern|auto`, `*` allowed (option `mcp_era`)."""

import re
from collections.abc import Iterable
from typing import Literal, cast

from mcp_wiretap.rule import endpoint_matches

type ExpectedEra = Literal["modern", "legacy", "auto"]

ERAS = ("modern", "legacy", "auto")
_PATTERN = re.compile(r"(?:[a-z*][a-z0-9+.*-]*://)?(?:[^\s/?#@=:\[\]]+|\[[0-9a-f:.*]+\])(?::[0-9*]+)?(?:/[^\s?#]*)?", re.I)


def parse(text: str) -> tuple[str, ExpectedEra]:
    """One expectation as it is written. ValueError says what is wrong with it."""
    pattern, equals, era = text.rpartition("=")
    pattern, era = pattern.strip(), era.strip().lower()
    if not equals or not pattern:
        raise ValueError(f"{text!r} is not HOST=ERA; write for example api.example.com=modern")
    if era not in ERAS:
        raise ValueError(f"{era!r} in {text!r} is no era; use modern, legacy or auto")
    check_pattern(pattern)
    return pattern, cast(ExpectedEra, era)


def check_pattern(pattern: str) -> None:
    """ValueError for what can match no endpoint."""
    if not _PATTERN.fullmatch(pattern):
        raise ValueError(f"{pattern!r} is not [SCHEME://]HOST[:PORT][/PATH]; * stands for any text")


class Expectations:
    """Several of them; the first one that matches decides, and `auto` means that nothing is expected."""

    def __init__(self, entries: Iterable[tuple[str, ExpectedEra]] = ()) -> None:
        self.entries = list(entries)

    def __call__(self, url: str) -> str | None:
        for pattern, era in self.entries:
            if endpoint_matches(pattern, url):
                return None if era == "auto" else era
        return None
