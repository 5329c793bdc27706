"""Mutations of right traffic: what the published schema of a revision forbids is told, as an error or warning of the right party.

Deterministic and bounded: each member of each message of `every_method` is dropped, retyped, emptied and made null. Whether the
schema forbids that is asked of jsonschema with the tables of members, not of the rules.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import Event, RequestSeen
from mcp_wiretap.trace.inspector import Inspector
from tests.trace.every_method import SCRIPTS
from tests.trace.test_bad_input import Write, documents

RULES = find_rules()
REVISION = {"modern-basics": "2026-07-28", "modern-lists": "2026-07-28", "modern-stream": "2026-07-28", "legacy": "2025-11-25"}
EVERY = 3  # of the mutations one in so many is tried: all take minutes
TOLD = 0.95  # of the violations; the rest is in the message of a failure

type Steps = tuple[str | int, ...]


@cache
def table(revision: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("mcp_wiretap_rules").joinpath("schemas", f"{revision}.json").read_text())
    return found


def validator(revision: str, node: dict[str, Any]) -> Draft202012Validator:
    definitions = json.loads(json.dumps(table(revision)["definitions"]).replace('"$ref": "', '"$ref": "#/$defs/'))
    node = json.loads(json.dumps(node).replace('"$ref": "', '"$ref": "#/$defs/'))
    return Draft202012Validator({"$defs": definitions, **node})


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    if steps:
        yield steps
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*steps, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:2]):
            yield from places(inner, (*steps, index))


def changed(document: Any, steps: Steps) -> Iterator[tuple[str, Any]]:
    """The document with the member at those steps dropped, of another type, empty, null."""

    def with_value(value: Any) -> Any:
        made = copy.deepcopy(document)
        holder = made
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = value
        return made

    held: Any = document
    for step in steps:
        held = held[step]
    if isinstance(steps[-1], str):
        made = copy.deepcopy(document)
        holder = made
        for step in steps[:-1]:
            holder = holder[step]
        del holder[steps[-1]]
        yield "dropped", made
    yield "retyped", with_value(7 if isinstance(held, str) else "seven")
    yield "a list", with_value([held])
    yield "null", with_value(None)


def judged(events: Sequence[Event]) -> set[tuple[str, str, str]]:
    inspector = Inspector(RuleBook.of(RULES))
    for event in events:
        inspector.feed(event)
    inspector.finish()
    return {(f.rule, f.party or "", f.message) for e in inspector.exchanges.values() for f in e.findings if f.severity != "info"}


def violations(name: str) -> Iterator[tuple[str, str, list[Event]]]:
    """What is changed, whose message it is, and the trace with it."""
    events = list(read_script(SCRIPTS[name]))
    revision = REVISION[name]
    methods: dict[Any, str] = {}
    for index, document, write in documents(events):
        if not isinstance(document, dict):
            continue
        method = document.get("method")
        if method is not None and "id" in document:
            methods.setdefault((isinstance(events[index], RequestSeen), json.dumps(document["id"])), method)
        yield from _of_message(revision, events, index, document, write, methods)


def _of_message(
    revision: str, events: list[Event], index: int, document: dict[str, Any], write: Write, methods: dict[Any, str]
) -> Iterator[tuple[str, str, list[Event]]]:
    by_client = isinstance(events[index], RequestSeen)
    method = document.get("method")
    top = "params" if method is not None else "result"
    if method is None:
        method = methods.get((not by_client, json.dumps(document.get("id"))))
    entry = table(revision)[top + ("s" if top == "result" else "")].get(method)
    if entry is None or not isinstance(document.get(top), dict):
        return
    allowed = validator(revision, entry["node"] if top == "params" else entry)
    if not allowed.is_valid(document[top]):
        return
    for steps in list(places(document[top]))[:60]:
        for how, made in changed(document, (top, *steps)):
            if not allowed.is_valid(made[top]):
                altered = list(events)
                altered[index] = write(made)
                where = f"{method} {top}.{'.'.join(map(str, steps))} {how}"
                yield where, "client" if by_client else "server", altered


@pytest.mark.parametrize("name", REVISION)
def test_what_the_schema_forbids_is_told_of_the_party_that_sent_it(name: str) -> None:
    before = judged(list(read_script(SCRIPTS[name])))
    tried, silent = 0, []
    for number, (what, party, events) in enumerate(violations(name)):
        if number % EVERY:
            continue
        tried += 1
        if not any(found[1] == party for found in judged(events) - before):
            silent.append(f"{party}: {what}")
    assert tried >= 20, "there is too little to try"
    assert len(silent) <= (1 - TOLD) * tried, f"{len(silent)} of {tried} are not told:\n" + "\n".join(silent)


@pytest.mark.parametrize("name", REVISION)
def test_an_unknown_member_anywhere_is_no_finding(name: str) -> None:
    events = list(read_script(SCRIPTS[name]))
    before = judged(events)
    altered = list(events)
    for index, document, write in documents(events):
        made = copy.deepcopy(document)
        for top in ("params", "result"):
            if isinstance(made, dict) and isinstance(made.get(top), dict) and made[top]:  # an empty result stays empty: LEG025
                made[top]["com.example/unknown"] = {"any": [None]}
        altered[index] = write(made)
    assert judged(altered) == before
