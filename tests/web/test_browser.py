"""The pages in a browser: against a real mitmweb with the demonstration's traffic, and with a hostile recording."""

import contextlib
import http.client
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from harness.browser import FLAGS, find_chromium
from harness.children import Children, free_ports
from harness.proxies import start_proxy
from harness.run import ERAS, Programs, demonstration_options, run_client, start_servers
from tests.web import recording
from tests.web.test_site import HOSTILE_SCRIPT

pytestmark = pytest.mark.browser
PAGES = ("", "protocol", "network", "findings", "tools", "streams", "tasks", "logs", "auth", "apps")
PATIENCE = 10_000
SMALL = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(find_chromium()), args=list(FLAGS))
        yield made
        made.close()


class Site:
    """A mitmweb at work: its address, its token, and the servers that are behind it."""

    def __init__(self, page: str, upstreams: dict[str, str]) -> None:
        self.origin, _, query = page.partition("?")
        self.token = query.removeprefix("token=")
        self.upstreams = upstreams

    def url(self, path: str = "") -> str:
        return f"{self.origin}mcp/{path}"


@pytest.fixture(scope="module")
def demo():
    with Children() as children:
        programs = Programs()
        servers, addresses = start_servers(children, programs)
        options = ["web", *demonstration_options(children), "--set", "web_open_browser=false"]
        proxy = start_proxy(children, [*programs.wiretap, *options], [addresses[era] for era in ERAS], web_port=8281, port=8260)
        run_client(children, programs, servers, proxy)
        yield Site(proxy.page, {era: up.proxied for era, up in zip(ERAS, proxy.upstreams, strict=True)})


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    recording.write(HOSTILE_SCRIPT, folder / "hostile.flow")
    with Children() as children:
        options = [*demonstration_options(children), "--set", "web_open_browser=false", "-nr", str(folder / "hostile.flow")]
        (port,) = free_ports(8291)
        child = children.start("web", [*Programs().wiretap, "web", *options, "--set", f"web_port={port}"])
        yield Site(child.wait_for(r"Web server listening at (\S+)", 60)[1], {})


@contextlib.contextmanager
def opened(browser, site: Site, path: str = "", *, viewport=None, login: bool = True, scheme="light"):
    context = browser.new_context(viewport=viewport or {"width": 1440, "height": 900}, color_scheme=scheme)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type == "error" and "/mcp/" in page.url else None)
    page.on("pageerror", lambda e: said.append(str(e)))
    if login:
        page.goto(f"{site.url()}?token={site.token}")
        if path:
            page.goto(site.url(path))
    else:
        page.goto(site.url(path))
    yield page
    if login:
        assert said == []
    context.close()


def rows(page: Page):
    return page.locator("#list > li[data-key]")


@pytest.mark.parametrize("name", PAGES)
def test_each_page_shows_the_demonstration(browser, demo, name):
    with opened(browser, demo, name) as page:
        expect(page.locator("nav.side a[aria-current=page]")).to_have_count(1)
        if name not in ("auth",):
            expect(page.locator("#list > li").first).to_be_visible(timeout=PATIENCE)
        if name in ("", "protocol", "network", "findings", "streams", "tasks"):
            rows(page).first.locator("summary").click()
            expect(rows(page).first.locator("[data-open] > *").first).to_be_visible()
            expect(rows(page).first.locator("[data-open] .skel")).to_have_count(0)


def test_after_a_look_at_the_pages_mitmwebs_own_list_has_room_for_the_verdict(browser, demo):
    with opened(browser, demo) as page:
        page.goto(demo.origin)
        column = page.locator("th.col-comment, th[class*=comment]").first
        expect(column).to_be_visible(timeout=PATIENCE)
        assert column.bounding_box()["width"] > 400
        page.evaluate("localStorage.setItem('mitmweb-column-widths', '{\"comment\":222}')")
        page.goto(demo.url())
        assert page.evaluate("localStorage.getItem('mitmweb-column-widths')") == '{"comment":222}'


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways_on_a_small_phone(browser, demo, name):
    with opened(browser, demo, name, viewport=SMALL) as page:
        page.wait_for_timeout(300)
        for row in rows(page).locator("summary").all()[:3]:
            row.click()
        page.wait_for_timeout(500)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]


@pytest.mark.parametrize("name", ["", "protocol", "network"])
def test_pages_fill_a_large_screen(browser, demo, name):
    with opened(browser, demo, name, viewport={"width": 3840, "height": 2160}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 3840
        assert page.locator("main").bounding_box()["width"] > 3000


IDS = "[...document.querySelectorAll('#list > li')].map((row) => row.id)"


class Lists(BaseHTTPRequestHandler):
    """A server that lists one tool, which no client may offer, and tells a listener that the list has changed."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["method"] == "subscriptions/listen":
            told = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode()
            self._answer("text/event-stream", b"data: " + told + b"\n\n")
            return
        schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "not a token"}}}
        result = {"resultType": "complete", "tools": [{"name": "query", "inputSchema": schema}]}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        self._answer("application/json", body)

    def _answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        return None


def test_pages_opened_before_there_is_traffic_come_to_show_what_a_reload_does(browser):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Children() as children, contextlib.ExitStack() as stack:
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        options = ["web", *demonstration_options(children), "--set", "web_open_browser=false"]
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        proxy = start_proxy(children, [*Programs().wiretap, *options], [url], web_port=8297, port=8270)
        site = Site(proxy.page, {})
        pages = {
            name: stack.enter_context(opened(browser, site, name))
            for name in ("tools", "auth", "streams", "tasks", "logs", "protocol")
        }
        for page in pages.values():
            expect(page.locator(".empty")).to_contain_text("No MCP traffic yet")
            page.wait_for_timeout(300)  # until it listens
        call(proxy.upstreams[0].proxied, 1, 1, "tools/list")
        for name, words in {
            "auth": "No authorization",
            "streams": "No stream",
            "tasks": "No task",
            "logs": "No server has",
        }.items():
            page = pages[name]
            expect(page.locator(".empty")).to_contain_text(words, timeout=PATIENCE)
            live = page.locator("#content").inner_text()
            page.reload()
            assert page.locator("#content").inner_text() == live
        expect(pages["tools"].get_by_role("link", name="Excluded")).to_have_text("Excluded 1", timeout=PATIENCE)
        call(proxy.upstreams[0].proxied, 1, 1, "subscriptions/listen")
        page = pages["protocol"]
        expect(page.locator("#list > .slim")).to_contain_text(["list_changed"], timeout=PATIENCE)
        expect(rows(page)).to_have_count(2, timeout=PATIENCE)
        live = page.evaluate(IDS)
        page.reload()
        assert page.evaluate(IDS) == live


def test_without_a_token_there_is_the_login_and_it_leads_back(browser, demo):
    with opened(browser, demo, "findings", login=False) as page:
        expect(page.get_by_text("Authentication Required")).to_be_visible()
        assert page.locator("#list").count() == 0
        page.fill("input[name=token]", demo.token)
        page.click("input[type=submit]")
        expect(page.get_by_role("heading", name="Findings", exact=True)).to_be_visible()
        assert page.url == demo.url("findings")


def test_the_token_does_not_stay_in_the_address(browser, demo):
    with opened(browser, demo) as page:
        assert "token" not in page.url


def call(url: str, units: int, delay: int, method: str = "tools/call") -> None:
    """A modern tools/call that reports its progress on an event stream, or another request with the same envelope."""
    parts = urlsplit(url)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "watched", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    }
    params = {"name": "send_progress", "arguments": {"units": units, "delayMs": delay}, "_meta": meta}
    if method != "tools/call":
        params = {"_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    if method == "tools/call":
        headers["Mcp-Name"] = "send_progress"
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("POST", parts.path, body, headers)
    connection.getresponse().read()
    connection.close()


def test_a_stream_shows_its_events_while_it_is_open(browser, demo):
    with opened(browser, demo, "protocol?client=watched") as page:
        worker = threading.Thread(target=call, args=(demo.upstreams["modern"], 12, 300))
        worker.start()
        try:
            row = rows(page).filter(has_text="send_progress").last
            expect(row).to_be_visible(timeout=PATIENCE)
            row.locator("summary").click()
            expect(row.locator(".rail li").filter(has_text="progress").first).to_be_visible(timeout=PATIENCE)
            expect(row.locator(".rail li").filter(has_text="more may come")).to_be_visible()
            seen = set()
            until = time.monotonic() + 6
            while time.monotonic() < until and len(seen) < 4:
                seen.add(row.locator(".tag").first.inner_text())
                page.wait_for_timeout(250)
            assert len(seen) >= 3, seen
            assert row.locator("details").get_attribute("open") is not None
        finally:
            worker.join()
        expect(row.locator("summary .st").first).to_contain_text("complete", timeout=PATIENCE)
        expect(row.locator(".rail li").filter(has_text="server ended the stream")).to_be_visible(timeout=PATIENCE)


DRAWN = """() => [...document.querySelectorAll("#list > li")].map((row) =>
    row.dataset.key ? row.dataset.key + row.querySelector(".wf").innerHTML : row.textContent.trim())"""


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_network_draws_what_comes_as_it_does_when_it_is_loaded_anew(browser, demo, order):
    with opened(browser, demo, f"network?order={order}&client=watched") as page:
        for pause in (0, 2_500, 0):  # so that there is idle time to tell of
            page.wait_for_timeout(pause)
            before = rows(page).count()
            call(demo.upstreams["modern"], 3, 100)
            expect(rows(page)).to_have_count(before + 1, timeout=PATIENCE)
        ends = rows(page).nth(0 if order == "newest" else -1)
        expect(ends.locator(".wf")).to_have_attribute("aria-label", re.compile("ends after"), timeout=PATIENCE)
        page.wait_for_timeout(600)
        live = page.evaluate(DRAWN)
        assert any("idle" in text for text in live) and sum("exchange" in text for text in live) >= 1
        page.reload()
        assert page.evaluate(DRAWN) == live


def test_follow_and_pause_stay_in_view_while_a_page_follows(browser, demo):
    with opened(browser, demo, "network", viewport={"width": 1440, "height": 400}) as page:
        assert page.evaluate("scrollY") > 0
        expect(page.locator("#follow")).to_be_in_viewport()
        expect(page.locator("#follow")).to_have_attribute("aria-pressed", "true")
        bar, head = page.locator(".bar").bounding_box(), page.locator(".list > .cols").bounding_box()
        assert bar["height"] < 60 and abs(bar["y"] + bar["height"] - head["y"]) < 2


@pytest.mark.parametrize("name", PAGES)
def test_the_tab_of_the_page_is_in_view_on_a_phone(browser, demo, name):
    with opened(browser, demo, name, viewport=SMALL) as page:
        expect(page.locator("nav.side a[aria-current=page]")).to_be_in_viewport(ratio=0.99)


def test_a_pause_holds_rows_back_and_counts_go_on(browser, demo):
    with opened(browser, demo, "protocol?client=watched") as page:
        page.wait_for_timeout(400)
        before, flows = rows(page).count(), int(page.locator("[data-count=flows]").first.inner_text())
        page.click("#pause")
        call(demo.upstreams["modern"], 1, 1)
        expect(page.locator("[data-count=flows]").first).not_to_have_text(str(flows), timeout=PATIENCE)
        assert rows(page).count() == before
        page.click("#pause")
        expect(rows(page)).to_have_count(before + 1, timeout=PATIENCE)


def test_filters_act_at_once_and_stand_in_the_address(browser, demo):
    with opened(browser, demo, "protocol") as page:
        everything = rows(page).count()
        page.fill("[data-filter]", "code:-32020")
        expect(rows(page).first.locator(".st")).to_contain_text("-32020")
        expect(page).to_have_url(re.compile("q=code"))
        assert 0 < rows(page).count() < everything
        page.reload()
        assert 0 < rows(page).count() < everything
        page.get_by_role("link", name="Legacy", exact=True).click()
        expect(page.get_by_text("No operation matches")).to_be_visible()
        page.go_back()
        expect(rows(page).first).to_be_visible()
        page.goto(demo.url("protocol?era=legacy"))
        assert set(page.locator("#list .srv .dot-era").evaluate_all("all => all.map(e => e.title)")) == {"legacy era"}
        page.select_option("[data-choose=method]", "initialize")
        expect(rows(page).first).to_be_visible()
        expect(page).to_have_url(re.compile("method=initialize"))


def test_a_deep_link_opens_its_row(browser, demo):
    with opened(browser, demo, "protocol") as page:
        row = rows(page).filter(has_text="mrtr_two_step").first
        row.locator("summary").click()
        expect(row.locator(".round").nth(1)).to_be_visible()
        link = page.url
        assert "#r-" in link
        page.goto("about:blank")
        page.goto(link)
        expect(page.locator("details[open] .round").nth(1)).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_text("echoed: same").first).to_be_visible()
        page.locator("details[open]").get_by_text("Network row").first.click()
        expect(page.get_by_role("heading", name="Network", exact=True)).to_be_visible()
        expect(page.locator("details[open] .rail")).to_be_visible(timeout=PATIENCE)


def test_a_deep_link_to_a_row_that_is_gone_says_so(browser, demo):
    with opened(browser, demo, "protocol#r-nothing-of-that-name") as page:
        expect(page.locator("#said")).to_contain_text("not there")


def test_rows_lead_to_mitmweb_and_back(browser, demo):
    with opened(browser, demo, "network") as page:
        rows(page).first.locator("summary").click()
        link = rows(page).first.get_by_text("mitmweb flow")
        href = link.get_attribute("href")
        assert re.fullmatch(r"/#/flows/[0-9a-f-]{36}/request", href)
        link.click()
        expect(page.locator(".flow-detail")).to_be_visible(timeout=PATIENCE)
        page.go_back()
        expect(page.get_by_role("heading", name="Network", exact=True)).to_be_visible()


def test_a_finding_is_explained_and_silenced_with_a_reason(browser, demo):
    with opened(browser, demo, "findings?q=rule:ERA015") as page:
        row = rows(page).first
        every = int(page.locator(".bar .seg a").first.inner_text().split()[1])
        count = int(row.locator(".out").inner_text().strip("×"))
        row.locator("summary").click()
        expect(row.get_by_text("What ERA015 demands")).to_be_visible()
        expect(row.get_by_text("How to fix")).to_be_visible()
        row.get_by_role("button", name="Silence ERA015").click()
        row.locator("input[name=reason]").fill("a known client")
        row.locator("form.silence").get_by_role("button", name="Silence", exact=True).click()
        expect(row.locator("[data-result] pre")).to_contain_text('reason = "a known client"')
        expect(row).to_have_class(re.compile("gone"), timeout=PATIENCE)
        expect(page.locator(".bar .seg a").first).to_have_text(f"All {every - count}")
        expect(page.locator(".silenced > summary")).to_have_text(f"{count} finding{'s' if count > 1 else ''} silenced")
        page.goto(demo.url("findings?q=rule:ERA015"))
        expect(page.get_by_text("No finding matches")).to_be_visible()
        page.locator(".silenced > summary").click()
        expect(page.locator(".silenced tbody tr")).to_contain_text(["a known client"])


def test_an_endpoint_that_is_typed_holds_for_an_opened_finding(browser, demo):
    with opened(browser, demo, "findings") as page:
        url = page.locator("[data-choose=endpoint] option").nth(1).get_attribute("value")
        page.goto(demo.url(f"findings?q=endpoint:{url}"))
        with page.expect_request(re.compile("row/findings")) as asked:
            rows(page).first.locator("summary").click()
        assert url in unquote(asked.value.url)


def test_a_row_is_copied_as_json_curl_and_test_case(browser, demo):
    with opened(browser, demo, "protocol?q=tool:deploy") as page:
        row = rows(page).first
        row.locator("summary").click()
        for name, said, begins in (("JSON", "JSON", "["), ("curl", "curl", "curl "), ("Test case", "a test case", "=== ")):
            row.get_by_role("button", name=name).first.click()
            expect(page.locator("#said")).to_contain_text(f"Copied as {said}")
            assert page.evaluate("navigator.clipboard.readText()").startswith(begins)


def test_pins_stay(browser, demo):
    with opened(browser, demo, "protocol") as page:
        rows(page).filter(has_text="deploy").first.locator("summary").click()
        page.locator("[data-pin]").first.click()
        expect(page.locator("#pins li")).to_have_count(1)
        page.reload()
        expect(page.locator("#pins li")).to_have_count(1)


def test_everything_works_by_keyboard(browser, demo):
    with opened(browser, demo, "protocol") as page:
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator("#list details[open]")).to_have_count(1)
        expect(page.locator("#list details[open] [data-open] .sum")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#list details[open]")).to_have_count(0)
        page.keyboard.press("n")
        focused = page.evaluate("document.activeElement.closest('li').className")
        assert "e" in focused.split() or "w" in focused.split()
        page.keyboard.press("/")
        page.keyboard.type("tool:deploy")
        expect(rows(page).first).to_contain_text("deploy")
        assert page.evaluate("document.activeElement.matches('[data-filter]')")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("?")
        page.keyboard.press(" ")
        expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press(" ")
        page.keyboard.press("g")
        page.keyboard.press("f")
        expect(page.get_by_role("heading", name="Findings", exact=True)).to_be_visible()
        page.wait_for_load_state("load")  # the keys are bound by then
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator("#list details[open] .exp")).to_be_visible()


def test_tab_reaches_the_rows_and_the_focus_is_seen(browser, demo):
    with opened(browser, demo, "protocol") as page:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('summary.row')"):
                break
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert page.evaluate("document.activeElement.matches('summary.row')") and style == "solid"


def test_the_theme_follows_the_system_and_can_be_chosen(browser, demo):
    with opened(browser, demo, "protocol", scheme="dark") as page:
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        page.click("#theme")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark, light) == ("rgb(30, 30, 30)", "rgb(255, 255, 255)")


@pytest.mark.parametrize("name", PAGES)
def test_hostile_text_is_inert(browser, hostile, name):
    with opened(browser, hostile, name) as page:
        page.wait_for_timeout(1_200)  # a file is inspected half a second after it was read
        if rows(page).count() == 0:
            page.reload()
        for row in rows(page).locator("summary").all()[:12]:
            row.click()
        page.wait_for_timeout(500)
        assert page.evaluate("window.hacked") is None
        assert page.locator("#content script").count() == 0
        text = page.locator("#content").inner_text()
        assert "‮" not in text and len(text) < 400_000
        if name in ("", "protocol", "network", "tools", "apps"):
            assert "<script>window.hacked=1</script>" in text and "\\u202e" in text
        page.set_viewport_size(SMALL)
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]


def test_a_lost_connection_is_said_and_what_was_shown_stays(browser):
    with Children() as children:
        flow = Path(__file__).parents[1] / "recordings" / "demo.flow"
        (port,) = free_ports(8295)
        options = [*demonstration_options(children), "--set", "web_open_browser=false", "-nr", str(flow)]
        child = children.start("web", [*Programs().wiretap, "web", *options, "--set", f"web_port={port}"])
        site = Site(child.wait_for(r"Web server listening at (\S+)", 60)[1], {})
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{site.url()}?token={site.token}")
        page.goto(site.url("protocol"))
        expect(rows(page).first).to_be_visible(timeout=PATIENCE)
        child.stop()
        expect(page.locator("#stale")).to_be_visible(timeout=PATIENCE)
        assert rows(page).count() > 20
        context.close()
