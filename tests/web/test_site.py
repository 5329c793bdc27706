# ruff: noqa: E501 - a line of a script is a message
"""Pages as HTML: all of them, filtered, opened, with hostile text in every place."""

import json
import re
from html.parser import HTMLParser

import pytest

from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.web.live import Live
from mcp_wiretap.web.render import coloured, marked
from mcp_wiretap.web.site import NAMES, WINDOW
from tests.web.looking import HOSTILE, OVERRIDE, ROUNDS, Script

EVIL = json.dumps(f"{HOSTILE}{OVERRIDE}\x1b[31m\x00").strip('"')
LONG = "A" * 1_000_000
HOSTILE_SCRIPT = f"""
modern server/discover
  capabilities {{"extensions": {{"{EVIL}": {{}}}}}}
  -> result {{"supportedVersions": ["{EVIL}"], "capabilities": {{"{EVIL}": {{"{EVIL}": true}}, "extensions": {{"{EVIL}": {{"a": "{EVIL}"}}}}}}, "instructions": "{EVIL}", "_meta": {{"io.modelcontextprotocol/serverInfo": {{"name": "{EVIL}", "version": "{EVIL}"}}}}}}
modern tools/list
  -> tool name {{"{EVIL}": {{"type": "string", "x-mcp-header": "{EVIL}"}}}} {{"name": "{EVIL}", "description": "{EVIL} {LONG}", "title": "{EVIL}", "_meta": {{"ui": {{"resourceUri": "ui://{EVIL}"}}}}}}
modern resources/list
  -> result {{"resources": [{{"uri": "ui://{EVIL}", "name": "{EVIL}", "mimeType": "{EVIL}"}}]}}
modern resources/read {{"uri": "ui://{EVIL}"}}
  -> result {{"contents": [{{"uri": "ui://{EVIL}", "mimeType": "{EVIL}", "text": "{EVIL}", "_meta": {{"ui": {{"csp": {{"{EVIL}": ["{EVIL}"]}}, "domain": "{EVIL}"}}}}}}]}}
modern tools/call {{"name": "{EVIL}", "arguments": {{"{EVIL}": "{EVIL}"}}}}
  meta io.modelcontextprotocol/logLevel "debug"
  -> sse
  -> notify notifications/message {{"level": "{EVIL}", "logger": "{EVIL}", "data": "{EVIL}"}}
  -> notify notifications/{HOSTILE} {{"uri": "{EVIL}"}}
  -> error -32602 {{"message": "{EVIL}", "data": {{"{EVIL}": "{EVIL}"}}}}
modern tools/call {{"name": "{EVIL}", "arguments": {{}}}}
  capabilities {{"elicitation": {{"form": {{}}}}}}
  -> result {{"resultType": "input_required", "inputRequests": {{"{EVIL}": {{"method": "elicitation/create", "params": {{"message": "{EVIL}", "requestedSchema": {{"type": "object", "properties": {{"{EVIL}": {{"type": "string"}}}}}}}}}}}}, "requestState": "{EVIL} of the state"}}
modern tools/call {{"name": "{EVIL}", "arguments": {{}}, "requestState": "{EVIL} of the state", "inputResponses": {{"{EVIL}": {{"action": "{EVIL}", "content": {{"{EVIL}": "{EVIL}"}}}}}}}}
  capabilities {{"elicitation": {{"form": {{}}}}}}
  -> result {{"resultType": "task", "taskId": "{EVIL}", "status": "{EVIL}", "statusMessage": "{EVIL}"}}
modern tasks/get {{"taskId": "{EVIL}"}}
  -> result {{"taskId": "{EVIL}", "status": "input_required", "inputRequests": {{"{EVIL}": {{"method": "{EVIL}"}}}}}}
modern subscriptions/listen {{"notifications": {{"resourceSubscriptions": ["{EVIL}"]}}}}
  -> sse
  -> ack {{"resourceSubscriptions": ["{EVIL}"]}}
  -> open
POST /mcp?{HOSTILE}
  header X-Evil: {HOSTILE}
  header Content-Type: application/json
  body {{"jsonrpc": "2.0", "id": 1, "method": "{EVIL}"}}
  -> 401 text/html {HOSTILE}
"""


class Tags(HTMLParser):
    """What a browser would make of it: elements, handlers, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "script":
            self.scripts.append(found.get("src"))
        self.handlers += [name for name in found if name.startswith("on")]
        self.links += [value for name, value in found.items() if name in ("href", "src", "action") and value]


def inert(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert tags.scripts in ([], ["/mcp/static/mcp.js"])
    assert not tags.handlers
    for link in tags.links:
        assert re.match(r"(/|#|\?)|https://(modelcontextprotocol\.io|www\.rfc-editor\.org|github\.com)/", link), link
    assert OVERRIDE[0] not in html and "\x1b" not in html and "\x00" not in html
    assert "A" * 5_000 not in html


@pytest.fixture(scope="module")
def hostile():
    return Script(HOSTILE_SCRIPT)


@pytest.mark.parametrize("name", NAMES)
async def test_every_page_shows_hostile_text_and_obeys_none(name, hostile):
    html = await hostile.site().page(name, {})
    inert(html)
    assert name in ("findings", "auth", "streams") or "&lt;script&gt;" in html


@pytest.mark.parametrize("name", ["protocol", "network", "streams", "overview", "findings", "tools", "tasks"])
async def test_every_opened_row_is_inert(name, hostile):
    site = hostile.site()
    rows = "".join((await site.rows(name, {})).rows)
    keys = re.findall(r'data-key="([^"]*)"', rows)
    assert keys
    from html import unescape

    for key in dict.fromkeys(keys):
        html = site.detail(name, unescape(key))
        assert html is not None, key
        inert(html)


@pytest.mark.parametrize("kind", ["resources", "prompts"])
async def test_other_lists_are_inert(kind, hostile):
    inert(await hostile.site().page("tools", {"kind": kind}))


async def test_a_hostile_query_is_inert(hostile):
    for name in NAMES:
        html = await hostile.site().page(
            name, {"q": HOSTILE, "era": HOSTILE, "endpoint": HOSTILE, "kind": HOSTILE, "level": HOSTILE}
        )
        inert(html)


@pytest.mark.parametrize("name", NAMES)
async def test_every_page_says_what_to_do_when_there_is_nothing(name):
    html = await Script("GET http://elsewhere.example/x\n  -> 200 text/plain x\n").site().page(name, {})
    assert "No MCP traffic yet" in html and "1 flow was seen, which is not MCP" in html


async def test_a_filter_that_hides_all_says_so():
    html = await Script(ROUNDS).site().page("protocol", {"q": "tool:nothing"})
    assert "No operation matches" in html and "1 hidden by this filter" in html


async def test_long_lists_come_in_windows_and_older_rows_on_demand():
    script = Script(
        'modern tools/call {"name": "echo", "arguments": {}}\n  -> result {"content": []}\n' * (WINDOW + 30), catch_up=1_000
    )
    site = script.site()
    newest = await site.rows("protocol", {})
    assert newest.shown == WINDOW and newest.older
    older = await site.rows("protocol", {"before": newest.older})
    assert older.shown == 30 and not older.older
    keys = re.findall(r'data-key="([^"]*)"', "".join([*older.rows, *newest.rows]))
    assert keys == [e.flow for e in script.exchanges]
    reverse = await site.rows("protocol", {"order": "newest"})
    assert re.findall(r'data-key="([^"]*)"', reverse.rows[0])[0] == script.exchanges[-1].flow


async def test_single_rows_can_be_asked_for_whatever_the_filter():
    window = await Script(ROUNDS).site().rows("network", {"only": "flow-2", "q": "tool:nothing"})
    assert [row for row in window.rows if 'data-key="flow-2"' in row]


async def test_a_silence_takes_findings_back_and_is_counted():
    script = Script('modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n')
    site = script.site()
    assert script.ledger.severities["error"] == 1
    assert await site.silence(Silence("HDR006", "*", "known")) == 1
    await site.settle()
    assert script.ledger.severities["error"] == 0
    assert script.redrawn == script.exchanges[:1]
    assert sum(script.exchanges[0].silenced.values()) == 1


async def test_an_exchange_that_is_judged_anew_stays_silenced_and_is_counted_once():
    script = Script('modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> sse\n  -> open\n')
    silence = Silence("HDR006", "*", "known")
    assert await script.site().silence(silence) == 1
    script.inspector.rejudge(script.exchanges[0])
    assert "HDR006" not in [f.rule for f in script.exchanges[0].findings]
    assert script.book.silenced == script.exchanges[0].silenced == {silence: 1}


async def test_findings_say_what_is_silenced_where_and_why():
    wrong = 'modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n'
    script = Script(wrong * 2 + wrong.replace("\n", "\n  path http://second.example/mcp\n", 1))
    site = script.site()
    assert await site.silenced(Filter()) == []
    assert re.search('class="[^"]*silenced[^"]*" hidden', await site.page("findings", {}))
    await site.silence(Silence("HDR006", "*", "<known>"))
    html = await site.page("findings", {})
    assert "3 findings silenced" in html and "&lt;known&gt;" in html and "every endpoint" in html
    assert not re.search('class="[^"]*silenced[^"]*" hidden', html)
    assert "1 finding silenced" in await site.page("findings", {"endpoint": script.exchanges[2].endpoint.url})


async def test_a_silence_holds_for_files_that_are_loaded_later():
    wrong = 'modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n'
    script, later = Script(wrong), Script(wrong)
    site = script.site()
    await site.silence(Silence("HDR006", "*", "known"))
    script.inspectors = lambda: [script.inspector, later.inspector]
    live = Live(site)
    await live.turn()
    await live.turn()
    assert site.traces.severity_counts()["error"] == 0


# What is told to an open page


class Told(list):
    def __call__(self, text):
        self.append(json.loads(text))


async def test_an_open_page_is_sent_the_rows_that_changed_and_fit():
    script = Script(ROUNDS)
    live, told, other = Live(script.site()), Told(), Told()
    live.subscribe(told, "protocol", {})
    live.subscribe(other, "protocol", {"q": "tool:nothing"})
    await live.turn()
    for exchange in script.exchanges:
        script.inspector.touched(exchange)
    await live.turn()
    (message,) = [m for m in told if m["type"] == "rows"]
    assert [row["key"] for row in message["rows"]] == ["flow-1"] and message["gone"] == ["flow-2"]
    assert 'data-key="flow-1"' in message["rows"][0]["html"]
    assert not any(row for m in other if m["type"] == "rows" for row in m["rows"])
    assert [m["summary"]["operations"] for m in told if m["type"] == "summary"] == [1]


async def test_a_page_whose_rows_hang_together_is_told_to_look_again_once_a_second():
    script = Script(ROUNDS)
    live, told = Live(script.site()), Told()
    live.subscribe(told, "findings", {})
    for _ in range(5):
        script.inspector.touched(script.exchanges[0])
        await live.turn()
    assert [m["type"] for m in told].count("look") == 1


async def test_nothing_is_sent_while_nothing_happens():
    live, told = Live(Script(ROUNDS).site()), Told()
    live.subscribe(told, "protocol", {})
    for _ in range(3):
        await live.turn()
    assert told == []


async def test_the_loop_is_not_held_while_ten_thousand_flows_are_taken_over():
    import asyncio
    import time

    one = 'modern tools/call {"name": "echo", "arguments": {}}\n  -> result {"content": []}\n'
    script = Script(one * 2_000, catch_up=1_000_000_000)
    site = script.site()
    site.traces.ledgers.clear()
    longest, last = 0.0, time.process_time()

    async def watch():
        nonlocal longest, last
        while True:
            now = time.process_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    html = await site.page("protocol", {"q": "echo"})
    watching.cancel()
    assert html.count("data-key=") == WINDOW
    assert longest < 0.15  # a slice is 4 ms; the rest is for slow machines and the template of the page


# Pieces


def test_json_keeps_its_text_when_it_is_coloured():
    text = '{\n  "a<b": "x\\"<i>\\u202e",\n  "n": -1.5e3,\n  "t": true\n}'
    html = str(coloured(text))
    assert "<i>" not in html and '<span class="k">' in html
    from html import unescape

    assert unescape(re.sub(r"<[^>]+>", "", html)) == text


def test_escapes_of_invisible_characters_are_set_off():
    assert str(marked("a\\u202eb<")) == '<bdi>a<span class="ctl" title="invisible character">\\u202e</span>b&lt;</bdi>'
    assert str(marked(None)) == ""


# Network: rows on the scale of their burst, also as they come

APART = "modern ping\n  after 30\n  -> result {}\n"
BESIDE = "modern ping\n  after 0.2\n  -> result {}\n"


class Growing(Script):
    """A script that is followed a flow at a time."""

    def __init__(self, script: str) -> None:
        super().__init__(script)
        self.waiting = self.events
        self.inspector = Inspector(self.book)
        self.traces.follow([self.inspector])

    def go(self) -> None:
        flow = self.waiting[0].flow
        while self.waiting and self.waiting[0].flow == flow:
            self.inspector.feed(self.waiting.pop(0))


def seen(page: dict[str, str], message: dict) -> list[str]:
    """What the rows of a page look like after a message: only what this test needs of mcp.js."""
    page |= {row["key"]: row["html"] for row in message["rows"]}
    return [re.search(r'class="(?:req|ttfb)" style="--x:([\d.]+)', html)[1] for html in page.values()]


async def told_rows(script: Growing, query: dict[str, str], number: int) -> list[dict]:
    live, told = Live(script.site()), Told()
    live.subscribe(told, "network", query)
    for _ in range(number):
        script.go()
        await live.turn()
    return [m for m in told if m["type"] == "rows"]


async def test_a_row_that_comes_is_drawn_on_the_scale_of_its_burst_under_its_head():
    script = Growing(APART + BESIDE + BESIDE)
    first, second, third = await told_rows(script, {}, 3)
    assert [b["head"].count("scale-row") for b in first["bursts"]] == [1] and "1 exchange in" in first["bursts"][0]["head"]
    assert [row["key"] for row in second["rows"]] == ["flow-1", "flow-2"]  # the scale is another one: both are drawn anew
    assert "2 exchanges in" in second["bursts"][0]["head"] and second["bursts"][0]["last"] == "flow-2"
    assert [row["key"] for row in third["rows"]] == ["flow-3"]  # it holds the third one, too
    page: dict[str, str] = {}
    for message in (first, second, third):
        places = seen(page, message)
    window = await script.site().rows("network", {})
    loaded = [row for row in window.rows if "data-key" in row]
    assert list(page.values()) == loaded and places[0] == "0.0" < places[1] < places[2]


async def test_a_burst_that_comes_later_is_told_with_the_idle_time_before_it_and_nothing_else_is_drawn():
    for order in ("oldest", "newest"):
        first, second = await told_rows(Growing(APART + APART), {"order": order}, 2)
        assert [row["key"] for row in second["rows"]] == ["flow-2"]
        assert first["bursts"][0]["gap"] == "" and "idle 3" in second["bursts"][0]["gap"]


async def test_a_row_that_ends_after_a_later_burst_began_is_drawn_anew():
    script = Growing(APART + APART)
    live, told = Live(script.site()), Told()
    live.subscribe(told, "network", {})
    for _ in range(2):
        script.go()
        await live.turn()
    script.inspector.touched(script.inspector.exchanges["flow-1"])
    await live.turn()
    last = [m for m in told if m["type"] == "rows"][-1]
    assert [row["key"] for row in last["rows"]] == ["flow-1"] and "data-kept" not in last["rows"][0]["html"]
    assert [burst["first"] for burst in last["bursts"]] == ["flow-1"]


async def test_a_row_of_long_ago_keeps_the_bar_it_has():
    script = Script(APART * (WINDOW + 5), catch_up=1_000)
    live, told = Live(script.site()), Told()
    live.subscribe(told, "network", {})
    script.inspector.touched(script.exchanges[0])
    await live.turn()
    (message,) = [m for m in told if m["type"] == "rows"]
    assert [row["key"] for row in message["rows"]] == ["flow-1"] and "data-kept" in message["rows"][0]["html"]


async def test_what_a_page_takes_over_while_it_loads_is_told_to_the_open_ones():
    script = Growing(APART * 2)
    site = script.site()
    live, told = Live(site), Told()
    live.subscribe(told, "protocol", {})
    script.go()
    await site.page("findings", {})
    await live.turn()
    assert [row["key"] for m in told if m["type"] == "rows" for row in m["rows"]] == ["flow-1"]


async def test_what_there_is_to_choose_from_is_told_as_it_becomes_known():
    script = Growing(APART)
    live, told = Live(script.site()), Told()
    live.subscribe(told, "protocol", {})
    html = await live.site.page("protocol", {})
    assert re.search(r'<label class="sel " hidden>.{0,60}data-choose="method"', html)
    script.go()
    await live.turn()
    (choices,) = [m["choices"] for m in told if m["type"] == "choices"]
    assert choices["method"] == [["ping", "ping"]] and len(choices["endpoint"]) == 1


async def test_a_page_of_live_traffic_follows_before_there_is_any_and_one_of_a_file_does_not():
    def follows(html: str) -> bool:
        return 'id="follow" aria-pressed="true"' in html and 'id="live-word">Live<' in html

    empty, file = Script(""), Script(ROUNDS)
    assert follows(await empty.site().page("protocol", {}))
    empty.inspectors = lambda: [empty.inspector, file.inspector]
    html = await empty.site().page("protocol", {})
    assert not follows(html) and 'id="live-word">Recording<' in html


async def test_an_empty_page_says_where_the_proxy_listens():
    site = Script("").site()
    assert "--listen-host 127.0.0.1 --set keep_host_header=true" in await site.page("protocol", {})
    site.listening = lambda: [("http://127.0.0.1:8080", "reverse proxy to http://127.0.0.1:3000")]
    html = await site.page("protocol", {})
    assert "<code>http://127.0.0.1:8080</code> reverse proxy to" in html and "mcp-wiretap web" not in html


async def test_what_a_server_announces_is_told_once_where_the_page_would_show_it():
    script = Growing(
        'modern ping\n  -> result {}\nmodern subscriptions/listen {"notifications": {"toolsListChanged": true}}\n  -> sse\n'
        '  -> ack {"toolsListChanged": true}\n  -> notify notifications/tools/list_changed\n  -> open\n'
    )
    live, all_, filtered, late = Live(script.site()), Told(), Told(), Told()
    live.subscribe(all_, "protocol", {})
    live.subscribe(filtered, "protocol", {"method": "subscriptions/listen"})
    script.go()
    await live.turn()
    script.go()
    await live.turn()
    live.subscribe(late, "protocol", {})
    script.inspector.touched(script.exchanges[-1])
    await live.turn()

    def notices(told):
        return [row["key"] for m in told if m["type"] == "rows" for row in m["rows"] if row["key"].startswith("n-")]

    (key,) = notices(all_)
    assert f'id="r-{key}"' in await live.site.page("protocol", {})
    assert notices(filtered) == notices(late) == []
    assert any(m["type"] == "rows" for m in filtered) and any(m["type"] == "rows" for m in late)


async def test_what_was_announced_last_stands_on_a_page_that_has_older_rows():
    listen = (
        'modern subscriptions/listen {"notifications": {"toolsListChanged": true}}\n  -> sse\n'
        '  -> ack {"toolsListChanged": true}\n  -> notify notifications/tools/list_changed\n  -> open\n'
    )
    site = Script("modern ping\n  -> result {}\n" * WINDOW + listen, catch_up=1_000).site()
    window = await site.rows("protocol", {})
    assert window.older and [row for row in window.rows if 'id="r-n-' in row]
    older = await site.rows("protocol", {"before": window.older})
    assert older.rows and not [row for row in older.rows if 'id="r-n-' in row]
