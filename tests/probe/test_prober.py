"""Probing real servers: honest ones pass, each rogue is caught by the probes that are for it, and nothing unsafe is sent."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.probe import report as reports
from mcp_wiretap.probe.run import Prober, Report, eras_of, plan
from mcp_wiretap.probe.sending import Sender
from mcp_wiretap.proxy.replay_server import script_of
from mcp_wiretap.replay.http import Place
from mcp_wiretap.rule import RuleBook, find_probes, find_rules
from test_servers.config import CONFIGS, load
from test_servers.serving import bind_all, running
from tests.cli.recordings import record
from tests.replay.playing import RECORDINGS

RULES = find_rules()
PROBES = find_probes(RULES)
TOOLS = frozenset(
    name
    for path in CONFIGS.rglob("*.json")
    if path.name != "schema.json"
    for tool in json.loads(path.read_text()).get("tools", ())
    for name in (*tool.get("params", {}).get("names", ()), tool.get("params", {}).get("name") or tool["preset"])
)


@asynccontextmanager
async def served(config: str):
    async with running([load(CONFIGS / f"{config}.json")], bind_all([(0, False)])) as (server,):
        yield server.url


async def probed(config: str, recording: str | None = None, *, tools=TOOLS, select=(), budget=300) -> list[Report]:
    name = recording or config.rpartition("/")[2]
    script, _ = script_of(RECORDINGS / f"{name}.flow", RuleBook.of(RULES))
    done = []
    async with served(config) as url:
        for era in eras_of(script):
            what = plan(script, PROBES, era=era, tools=tools, select=select)
            if what.bases.found or what.bases.faulty:
                sender = Sender(Place.of(url), RuleBook.of(RULES), budget=budget, pace=0)
                done.append(await Prober(what, sender, url).run())
    return done


def verdicts(reports_: list[Report], verdict: str) -> set[str]:
    return {result.probe.id for report in reports_ for result in report.results if result.verdict == verdict}


@pytest.mark.parametrize(
    "config", ["xmcpheader-modern-http", "dual-era-http", "subscriptions-modern-http", "subscriptions-legacy-http"]
)
async def test_an_honest_server_fails_nothing(config):
    done = await probed(config)
    assert not verdicts(done, "fail"), [reports.as_text(report) for report in done]
    assert len(verdicts(done, "pass")) >= 10


async def test_a_state_that_is_checked_and_a_capability_that_is_missed_pass():
    done = await probed("mrtr-showcase-http")
    assert {"R01", "R03", "C01"} <= verdicts(done, "pass") and not verdicts(done, "fail")


@pytest.mark.parametrize(
    ("rogue", "caught"),
    [
        ("accepts-mismatch", {"H02", "H03", "H04", "H07", "P01", "P02", "V01"}),
        ("sentinels-undecoded", {"H08", "P03"}),
        ("refusal-status", {"M02"}),
        ("no-discovery", {"M04"}),
        ("refusal-data", {"H00"}),
        ("refuses-right", {"H00"}),
        ("wrong-refusals", {"H00"}),
        ("undeclared-input", {"C01"}),
        ("legacy-version", {"L02", "L03"}),
        ("legacy-sessions", {"L02", "L10"}),
    ],
)
async def test_a_rogue_is_caught_by_what_is_for_it(rogue, caught):
    assert caught <= verdicts(await probed(f"rogues/rogue-{rogue}"), "fail")


@pytest.mark.parametrize("rogue", ["session-ids", "readable-state"])
async def test_what_a_rogue_should_not_do_warns(rogue):
    assert verdicts(await probed(f"rogues/rogue-{rogue}"), "warn") == {"H00"}


async def test_tools_are_not_called_unless_they_are_read_only_or_named():
    (report,) = await probed("xmcpheader-modern-http", tools=())
    bodies = [sent.call.body for sent in report.sent if isinstance(sent.call.body, dict)]
    called = {body["params"].get("name") for body in bodies if body.get("method") == "tools/call"}
    assert called <= {"mcp-wiretap-there-is-no-such-thing"} and "get_weather" in report.not_called
    assert "P01" in verdicts([report], "skipped")


async def test_a_recording_of_another_server_skips_and_fails_nothing():
    done = await probed("pagination-http", "rfc6570-templates-http")
    assert not verdicts(done, "fail")


async def test_the_budget_ends_it():
    (report,) = await probed("xmcpheader-modern-http", budget=5)
    assert len(report.sent) == 5 and "budget" in (report.stopped or "") and "skipped" in {r.verdict for r in report.results}


async def answering(status: bytes, extra: bytes = b""):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n" + extra + b"\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize(("status", "said"), [(b"429 Too Many Requests", "429"), (b"503 Service Unavailable", "for 7 s")])
async def test_a_server_that_has_enough_is_left_alone(status, said):
    server, url = await answering(status, b"Retry-After: 7\r\n")
    async with server:
        script, _ = script_of(RECORDINGS / "xmcpheader-modern-http.flow", RuleBook.of(RULES))
        sender = Sender(Place.of(url), RuleBook.of(RULES), budget=50, pace=0)
        report = await Prober(plan(script, PROBES, era="modern"), sender, url).run()
    assert len(report.sent) == 1 and said in (report.stopped or "")


async def test_credentials_of_another_server_stay_at_home(tmp_path):
    headers = "  header Authorization: Bearer a-token-of-the-example-1\n  header X-Api-Key: k-0123456789abcdef\n"
    script = f"modern tools/list\n{headers}  -> tool search\n"
    record(tmp_path / "run.flow", script)
    heard: list[bytes] = []

    async def answer(reader, writer):
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        found, _ = script_of(tmp_path / "run.flow", RuleBook.of(RULES))
        sender = Sender(Place.of(url), RuleBook.of(RULES), budget=50, pace=0)
        report = await Prober(plan(found, PROBES, era="modern"), sender, url).run()
    assert heard and b"a-token" not in b"".join(heard) and b"k-0123" not in b"".join(heard)
    assert {name.lower() for name in report.credentials} == {"authorization", "x-api-key"}


def test_the_command_asks_writes_every_format_and_a_recording(tmp_path, capsys, monkeypatch):
    recording = str(RECORDINGS / "xmcpheader-modern-http.flow")
    with asyncio.Runner() as runner:
        stack = served("xmcpheader-modern-http")
        url = runner.run(stack.__aenter__())
        try:
            common = ["probe", recording, "--to", url, "--select", "H02,H03"]

            def run(*more: str) -> int:
                return runner.run(asyncio.to_thread(main, [*common, *more]))

            assert run("--tool", "get_weather") == 2  # nobody to ask
            assert "--yes does so" in capsys.readouterr().err
            assert run("--tool", "get_weather", "--yes", "--write", str(tmp_path / "probe.flow")) == 0
            assert "pass  H02, H03" in capsys.readouterr().out
            for form, part in (("json", '"verdict": "pass"'), ("junit", "<testsuite"), ("sarif", '"version": "2.1.0"')):
                assert run("--format", form) == 0
                assert part in capsys.readouterr().out
        finally:
            runner.run(stack.__aexit__(None, None, None))
    main(["audit", str(tmp_path / "probe.flow"), "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert {finding["party"] for finding in told["findings"]} <= {"server"} and len(told["flows"]) >= 4


def test_what_cannot_be_probed_is_said(tmp_path, capsys):
    recording = str(RECORDINGS / "xmcpheader-modern-http.flow")
    for arguments in ([], [recording], [recording, "--to", "nowhere"], [recording, "--to", "http://127.0.0.1:1/mcp", "--yes"]):
        assert main(["probe", *arguments]) == 2
    assert main(["probe", recording, "--to", "http://127.0.0.1:1/mcp", "--select", "NO"]) == 2
    assert main(["probe", "--list"]) == 0
