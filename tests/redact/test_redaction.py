"""No secret leaves the house, in whatever encoding; and nothing else changes."""

import base64
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mitmproxy.http import HTTPFlow

from mcp_wiretap.cli import main
from mcp_wiretap.command.tracing import Settings, follow
from mcp_wiretap.proxy.flow_io import flows_of
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.sharing import copy
from mcp_wiretap.redact.places import Named
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.coding import decode_body
from mcp_wiretap.wire.secret import mask
from tests.cli.recordings import record, write
from tests.redact import planting

RECORDINGS = sorted((Path(__file__).parent.parent / "recordings").glob("*.flow"))
NAMES = ("password", "state", "token", "session", "cookie", "key", "code")

NASTY = {name: f'q"u\\o/t <{name}> & ü 漢{name}' if name in ("password", "state") else f"{name}-abcDEF0123" for name in NAMES}

_TOKEN = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/", min_size=12, max_size=60)
_ANY = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=9, max_size=40).map(str.strip)


@st.composite
def _secrets(draw: st.DrawFn) -> dict[str, str]:
    made = {name: draw(_ANY if name in ("password", "state") else _TOKEN) for name in NAMES}
    # A word of ordinary traffic, or one secret inside another, would be found where none was planted.
    return {name: f"{secret}{index}q7Zx" for index, (name, secret) in enumerate(made.items())}


def _exported(source: Path, form: str, *more: str) -> bytes:
    target = source.with_suffix(f".{form}")
    assert main(["export", str(source), "--format", form, "--output", str(target), *more]) == 0
    return target.read_bytes()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secrets=_secrets(), seed=st.integers(0, 1 << 30))
@example(secrets=NASTY, seed=1)
def test_no_planted_secret_is_left_in_any_encoding(tmp_path: Path, secrets: dict[str, str], seed: int) -> None:
    source = tmp_path / "planted.flow"
    planting.record(source, secrets, seed)
    assert main(["export", str(source), "--format", "flow", "--output", str(tmp_path / "clean.flow")]) == 0
    assert planting.left((tmp_path / "clean.flow").read_bytes(), secrets) == []
    for flow in flows_of(tmp_path / "clean.flow"):
        assert isinstance(flow, HTTPFlow)
        for body in planting.bodies(flow):
            assert planting.left(body, secrets) == [], body


@pytest.mark.parametrize("form", ["har", "jsonl", "otlp", "md"])
def test_no_planted_secret_is_left_in_an_export_of_any_format(form: str, tmp_path: Path) -> None:
    source = tmp_path / "planted.flow"
    planting.record(source, NASTY, 1)
    first = next(flow.id for flow in flows_of(source) if isinstance(flow, HTTPFlow))
    data = _exported(source, form, *(("--conversation", first) if form == "md" else ()))
    assert planting.left(data, NASTY) == []
    if form != "md":
        read = [json.loads(line) for line in ([data] if form == "har" else data.splitlines())]
        texts = "\n".join(planting.strings(read))
        assert planting.left(texts.encode("utf-8", "surrogatepass"), NASTY) == []


def _findings(path: Path) -> Counter[tuple[str, str, str | None, str | None]]:
    found: Counter[tuple[str, str, str | None, str | None]] = Counter()
    follow([Recording(path)], Settings(), lambda e: found.update((e.flow, f.rule, f.severity, f.party) for f in e.findings))
    return found


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_redacted_recording_audits_the_same(path: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean.flow"
    with clean.open("wb") as file:
        assert copy(path, file, Redactor()) is None
    assert _findings(clean) == _findings(path)


def _redacted(path: Path, tmp_path: Path, *named: str) -> list[HTTPFlow]:
    clean = tmp_path / "clean.flow"
    with clean.open("wb") as file:
        copy(path, file, Redactor(Named.of(named)))
    return [flow for flow in flows_of(clean) if isinstance(flow, HTTPFlow)]


def _planted(tmp_path: Path) -> Path:
    source = tmp_path / "planted.flow"
    planting.record(source, {name: f"{name}-abcDEF0123456" for name in NAMES}, 1)
    return source


def test_equal_secrets_stay_equal_and_lengths_right(tmp_path: Path) -> None:
    flows = _redacted(_planted(tmp_path), tmp_path)
    token = flows[0].request.headers["authorization"].removeprefix("Bearer ")
    answer = flows[3].response
    assert answer is not None and json.loads(answer.get_content() or b"")["access_token"] == token
    for flow in flows:
        assert flow.request.headers["content-length"] == str(len(flow.request.raw_content or b""))
        assert flow.response is not None
        assert flow.response.headers["content-length"] == str(len(flow.response.raw_content or b""))


def test_what_is_no_secret_is_left_to_the_byte(tmp_path: Path) -> None:
    source = _planted(tmp_path)
    flows = _redacted(source, tmp_path)
    before = [flow for flow in flows_of(source) if isinstance(flow, HTTPFlow)]
    assert flows[0].response is not None and before[0].response is not None
    assert flows[0].response.raw_content == before[0].response.raw_content  # gzip as the server wrote it
    assert flows[0].request.headers["cookie"].startswith("theme=")
    assert b'"city": "Rome"' in (flows[0].request.content or b"")


def test_two_exports_have_different_placeholders(tmp_path: Path) -> None:
    source = _planted(tmp_path)
    one, other = (_redacted(source, tmp_path)[0].request.headers["mcp-session-id"] for _ in range(2))
    assert one != other


@pytest.mark.parametrize("what", ["city", "$.params.arguments.city", "$..city", "Ro[m]e"])
def test_the_user_names_more_by_key_path_or_expression(what: str, tmp_path: Path) -> None:
    flows = _redacted(_planted(tmp_path), tmp_path, what)
    city = json.loads(flows[0].request.content or b"")["params"]["arguments"]["city"]
    assert city != "Rome" and len(city) == 4


def test_a_token_in_a_text_is_replaced_also_where_the_text_ends_with_it(tmp_path: Path) -> None:
    challenge = 'Bearer resource_metadata2="https://h.example/.well-known/x"'
    note, log = "Authorization: Bearer TEXTSECRET123456", "login with password: hunter22"
    asked = json.dumps({"note": note, "how": "password: required", "code": "print(1+1)", "seen": challenge})
    record(
        tmp_path / "token.log",
        f"""
modern tools/call {{"name": "a", "arguments": {asked}}}
  -> sse
  -> notify notifications/message {{"level": "info", "data": "{log}"}}
  -> result {{"content": []}}
""",
    )
    for form in ("flow", "har", "jsonl"):
        made = _exported(tmp_path / "token.log", form)
        assert b"TEXTSECRET123456" not in made and b"hunter22" not in made
        assert b"password: required" in made and b"print(1+1)" in made and b"well-known" in made and b"resource_metadata2" in made


def test_very_short_secrets_are_replaced_in_their_own_place_only(tmp_path: Path) -> None:
    source = tmp_path / "planted.flow"
    planting.record(source, {name: f"{name}-abcDEF0123456" for name in NAMES} | {"password": "text"}, 1)
    flows = _redacted(source, tmp_path)
    assert json.loads(flows[0].request.content or b"")["params"]["arguments"]["password"] != "text"
    assert flows[1].response is not None
    assert b'"type": "text"' in (flows[1].response.get_content() or b"")


@pytest.mark.parametrize("value", ["$.a..", "(", "x*"])
def test_what_cannot_be_redacted_by_is_refused(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(_planted(tmp_path)), "--format", "har", "--redact", value]) == 2
    assert value in capsys.readouterr().err


STATES = {
    "signed JSON": '{"user": "ada", "amount": 10, "sig": "9f3c6a0b7d2e4f8a9c1b5d6e7f8091a2"}',
    "JSON": '{"user": "ada", "amount": 10}',
    "Base64 of JSON": "eyJ1c2VyIjogImFkYSIsICJhbW91bnQiOiAxMH0=",
    "a handle": "v1.9f3c6a0b7d2e4f8a9c1b5d6e7f8091a2",
    "a word": "waiting",
    "a signed token": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEiLCJleHAiOjF9.MEUCIQDx1N3ksRZ3mS2o",
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_state_is_as_readable_or_not_as_it_was(state: str, tmp_path: Path) -> None:
    written = json.dumps(state)
    record(
        tmp_path / "a.flow",
        f"""
modern tools/call {{"name": "pay", "arguments": {{}}}}
  -> raw-result {{"resultType": "input_required", "requestState": {written}, "inputRequests": {{}}}}
modern tools/call {{"name": "pay", "arguments": {{}}}}
  params {{"name": "pay", "arguments": {{}}, "requestState": {written}, "inputResponses": {{}}}}
  -> result {{"content": []}}
""",
    )
    flows = _redacted(tmp_path / "a.flow", tmp_path)
    assert state.encode() not in b"".join(flow.request.raw_content or b"" for flow in flows)
    assert _findings(tmp_path / "clean.flow") == _findings(tmp_path / "a.flow")


VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def test_the_challenge_of_a_verifier_is_kept(tmp_path: Path) -> None:
    record(
        tmp_path / "a.flow",
        f"""
POST /token
  header Content-Type: application/x-www-form-urlencoded
  body grant_type=authorization_code&code=abcdef0123456789&code_verifier={VERIFIER}
  -> 200 application/json {{"access_token": "t-0123456789abcdef", "token_type": "Bearer"}}
""",
    )
    flow = _redacted(tmp_path / "a.flow", tmp_path)[0]
    assert VERIFIER not in flow.request.get_text()
    assert flow.metadata["mcp.redacted"] == {"challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}


def test_a_token_stays_one_for_the_same_audience_and_nobody_in_particular(tmp_path: Path) -> None:
    claims = {"iss": "https://a.example", "aud": "https://m.example", "sub": "ada@example.com", "exp": 1, "name": "Ada"}
    head, body = (jose.encode(json.dumps(part).encode()) for part in ({"alg": "ES256"}, claims))
    token = f"{head}.{body}.c2lnbmF0dXJl"
    record(tmp_path / "a.flow", f"modern tools/list {{}}\n  header Authorization: Bearer {token}\n  -> result {{}}")
    given = _redacted(tmp_path / "a.flow", tmp_path)[0].request.headers["authorization"].removeprefix("Bearer ")
    read = jose.read(given)
    assert given != token and read is not None
    assert (read.text("iss"), read.audience, read.number("exp")) == ("https://a.example", ("https://m.example",), 1)
    assert read.text("sub") != "ada@example.com" and read.text("name") != "Ada"


def test_masks_of_secrets_are_not_plain_hashes_either(tmp_path: Path) -> None:
    source = _planted(tmp_path)
    flow = next(f for f in flows_of(source) if isinstance(f, HTTPFlow))
    told = mask(flow.request.headers["mcp-session-id"])
    flow.comment = f"the session {told} and {mask('another')}"
    with source.open("wb") as file:
        write(file, flow)
    clean = _redacted(source, tmp_path)[0]
    assert told not in clean.comment and mask("another") not in clean.comment
    assert mask(clean.request.headers["mcp-session-id"]) in clean.comment


def test_what_follows_a_body_that_was_cut_short_is_still_missing(tmp_path: Path) -> None:
    source = _planted(tmp_path)
    flow = next(f for f in flows_of(source) if isinstance(f, HTTPFlow))
    assert flow.response is not None
    packed = gzip.compress(json.dumps({"access_token": "t-0123456789abcdef"}).encode() * 50)
    flow.response.raw_content = packed[:-12]
    with source.open("wb") as file:
        write(file, flow)
    clean = _redacted(source, tmp_path)[0]
    assert clean.response is not None
    plain, problem = decode_body(clean.response.raw_content or b"", "gzip", 1 << 20)
    assert problem == "cut short" and b"t-0123456789abcdef" not in plain and b"access_token" in plain


def test_basic_credentials_keep_the_client_and_lose_the_password(tmp_path: Path) -> None:
    given = base64.b64encode(b"client-1:hunter2-and-more").decode()
    record(
        tmp_path / "a.flow",
        f"""
POST /token
  header Content-Type: application/x-www-form-urlencoded
  header Authorization: Basic {given}
  body grant_type=client_credentials&x=hunter2-and-more
  -> 200 application/json {{"access_token": "t-0123456789abcdef", "token_type": "Bearer"}}
""",
    )
    flow = _redacted(tmp_path / "a.flow", tmp_path)[0]
    user, _, password = base64.b64decode(flow.request.headers["authorization"].removeprefix("Basic ")).decode().partition(":")
    assert user == "client-1" and password != "hunter2-and-more"
    assert flow.request.get_text() == f"grant_type=client_credentials&x={password}"


@pytest.mark.parametrize(
    ("argument", "header", "named"),
    [
        ('"pin": "1234"', "1234", ("pin",)),
        ('"pin": 1234', "1234", ("pin",)),
        ('"pin": "\\u00fc"', "=?base64?w7w=?=", ("pin",)),
        ('"pin": "a pin of some length"', "a pin of some length", ("$.params.arguments.pin",)),
    ],
)
def test_a_mirrored_secret_still_matches_its_header(argument: str, header: str, named: tuple[str, ...], tmp_path: Path) -> None:
    kind = "integer" if argument.endswith("4") else "string"
    record(
        tmp_path / "a.flow",
        f"""
modern tools/list {{}}
  -> tool pay {{"pin": {{"type": "{kind}", "x-mcp-header": "Pin"}}}}
modern tools/call {{"name": "pay", "arguments": {{{argument}}}}}
  header Mcp-Param-Pin: {header}
  -> result {{"content": []}}
""",
    )
    flow = _redacted(tmp_path / "a.flow", tmp_path, *named)[1]
    assert flow.request.headers["mcp-param-pin"] != header
    assert _findings(tmp_path / "clean.flow") == _findings(tmp_path / "a.flow")


def test_a_har_is_redacted_as_it_reads(tmp_path: Path) -> None:
    source = RECORDINGS[0].parent / "subscriptions-modern-http.flow"
    assert main(["export", str(source), "--format", "har", "--output", str(tmp_path / "a.har")]) == 0
    before = {flow.id: flow for flow in flows_of(tmp_path / "a.har") if isinstance(flow, HTTPFlow)}
    for flow in _redacted(tmp_path / "a.har", tmp_path):
        was = before[flow.id]
        assert flow.request.raw_content == was.request.raw_content and flow.request.headers == was.request.headers
        assert flow.response is not None and was.response is not None
        assert flow.response.raw_content == was.response.raw_content


def test_what_a_flow_was_before_it_was_edited_is_redacted_as_well(tmp_path: Path) -> None:
    source = _planted(tmp_path)
    flow = next(f for f in flows_of(source) if isinstance(f, HTTPFlow))
    assert flow.response is not None
    flow.response.raw_content = gzip.compress(json.dumps({"access_token": "t-0123456789abcdef"}).encode())
    flow.backup()
    flow.response.raw_content = gzip.compress(b"{}")
    with source.open("wb") as file:
        write(file, flow)
    clean = _redacted(source, tmp_path)[0]
    assert clean.modified()
    clean.revert()
    assert clean.response is not None
    before = json.loads(clean.response.get_content() or b"")
    assert before["access_token"] != "t-0123456789abcdef"
