"""`mcp-wiretap migrate` over recordings of legacy sessions, and against a server that speaks the modern era."""

import json
from contextlib import asynccontextmanager

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.migrate.ask import Asker
from mcp_wiretap.replay.http import Place
from mcp_wiretap.rule import RuleBook
from test_servers.config import CONFIGS, load
from test_servers.serving import bind_all, running
from tests.cli.recordings import record
from tests.migrate.test_advice import CALL, HELLO
from tests.replay.playing import RECORDINGS, recorded

PAIRS = {  # a legacy recording, the modern one of the same server's other half, and the methods that take the old ones' place
    "subscriptions": {"resources/subscribe": "subscriptions/listen"},
    "tasks": {"tasks/result": "tasks/get"},
}


def test_a_recording_is_read_and_every_format_written(tmp_path, capsys):
    record(tmp_path / "a.flow", HELLO + CALL)
    for form in ("text", "json", "markdown"):
        assert main(["migrate", str(tmp_path / "a.flow"), "--format", form]) == 0
        told = capsys.readouterr().out
        assert "Mcp-Session-Id" in told and "basic/versioning" in told
    json.loads((main(["migrate", str(tmp_path / "a.flow"), "--format", "json"]) and "") or capsys.readouterr().out)


def test_a_wrong_url_is_said_before_anything_is_read(tmp_path, capsys):
    record(tmp_path / "a.flow", HELLO)
    assert main(["migrate", str(tmp_path / "a.flow"), "--to", "nowhere"]) == 2
    assert "--to" in capsys.readouterr().err


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_advice_names_is_what_the_modern_half_of_the_server_speaks(name, capsys):
    """The methods that the advice puts in the place of old ones are those of the recording of the modern server."""
    main(["migrate", str(RECORDINGS / f"{name}-legacy-http.flow"), "--format", "json"])
    changes = {change["seen"]: change for change in json.loads(capsys.readouterr().out)["endpoints"][0]["changes"]}
    main(["audit", str(RECORDINGS / f"{name}-modern-http.flow"), "--format", "json", "--fail-on", "never"])
    spoken = {flow["method"] for flow in json.loads(capsys.readouterr().out)["flows"]}
    for old, new in PAIRS[name].items():
        assert old in changes and f"Mcp-Method: {new}" in changes[old]["becomes"]
        assert new in spoken and old not in spoken


@pytest.mark.parametrize("name", [*PAIRS, "logging"])
def test_what_must_change_is_what_differs_between_the_two_halves_of_a_server(name, capsys):
    """Nothing that the advice calls gone is in the modern recording, and `diff` says that the era changed."""
    legacy, modern = (str(RECORDINGS / f"{name}-{era}-http.flow") for era in ("legacy", "modern"))
    main(["diff", legacy, modern, "--format", "json"])
    assert {(e["before"], e["after"]) for e in json.loads(capsys.readouterr().out)["eras"]} == {("legacy", "modern")}
    main(["migrate", legacy, "--format", "json"])
    changes = json.loads(capsys.readouterr().out)["endpoints"][0]["changes"]
    gone = {change["seen"] for change in changes if change["becomes"] == ["(nothing)"] or "gone" in change["demand"]}
    main(["audit", modern, "--format", "json", "--fail-on", "never"])
    spoken = {flow["method"] or flow["http_method"] for flow in json.loads(capsys.readouterr().out)["flows"]}
    assert gone and not gone & spoken
    main(["migrate", modern, "--format", "json"])
    (told,) = json.loads(capsys.readouterr().out)["endpoints"]
    assert told["changes"] == [] and told["modern_exchanges"] > 0


def test_the_level_of_logs_moves_into_each_request(capsys):
    main(["migrate", str(RECORDINGS / "logging-legacy-http.flow"), "--format", "json"])
    changes = {change["seen"]: change for change in json.loads(capsys.readouterr().out)["endpoints"][0]["changes"]}
    assert "io.modelcontextprotocol/logLevel" in changes["logging/setLevel"]["becomes"][0]
    asked = [take.request.meta for take in recorded("logging-modern-http").mcp if take.request is not None]
    assert any("io.modelcontextprotocol/logLevel" in meta for meta in asked)


@asynccontextmanager
async def served(name):
    config = load(CONFIGS / f"{name}.json")
    sockets = bind_all([(0, False)])
    async with running([config], sockets) as (server,):
        yield Place.of(server.url)


@pytest.mark.e2e
async def test_recorded_questions_are_asked_in_the_modern_era():
    script = recorded("dual-era-http")
    async with served("dual-era-http") as place:
        asked = await Asker(script, place, RuleBook.of(), all_tools=True).run()
    verdicts = {one.what: one for one in asked}
    assert asked[0].what == "server/discover" and asked[0].verdict == "same"
    assert len(asked) > 2 and not [one for one in asked if one.verdict == "failed"], asked
    assert not [one.findings for one in verdicts.values() if one.findings]


@pytest.mark.e2e
async def test_a_server_that_is_legacy_still_is_told_so():
    script = recorded("demo")
    async with served("demo-legacy") as place:
        (told,) = await Asker(script, place, RuleBook.of()).run()
    assert told.verdict == "failed" and "does not speak the modern era" in told.why
