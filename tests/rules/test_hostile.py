"""Rules meet anything: the messages of all cases with a value replaced by something that should not be there."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, StreamData
from mcp_wiretap.trace.inspector import Inspector
from tests.rules.running import LATER, installed_rules, promised_of
from tests.rules.test_cases import read_cases

CASES = sorted((Path(__file__).parent / "cases").glob("*.cases"))
JUNK = [
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "1.5",
    '""',
    '"x"',
    "[]",
    "{}",
    "[null]",
    '[{"a": [1]}]',
    '{"": {"": null}}',
    "9" * 5_000,
    '"\\ud800"',
    '[["", 0, {"type": "object"}]]',
    '{"type": "text", "text": 1}',
    "-0",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from places(inner, (*path, name))


def spoiled(body: bytes, source: random.Random) -> bytes:
    """The body with one value, anywhere below the message, replaced by junk. Other bodies stay as they are."""
    prefix, marker, rest = body.partition(b"data: ") if body.startswith((b"data: ", b"event: ")) else (b"", b"", body)
    text, end, tail = rest.partition(b"\n") if marker else (rest, b"", b"")
    try:
        value = json.loads(text)
    except ValueError:
        return body
    found = [path for path in places(value) if path]
    if not found:
        return body
    path = source.choice(found)
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = "@@junk@@"
    made = json.dumps(value).replace('"@@junk@@"', source.choice(JUNK))
    return prefix + marker + made.encode() + end + tail


def spoil(event: Event, source: random.Random) -> Event:
    match event:
        case RequestSeen(body=body) | ExchangeEnded(body=body) if body:
            return replace(event, body=spoiled(body, source))
        case StreamData(data=data):
            return replace(event, data=spoiled(data, source))
    return event


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_no_rule_and_no_tracker_fails_on_what_should_not_be_there(path: Path) -> None:
    source = random.Random(path.stem)
    for case in read_cases(path):
        events = read_script(case.script.text.rpartition(LATER)[2])
        for _ in range(3):
            inspector = Inspector(RuleBook.of(installed_rules()), promised=promised_of(case.script))
            for event in events:
                inspector.feed(spoil(event, source) if source.random() < 0.5 else event)
            inspector.finish()
            faults = [fault for exchange in inspector.exchanges.values() for fault in exchange.faults]
            assert not faults, f"{path.name}:{case.line}: {case.title}\n{faults}"
