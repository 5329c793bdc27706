"""SARIF, JUnit and HTML: what other programs read must be what they expect, and hostile text must stay text."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, TextIO

import jsonschema
import pytest

from mcp_wiretap.report import html, junit, sarif
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.rule import Silence
from tests.report.auditing import BOTH_ERAS, RULES, audit

CLEAN = 'modern tools/list\n  -> result {"tools": []}\n'
HOSTILE_TEXT = "</script><script>alert(1)</script><img src=x onerror=alert(1)>]]>&amp;\\u202e\\u001b\\u0000\\uffff\\ud800"
HOSTILE = (
    f'modern tools/call {{"name": "{HOSTILE_TEXT.replace(chr(92) + "ud800", "")}", "arguments": {{}}}}\n'
    f'  -> 200 application/json {{"jsonrpc": "2.0", "id": 1, "result": {{"content": "{HOSTILE_TEXT}", "isError": true}}}}\n'
)


def written(write: Callable[[Audit, TextIO], None], made: Audit) -> str:
    out = io.StringIO()
    write(made, out)
    out.getvalue().encode()
    return out.getvalue()


def sarif_of(made: Audit) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(written(sarif.write, made))
    jsonschema.Draft7Validator(SARIF).validate(log)
    return log


MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
# What SARIF 2.1.0's schema demands of the parts that we write; unknown members are refused as the schema does.
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "help", "defaultConfiguration"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": MESSAGE,
                                                "fullDescription": MESSAGE,
                                                "help": MESSAGE,
                                                "helpUri": {"type": "string", "pattern": "^https://"},
                                                "defaultConfiguration": {"properties": {"level": LEVEL}},
                                                "properties": {"type": "object"},
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "automationDetails": {"type": "object"},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "properties": {"type": "object"},
                    "results": {
                        "type": "array",
                        "maxItems": 5000,
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "message", "level", "locations", "partialFingerprints"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                                "properties": {"type": "object"},
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "required": ["uri"],
                                                        "properties": {"uri": {"type": "string", "pattern": r"^[!-~]+$"}},
                                                    }
                                                },
                                            },
                                            "logicalLocations": {"type": "array"},
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif_of_a_clean_recording_has_rules_and_an_empty_list_of_results() -> None:
    run = sarif_of(audit(CLEAN))["runs"][0]
    assert run["results"] == []
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.id for rule in RULES]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_sarif_levels_and_rule_positions() -> None:
    run = sarif_of(audit(BOTH_ERAS))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning", "note"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert rules[0]["help"]["text"].startswith("Mcp-Method repeats")
    assert "modern tools/list\n  header Mcp-Method: ping" in rules[0]["help"]["markdown"]
    assert rules[0]["helpUri"].startswith("https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/")


def test_sarif_fingerprints_survive_a_new_recording_and_tell_findings_apart() -> None:
    once = sarif_of(audit(BOTH_ERAS))["runs"][0]["results"]
    again = sarif_of(audit("modern ping\n  -> result {}\n" * 11 + BOTH_ERAS))["runs"][0]["results"]
    prints = [[result["partialFingerprints"]["mcpWiretapFinding/v1"] for result in results] for results in (once, again)]
    assert prints[0] == prints[1]
    assert len(set(prints[0])) == 3  # the two equal ones are one


def test_sarif_keeps_the_worst_where_not_all_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST", 3)
    run = sarif_of(audit("GET http://x.example/\n  header Cookie: a\n  header Mcp-Method: x\n" * 5 + BOTH_ERAS))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning"]
    assert run["properties"]["resultsLeftOut"] == 6


def test_sarif_says_what_was_damaged_or_broke() -> None:
    run = sarif_of(audit("modern break/rule {}\n", error="cut off"))["runs"][0]
    invocation = run["invocations"][0]
    assert invocation["executionSuccessful"] is False and invocation["exitCode"] == 2
    told = json.dumps(invocation)
    assert "cut off" in told and "on purpose" in told


def test_a_path_becomes_a_uri() -> None:
    finding = sarif_of(audit(BOTH_ERAS, path="/tmp/a b#c?.flow"))["runs"][0]["results"][0]
    assert finding["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///tmp/a%20b%23c%3F.flow"


def test_junit_has_a_case_for_each_rule_and_fails_those_that_were_broken() -> None:
    root = ElementTree.fromstring(written(junit.write, audit(BOTH_ERAS, CLEAN)))
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["one.flow", "two.flow"]
    assert [suite.get("failures") for suite in suites] == ["1", "0"]
    assert all(len(suite.findall("testcase")) == len(RULES) + 1 == int(suite.get("tests") or 0) for suite in suites)
    failure = root.find(".//failure")
    assert failure is not None and "Mcp-Method says ping" in (failure.get("message") or "")
    assert "flow-2" in (failure.text or "") and "flow-3" in (failure.text or "")
    assert "the tool failed" in (root.findtext(".//testcase/system-out") or "")


def test_junit_fails_by_the_threshold() -> None:
    def failures(fail_on: str) -> str | None:
        return ElementTree.fromstring(written(junit.write, audit(BOTH_ERAS, fail_on=fail_on))).get("failures")

    assert [failures(threshold) for threshold in ("never", "error", "warning", "info")] == ["0", "1", "2", "3"]


def test_junit_reports_a_damaged_input_as_an_error() -> None:
    root = ElementTree.fromstring(written(junit.write, audit(CLEAN, error="cut off at byte 3")))
    assert root.get("errors") == "1"
    error = root.find(".//error")
    assert error is not None and error.get("message") == "cut off at byte 3"


def test_junit_escapes_what_xml_cannot_hold() -> None:
    output = written(junit.write, audit(HOSTILE, path="a\x1b<b>.flow", fail_on="info"))
    root = ElementTree.fromstring(output)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\u202e]", output)
    assert "alert(1)" in (root.findtext(".//failure") or "")


class Page(HTMLParser):
    """What a browser would make of a page: elements, attributes, visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_html_page_needs_nothing_from_elsewhere() -> None:
    page = Page(written(html.write, audit(BOTH_ERAS)))
    assert not [tag for tag, _ in page.elements if tag in ("script", "link", "img", "iframe", "object", "base", "form")]
    assert not [attributes for _, attributes in page.elements if "src" in attributes or "style" in attributes]
    policy = next(a["content"] for t, a in page.elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "@import" not in page.text and "url(" not in page.text


def test_the_html_page_tells_all() -> None:
    silences = [Silence("TST003", "", "a cookie is harmless here")]
    made = audit(BOTH_ERAS + "modern break/rule {}\n", BOTH_ERAS, error="cut off at byte 12", silences=silences)
    page = Page(written(html.write, made))
    for words in (
        "4 errors",
        "one.flow was not read to its end: cut off at byte 12",
        "old-server 0.9",
        "Mcp-Method repeats the method of the body.",
        "gateways route by the header",
        "the body says tools/list",
        "expected tools/list",
        "a cookie is harmless here",
        "RuntimeError: on purpose",
        "exit status 2",
    ):
        assert words in " ".join(page.text.split()), words


def test_hostile_text_stays_text_in_html() -> None:
    output = written(html.write, audit(HOSTILE, path="<b>&.flow", error="<i>x"))
    page = Page(output)
    assert not [tag for tag, _ in page.elements if tag in ("script", "img", "b>", "i")]
    assert not [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    assert "<img src=x onerror=alert(1)>" in page.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", output)


WRONG_METHOD = 'modern tools/list\n  header Mcp-Method: {}\n  -> result {{"tools": []}}\n'


def test_an_html_page_of_many_findings_stays_small() -> None:
    made = audit("".join(WRONG_METHOD.format(f"ping{n}") for n in range(3_000)))
    output = written(html.write, made)
    assert len(output) < 1_500_000
    assert "3000 ×" in output and f"and {3000 - html.CASES} more" in output


def test_findings_that_say_the_same_are_written_out_once() -> None:
    output = written(html.write, audit(WRONG_METHOD.format("ping") * 30 + WRONG_METHOD.format("pong")))
    assert output.count("same in 29 more") == 1 and "31 ×" in output and "--format json" not in output


def test_the_html_page_of_an_empty_recording() -> None:
    assert "no findings" in Page(written(html.write, audit(""))).text
