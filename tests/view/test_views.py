"""The pages of the content view, whole: each file in views/ is a script in the notation of mcp_wiretap.example and the page of
one of its messages. `python -m tests.view.test_views` writes the pages anew; read the difference before you keep it.

    <script>
    ==== request 2            (or `response N`; exchanges are counted from 1)
    <page>
"""

import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.view import order, yaml
from mcp_wiretap.view.subject import Subject, following, read_alone
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line

VIEWS = Path(__file__).parent / "views"
RULES = find_rules()


def subjects(script: str, select: tuple[str, ...] = ()) -> list[Subject]:
    """The pages' subjects of all exchanges of a script."""
    inspector = Inspector(RuleBook.of(RULES, select=select))
    events = defaultdict(list)
    for event in read_script(script):
        inspector.feed(event)
        events[event.flow].append(event)
    inspector.finish()

    def sibling(flow: str) -> Any:
        return read_alone(events[flow])

    rules = {rule.id: rule for rule in RULES}
    return [
        Subject(exchange, sibling(exchange.flow), True, sibling, rules, partial(following, inspector, exchange))
        for exchange in inspector.exchanges.values()
    ]


def rendered(script: str, side: str, number: int) -> str:
    subject = subjects(script, ("HDR", "PAR", "HTS"))[number - 1]
    return order.request(subject) if side == "request" else order.response(subject)


def parts(path: Path) -> tuple[str, str, str, int, str]:
    text = path.read_text("utf-8")
    script, head, side, number, expected = re.split(r"^(==== (request|response) (\d+)\n)", text, maxsplit=1, flags=re.M)
    return script, head, side, int(number), expected


def valid(text: str) -> list[Any]:
    """The documents of a page, by a YAML parser that is not ours."""
    return list(YAML(typ="safe", pure=True).load_all(text))


@pytest.mark.parametrize("path", sorted(VIEWS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_page_reads_as_it_did(path):
    script, _, side, number, expected = parts(path)
    assert rendered(script, side, number) == expected


@pytest.mark.parametrize("path", sorted(VIEWS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_page_is_yaml_of_no_more_columns_than_there_are(path):
    script, _, side, number, _ = parts(path)
    text = rendered(script, side, number)
    valid(text)
    own, _, _ = text.partition("\nbody: ")
    assert all(len(line) <= yaml.WIDTH for line in own.split("\n") if len(line.split()) > 2)


# Nothing from the wire breaks out

TEXT = st.text(max_size=200) | st.sampled_from(
    [
        "# x",
        "a: b",
        "- a",
        "---",
        "...",
        "{",
        "]",
        "&a",
        "*a",
        "!!python/object",
        "| x",
        "> y",
        "'",
        '"',
        "%",
        "@",
        "`",
        "\n---\n",
        "\ud800",
        "\u202e",
        "\x1b[31m",
        "null",
        "true",
        "2026-07-28",
        "0x1f",
        "=",
        "~",
        "? a",
        ": b",
        "a:",
        "",
        " ",
        " a",
        "a ",
        "<<",
        "a #b",
        "\t",
        "-_",
        "._",
        "1_0",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(TEXT)
@settings(max_examples=500, deadline=None)
def test_any_text_is_one_scalar(text):
    (document,) = valid("a: " + yaml.scalar(text) + "  # c\nb: 1\n")
    assert set(document) == {"a", "b"} and document["b"] == 1


@given(st.text(alphabet=st.characters(blacklist_categories=["C", "Z"]) | st.just(" "), max_size=300))
@settings(max_examples=300, deadline=None)
@example("\"'\U000e0100")  # in quotes, with a character that is written as an escape
@example("a\U000e0100 b")  # the same in a plain scalar
@example('"' + " \U000e0100" * 45)  # longer than the limit only because of its escapes
def test_folding_keeps_the_words(text):
    written = yaml.scalar(text)
    rows = [(2, f"key: {written}", "a comment"), (2, "other: 1", "")]
    (document,) = valid("\n".join(yaml.lines(rows)))
    # Escapes of characters that do not show are YAML's own in quotes, and words like others in a plain scalar.
    expected = text if written.startswith('"') else one_line(text, yaml.TEXT)
    if isinstance(document["key"], str):  # a number, a boolean and the like are one word
        assert document["key"].split() == expected.split()
    assert document["other"] == 1


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_any_value_on_one_line_and_in_a_block_is_yaml(item):
    valid("a: " + yaml.value(item) + "\nb: 1\n")
    if isinstance(item, dict | list) and item:
        valid("a:\n" + "\n".join(yaml.lines(yaml.block(item, 2))) + "\n")


@pytest.mark.parametrize("width", range(60, 130))
def test_a_key_is_not_folded_where_a_line_ends(width):
    item = {"a": "x" * width, "b c d e f": 1, "# g h": {"i j k": 2}}
    (read,) = valid("\n".join(yaml.lines([(0, "a: " + yaml.value(item), "")])) + "\n")
    assert read == {"a": item}


@given(TEXT, JSON, TEXT)
@settings(max_examples=150, deadline=None)
def test_any_call_and_its_result_are_yaml(name, arguments, text):
    call = {"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    content = {"content": [{"type": "text", "text": text}], "structuredContent": arguments, "requestState": text}
    said = {"jsonrpc": "2.0", "id": text, "result": content}
    whole = read_alone(
        [
            RequestSeen("f", 1.0, 1.0, "POST", "http", "h", 80, "/mcp", Fields(()), dumps(call).encode(), "c"),
            ResponseStarted("f", 1.1, 200, Fields(())),
            ExchangeEnded("f", 1.2, dumps(said).encode(), False, "complete"),
        ]
    )
    subject = Subject(whole, whole)
    for made in (order.request(subject), order.response(subject)):
        valid(made)
        assert "\x1b" not in made and "\u202e" not in made
        made.encode()


def test_a_huge_body_is_shortened_and_said_to_be():
    items = ", ".join(f'{{"n": {n}}}' for n in range(20_000))
    call = 'modern tools/call {"name": "a", "arguments": {}}\n'
    (subject,) = subjects(f'{call}  -> result {{"structuredContent": [{items}]}}\n')
    text = order.response(subject)
    assert "# shortened" in text and len(text) < 1_000_000
    valid(text)


def test_secrets_are_masked_wherever_they_stand():
    script = """modern tools/call {"name": "a", "arguments": {}}
  params {"name": "a", "arguments": {}, "requestState": "TOPSECRET1"}
  header Authorization: Bearer TOPSECRET2
  header Mcp-Session-Id: TOPSECRET3
  -> result {"resultType": "input_required", "requestState": "TOPSECRET4", "inputRequests": {}}
"""
    (subject,) = subjects(script)
    assert "TOPSECRET" not in order.request(subject) + order.response(subject)


def test_secrets_inside_texts_and_by_the_names_of_arguments_are_masked_and_code_is_read():
    script = """modern tools/call {"name": "a", "arguments": {"api_key": "TOPSECRET-1", "note": "Authorization: Bearer TOPSECRET123456", "code": "print(1+1) # hello"}}
  -> sse
  -> notify notifications/message {"level": "info", "data": "sent Authorization: Bearer TOPSECRET1234567 to https://h/p?token=TOPSECRET12345678"}
  -> result {"content": [{"type": "text", "text": "https://h/p?api_key=TOPSECRET"}]}
"""  # noqa: E501 - a line of a script is a message
    (subject,) = subjects(script)
    shown = order.request(subject) + order.response(subject)
    assert "TOPSECRET" not in shown and "Authorization: Bearer (sha" in shown
    assert 'code: "print(1+1) # hello"' in shown and '"code": "print(1+1) # hello"' in shown


if __name__ == "__main__":
    for found in sorted(VIEWS.glob("*.txt")):
        its_script, its_head, its_side, its_number, _ = parts(found)
        found.write_text(its_script + its_head + rendered(its_script, its_side, its_number), "utf-8")
