"""No planted secret is left in anything that is written, shown, told or exported; and what is none stays readable."""

import asyncio
import html
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.example import read_script
from mcp_wiretap.export.live import Operations
from mcp_wiretap.proxy.flow_io import flows_of
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.view import order
from mcp_wiretap.web.site import NAMES, Site
from mcp_wiretap.wire.secret import KnownSecrets, concealed, knowing, mask, mask_header, masked
from tests.cli.recordings import record
from tests.redact.planting import traces
from tests.security.planted import READABLE, Planted, plant
from tests.web.looking import Script

AUDIT = ("text", "json", "jsonl", "sarif", "junit", "html")
EXPORT = ("flow", "har", "jsonl", "otlp")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Planted]:
    path = tmp_path_factory.mktemp("planted") / "run.flow"
    return path, plant(path)


@pytest.fixture(scope="module")
def followed(planted: tuple[Path, Planted]) -> Script:
    return Script(list(Recording(planted[0]).events()))


def left(data: bytes, secret: Planted) -> list[str]:
    """The places whose secrets are left in an output, in whatever spelling."""
    lower = data.lower()
    return [
        place
        for place, value in secret.secrets.items()
        if any(trace in data or (b"%" in trace and trace.lower() in lower) for trace in traces(value))
    ]


def _written(target: Path, *arguments: str) -> bytes:
    main([*arguments, "--output", str(target)])
    return target.read_bytes()


@pytest.mark.parametrize("form", AUDIT)
def test_reports(form: str, planted: tuple[Path, Planted], tmp_path: Path) -> None:
    data = _written(tmp_path / "report", "audit", str(planted[0]), "--format", form, "--fail-on", "never")
    assert len(data) > 1_000 and left(data, planted[1]) == []


@pytest.mark.parametrize("form", EXPORT)
def test_exports(form: str, planted: tuple[Path, Planted], tmp_path: Path) -> None:
    data = _written(tmp_path / f"run.{form}", "export", str(planted[0]), "--format", form)
    assert left(data, planted[1]) == []
    if form == "flow":
        assert [name for name, value in READABLE.items() if value.encode() not in data] == []


def test_markdown_and_annotations(planted: tuple[Path, Planted], tmp_path: Path) -> None:
    for flow in flows_of(planted[0]):
        data = _written(tmp_path / "page.md", "export", str(planted[0]), "--format", "md", "--conversation", flow.id)
        assert left(data, planted[1]) == []
    assert main(["annotate", str(planted[0]), str(tmp_path / "annotated.flow")]) in (0, 1)
    written = [
        f"{flow.comment} {flow.marked} {[item for item in flow.metadata.items() if item[0].startswith('mcp.')]}"
        for flow in flows_of(tmp_path / "annotated.flow")
    ]
    assert any("mcp.rules" in line for line in written) and left("\n".join(written).encode(), planted[1]) == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_differences(form: str, planted: tuple[Path, Planted], tmp_path: Path) -> None:
    other = tmp_path / "other.flow"
    record(other, 'modern tools/list\n  -> result {"tools": []}\n')
    for pair in ((str(planted[0]), str(other)), (str(other), str(planted[0]))):
        for more in ((), ("--hop",)):
            data = _written(tmp_path / "diff", "diff", *pair, "--format", form, *more)
            assert len(data) > 100 and left(data, planted[1]) == []


def _of_pages(followed: Script) -> Iterator[tuple[str, str]]:
    site = Site(followed, lambda flow: flow)  # type: ignore[arg-type]
    site.traces = followed.traces
    for name in NAMES:
        page = asyncio.run(site.page(name, {}))
        yield name, page
        for key in sorted(set(re.findall(r'data-key="([^"]+)"', page))):
            yield f"opened {name}", site.detail(name, html.unescape(key), {}) or ""
    for exchange in followed.exchanges:
        for name in ("protocol", "network", "streams"):
            yield f"opened {name}", site.detail(name, exchange.flow, {}) or ""
        for what in ("json", "curl", "case"):
            yield f"copied as {what}", site.copy(what, exchange.flow) or ""


def test_pages_and_copies(followed: Script, planted: tuple[Path, Planted]) -> None:
    found: dict[str, list[str]] = {}
    seen = 0
    for name, text in _of_pages(followed):
        seen += len(text)
        if leaks := left(text.encode(), planted[1]):
            found.setdefault(name, []).extend(leaks)
    assert seen > 200_000 and found == {} and followed.faults == []


def test_the_content_view(followed: Script, planted: tuple[Path, Planted]) -> None:
    text = ""
    for exchange in followed.exchanges:
        subject = followed.whole(exchange.flow)
        assert subject is not None
        text += order.request(subject) + order.response(subject)
    assert left(text.encode(), planted[1]) == []
    assert [name for name, value in READABLE.items() if value not in text] == []


def test_what_is_told_of_live_traffic(planted: tuple[Path, Planted]) -> None:
    told: list[object] = []
    operations = Operations(told.extend, lambda flow, error: told.append(error))
    inspector = Inspector(operations.before(RuleBook.of(_rules())))
    for event in Recording(planted[0]).events():
        inspector.feed(event)
    operations.finish()
    # The session is masked where spans are made of it, `once` is nobody's to read.
    text = "\n".join(re.sub(r"(session|once)='[^']*'", "", repr(one)) for one in told)
    assert len(told) > 5 and left(text.encode(), planted[1]) == []


@cache
def _rules() -> list:  # type: ignore[type-arg]
    return list(find_rules())


def test_what_one_place_shows_to_be_secret_is_masked_wherever_it_is_repeated() -> None:
    script = 'modern tools/call {"name": "a", "arguments": {}}\n  header Mcp-Session-Id: s-0123456789-abcdef\n'
    script += '  -> error -32602 {"message": "Session not found: s-0123456789-abcdef"}\n'
    script += 'modern tools/call {"name": "s-0123456789-abcdef", "arguments": {}}\n  header Mcp-Name: other\n'
    script += '  -> result {"content": []}\n'
    inspector = Inspector(RuleBook.of(_rules()))
    for event in read_script(script):
        inspector.feed(event)
    words = [f"{f.message} {f.evidence}" for e in inspector.exchanges.values() for f in e.findings]
    assert any(mask("s-0123456789-abcdef") in text for text in words)
    assert not any("s-0123456789-abcdef" in text for text in words)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no such thing: {0}.", "no such thing: {1}."),
        ("cut at the end: {0:.12}", "cut at the end: {1}"),
        ("cut and told {0:.12}…", "cut and told {1}…"),
        ("x%3D{0}%22", "x%3D{1}%22"),
        ("a\\n{0}", "a\\n{1}"),
        ("{0:.12}other", "{0:.12}other"),
        ("tools of Zq8v", "tools of Zq8v"),
        ("unlike {0:.7}", "unlike {0:.7}"),
    ],
)
def test_known_secrets_in_texts(text: str, shown: str) -> None:
    known = KnownSecrets()
    known.add("Zq8v-K2mN-4pR7-sT1w")
    secret = "Zq8v-K2mN-4pR7-sT1w"
    with knowing(known):
        assert concealed(text.format(secret)) == shown.format(secret, mask(secret))
    assert concealed(text.format(secret)) == text.format(secret)


def test_a_state_that_begins_with_a_name_does_not_hide_the_name() -> None:
    known = KnownSecrets()
    known.add("get_weather:step1:Zq8vK2mN4pR7")
    for text in ("get_weather", "tools/call get_weather", "get_weather…", "call get_weather:step1"):
        assert known.masked(text) == text


def test_a_word_of_the_protocol_is_no_secret_elsewhere_and_the_table_is_bounded() -> None:
    known = KnownSecrets()
    known.learn_text('{"password": "complete", "secret": "tools/call"}')
    assert len(known) == 0
    for number in range(5_000):
        known.learn_text(f'{{"password": "hunter-{number:08}"}}')
    assert len(known) == 4_000
    assert known.masked("hunter-00000001") == "hunter-00000001" and known.masked("hunter-00004999") == mask("hunter-00004999")


@pytest.mark.parametrize(
    "name",
    [
        "X-Goog-Api-Key",
        "X-Amz-Security-Token",
        "CF-Access-Client-Secret",
        "X-Client-Secret",
        "X-Password",
        "X-Vault-Token",
        "PRIVATE-TOKEN",
        "apikey",
        "X-CSRF-Token",
        "Mcp-Param-Token",
        "Ocp-Apim-Subscription-Key",
        "X-Functions-Key",
        "X-Session",
        "X-Signature",
        "X-Hub-Signature-256",
    ],
)
def test_header_names_by_whole_words(name: str) -> None:
    assert mask_header(name, "Zq8v") == mask("Zq8v")


@pytest.mark.parametrize(
    "name",
    [
        "X-Max-Tokens",
        "X-Tokenizer",
        "X-Session-Count",
        "X-Author",
        "Idempotency-Key",
        "Mcp-Name",
        "WWW-Authenticate",
        "X-Keyword",
    ],
)
def test_header_names_that_only_look_so(name: str) -> None:
    assert mask_header(name, "n1nja-0123456789abcdef") == "n1nja-0123456789abcdef"


def test_numbers_and_lists_of_secret_members() -> None:
    value = {"pin": 4711, "otp": 123456, "error": {"code": -32602}, "max_tokens": 4096, "pinned": 12345, "passwords": ["a", "b"]}
    assert masked(value) == {
        "pin": mask("4711"),
        "otp": mask("123456"),
        "error": {"code": -32602},
        "max_tokens": 4096,
        "pinned": 12345,
        "passwords": [mask("a"), mask("b")],
    }


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://user:Zq8v@host/x", "Zq8v"),
        ("postgres://app:Zq8v@db/x?y=1", "Zq8v"),
        ("DB_PASSWORD=Zq8v", "Zq8v"),
        ("export token=Zq8vK2mN4pR7sT1w now", "Zq8vK2mN4pR7sT1w"),
        ('{"access_token": "Zq8v"}', "Zq8v"),
        (r"{\"access_token\": \"Zq8v\"}", "Zq8v"),
        ("Authorization: Basic Zq8vK2", "Zq8vK2"),
        ("X-Api-Key: Zq8vK2", "Zq8vK2"),
        ("https://h/p?pwd=Zq8v&x=1", "Zq8v"),
        ("https://h/p?subscription-key=Zq8v#y", "Zq8v"),
        ("https://h/cb?code=Zq8vK2mN4pR7", "Zq8vK2mN4pR7"),
    ],
)
def test_secrets_in_texts(text: str, secret: str) -> None:
    assert concealed(text) == text.replace(secret, mask(secret))


@pytest.mark.parametrize(
    "text",
    [
        "password: str, token: int",
        "password = args.password",
        "password = getpass()",
        "max_tokens=1000",
        "the token: abc",
        "primary_key=id12345678901",
        "nextPageToken=CAUQAAabc1234567",
        "mailto:a@b",
        "http://host:8080/a@b",
        "code=US&state=CA",
        "http://[::1]:80/@x",
        'Enter password: ",\n   "b": "c"',
        "tokenizer=cl100k_base99999",
        "author=n1nja0123456789",
    ],
)
def test_texts_that_only_look_so(text: str) -> None:
    assert concealed(text) == text


def test_text_of_any_size_is_looked_at_in_little_time() -> None:
    for text in ("a" * 1_000_000, "a=" * 500_000, "://a:" * 200_000, "-----BEGIN PRIVATE KEY-----" * 20_000, '"' * 500_000):
        started = time.process_time()
        concealed(text)
        assert time.process_time() - started < 5, text[:20]
