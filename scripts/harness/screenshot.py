"""`scripts/screenshot`: the picture in the README, taken of the demonstration, so that it never shows what is not there."""

import argparse
import json
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Playwright, sync_playwright

from harness.browser import FLAGS, find_chromium
from harness.children import ROOT, ChildError, Children, Stopped, signals_raise_stopped
from harness.proxies import Proxy, start_proxy
from harness.run import ERAS, WEB_PORT, Programs, demonstration_options, run_client, start_servers

WIDTH, HEIGHT = 1440, 980
ROW, ROWS = 32, 24  # of mitmweb's list: pixels, and how many fit
PICTURE = ROOT / "docs" / "assets" / "readme.png"
# As after a double click on the edge of the comment column, which is narrow at first. Marks are in the path column.
COLUMNS = {"path": 130, "status": 55, "comment": 535}
PATIENCE_MS = 20_000
# The inspector's pages, with the row that is opened in each: what has the most to show.
PAGES = {
    "overview": "",
    "protocol": "mrtr_two_step",
    "network": "build_report",
    "findings": "PAR014",
    "tools": "",
    "streams": "resources",
    "tasks": "modern_task",
    "logs": "",
    "auth": "",
    "apps": "",
}
SIZES = {"1440-light": (1440, 900), "1440-dark": (1440, 900), "390-light": (390, 844), "390-dark": (390, 844)}


def open_flow(page: Page, mitmweb: str, token: str, comment: str, tab: str) -> None:
    """Show one side of the first flow whose comment contains `comment`, with its row in the middle of the list."""
    listed = page.request.get(f"{mitmweb}flows?{token}").json()
    index = next((number for number, flow in enumerate(listed) if comment in flow["comment"]), None)
    if index is None:
        raise ChildError(f"no flow of the demonstration has {comment!r} in its comment")
    page.goto(f"{mitmweb}?{token}#/flows/{listed[index]['id']}/{tab.lower()}")
    page.locator(".flow-detail .contentview").wait_for(timeout=PATIENCE_MS)
    page.locator(".flow-table").evaluate("(table, top) => table.scrollTo(0, top)", max(0, index - ROWS // 2) * ROW)


def take_pages(playwright: Playwright, proxy: Proxy, folder: Path) -> None:
    """Each page of the inspector, on a desk and on a phone, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=list(FLAGS))
    address, _, token = proxy.page.partition("?")
    for name, (width, height) in SIZES.items():
        scheme: Literal["light", "dark"] = "dark" if name.endswith("dark") else "light"
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(f"{address}mcp/?{token}")
        for path, row in PAGES.items():
            page.goto(f"{address}mcp/{path if path != 'overview' else ''}")
            page.wait_for_load_state("networkidle")
            first = page.locator("#list > li[data-key]", has_text=row).first
            if (row or path == "overview") and first.count():
                first.locator("summary").first.click(timeout=PATIENCE_MS)
                first.locator("[data-open] > :not(.skel)").first.wait_for(timeout=PATIENCE_MS)
                first.scroll_into_view_if_needed()
                first.evaluate("row => window.scrollTo(0, row.getBoundingClientRect().top + scrollY - 220)")
            page.wait_for_timeout(400)
            page.screenshot(path=folder / f"{path}-{name}.png")
        page.close()
    browser.close()
    print(folder)


def take(arguments: argparse.Namespace) -> None:
    chromium = find_chromium()
    programs = Programs()
    with Children() as children:
        servers, addresses = start_servers(children, programs)
        columns = [word for column in COLUMNS for word in ("--set", f"web_columns={column}")]
        options = ["web", *demonstration_options(children), "--set", "web_open_browser=false", *columns]
        urls = [addresses[era] for era in ERAS]
        proxy = start_proxy(children, [*programs.wiretap, *options], urls, web_port=WEB_PORT)
        run_client(children, programs, servers, proxy)
        with sync_playwright() as playwright:
            if arguments.pages is not None:
                take_pages(playwright, proxy, arguments.pages)
                return
            browser = playwright.chromium.launch(executable_path=str(chromium), args=list(FLAGS))
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=arguments.theme)
            page.add_init_script(f"localStorage.setItem('mitmweb-column-widths', {json.dumps(json.dumps(COLUMNS))})")
            address, _, token = proxy.page.partition("?")
            if arguments.page:
                page.goto(f"{address}{arguments.page}?{token}", wait_until="networkidle")
            else:
                open_flow(page, address, token, arguments.flow, arguments.tab)
            page.wait_for_timeout(4_000)  # mitmweb's "connected" fades away
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=arguments.output, full_page=bool(arguments.page))
            browser.close()
    print(arguments.output)


def main() -> int:
    made = argparse.ArgumentParser(prog="./scripts/screenshot", description="Takes a picture of the demonstration.")
    made.add_argument("--output", type=Path, default=PICTURE, metavar="FILE", help="the PNG to write (%(default)s)")
    made.add_argument("--flow", default="[PAR014]", metavar="TEXT", help="open the flow with this in its comment")
    made.add_argument("--tab", default="Request", choices=("Request", "Response"), help="which side of it (%(default)s)")
    made.add_argument("--page", default="", metavar="PATH", help="another page of mitmweb instead, all of it, e.g. mcp/")
    made.add_argument("--pages", type=Path, metavar="DIR", help="all pages of the inspector instead, into this folder")
    made.add_argument("--theme", default="light", choices=("light", "dark"))
    try:
        with signals_raise_stopped():
            take(made.parse_args())
    except (ChildError, PlaywrightError) as error:
        print(f"screenshot: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        return 128 + stopped.number
    return 0


if __name__ == "__main__":
    sys.exit(main())
