"""mitmweb of the demonstration in a real browser: the comment column, the view of a message, the inspector's own pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from harness.browser import FLAGS, find_chromium
from harness.children import ChildError, Children
from harness.proxies import start_proxy
from harness.run import ERAS, Programs, demonstration_options, run_client, start_servers
from harness.screenshot import open_flow

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

PROGRAMS = Programs()


@dataclass(frozen=True)
class Mitmweb:
    """Where mitmweb is, after one round of the sample client."""

    address: str
    token: str


@pytest.fixture(scope="module")
def chromium() -> Path:
    try:
        return find_chromium()
    except ChildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def mitmweb(chromium: Path) -> Iterator[Mitmweb]:
    with Children() as children:
        servers, addresses = start_servers(children, PROGRAMS)
        options = ["web", *demonstration_options(children), "--set", "web_open_browser=false"]
        urls = [addresses[era] for era in ERAS]
        proxy = start_proxy(children, [*PROGRAMS.wiretap, *options], urls, port=8500, web_port=8600)
        run_client(children, PROGRAMS, servers, proxy)
        address, _, token = proxy.page.partition("?")
        yield Mitmweb(address, token)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def test_the_flow_list_has_the_comment_column_and_what_was_found(page: Page, mitmweb: Mitmweb) -> None:
    page.goto(f"{mitmweb.address}?{mitmweb.token}")
    expect(page.locator(".flow-table th", has_text="Comment")).to_be_visible()
    expect(page.locator("td.col-comment", has_text="modern server/discover -> complete").first).to_be_visible()


def test_a_request_opens_in_the_view_of_its_message_with_a_verdict_on_each_header(page: Page, mitmweb: Mitmweb) -> None:
    open_flow(page, mitmweb.address, mitmweb.token, "[PAR014]", "Request")
    view = page.locator(".flow-detail .contentview")
    expect(view).to_contain_text("MCP")
    for words in ("tools/call get_weather", "modern 2026-07-28", "mcp-name", "match", "MISMATCH, decoded: Genève"):
        expect(view).to_contain_text(words)


def test_a_rejection_is_put_into_words(page: Page, mitmweb: Mitmweb) -> None:
    open_flow(page, mitmweb.address, mitmweb.token, "[PAR014]", "Response")
    expect(page.locator(".flow-detail .contentview")).to_contain_text("-32020")
    expect(page.locator(".flow-detail .contentview")).to_contain_text("HeaderMismatch")


def test_a_filter_on_what_was_found_leaves_the_flows_that_it_means(page: Page, mitmweb: Mitmweb) -> None:
    page.goto(f"{mitmweb.address}?{mitmweb.token}")
    page.get_by_placeholder("Search").fill('~comment "-> -32022"')
    expect(page.locator("td.col-comment")).to_have_count(1)
    expect(page.locator("td.col-comment")).to_contain_text("-32022 UnsupportedProtocolVersion")


def test_the_inspectors_own_pages_open_without_a_complaint_of_the_browser(page: Page, mitmweb: Mitmweb) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    answer = page.goto(f"{mitmweb.address}mcp/?{mitmweb.token}", wait_until="networkidle")
    assert answer is not None and answer.ok
    expect(page.locator("body")).to_contain_text("127.0.0.1")
    assert complaints == []
