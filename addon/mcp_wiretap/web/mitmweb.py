"""The pages as handlers of mitmweb. Everything here hangs on mitmweb's internals (`mitmproxy.tools.web.app`), nothing elsewhere.

Used of them: `RequestHandler` (wraps the methods of a class with the check of token and cookie, sets CSP and frame headers,
checks Sec-Fetch-Site; tornado checks XSRF), `WebSocketEventBroadcaster` (authenticated, same origin), `master.app.add_handlers`,
`master.web_url`, `master.view.get_by_id`, the servers of the addon `proxyserver`.
"""

import logging
from collections.abc import Awaitable
from typing import Any, ClassVar
from urllib.parse import quote

from mitmproxy.tools.web import app as webapp

from mcp_wiretap import expectation
from mcp_wiretap.rule.containment import told
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.web.asking import handler_of
from mcp_wiretap.web.live import Live, Subscription
from mcp_wiretap.web.render import STATIC, fragment
from mcp_wiretap.web.site import NAMES, PAGES, Site
from mcp_wiretap.web.source import Source
from mcp_wiretap.wire.secret import safe

logger = logging.getLogger(__name__)

_TYPES = {"css": "text/css; charset=UTF-8", "js": "text/javascript; charset=UTF-8", "svg": "image/svg+xml"}
MOST_REASON = 500
MOST_WORD = 2_000
MOST_WAITING = 500  # messages queued for one page; one that does not read is let go


def install(master: Any, source: Source) -> str:
    """Add the handlers; the address of the first page. Raises where mitmweb is another one than we know."""
    site = Site(source, master.view.get_by_id)
    site.theme = lambda: getattr(master.options, "web_theme", "system")
    site.listening = lambda: _listening(master)
    live = Live(site)
    address = str(master.web_url)
    hosts = ["127.0.0.1:*", "localhost:*", "[::1]:*", f"{master.options.web_host}:*"]
    master.app.add_handlers(r".*", [*_handlers(site, live), (r"/mcp/rpc", handler_of(site, hosts))])
    live.start()
    before, mark, after = address.partition("?")
    return f"{before.rstrip('/')}/mcp/{mark}{after}"


def _listening(master: Any) -> list[tuple[str, str]]:
    """Where the proxy takes connections, and for what: ("http://127.0.0.1:8080", "reverse proxy to ...")."""
    try:
        servers = [server for server in master.addons.get("proxyserver").servers if server.is_running]
        return [(_address(*place[:2]), server.mode.description) for server in servers for place in server.listen_addrs][:10]
    except Exception:  # it is only a hint
        return []


def _address(host: str, port: int) -> str:
    """As a client on this machine reaches it."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _handlers(site: Site, live: Live) -> list[tuple[str, type]]:
    class Handler(webapp.RequestHandler):
        def query(self) -> dict[str, str]:
            return {name: self.get_query_argument(name, "") for name in self.request.query_arguments if name != "token"}

        def html(self, text: str) -> None:
            self.set_header("Content-Type", "text/html; charset=UTF-8")
            self.set_header("Cache-Control", "no-store")
            self.set_header("Referrer-Policy", "no-referrer")
            self.finish(text.encode("utf-8", "backslashreplace"))

        async def whatever_happens(self, what: str, made: Awaitable[str | None]) -> str | None:
            """What is made, or a page that says that it could not be: a fault of ours in one page is no error of mitmweb."""
            try:
                return await made
            except Exception as error:
                site.source.fault(f"pages: {what}", error)
                return fragment("fault.html", what=what, error=told(error), pages=PAGES)

        def plain(self, text: str) -> None:
            self.set_header("Content-Type", "text/plain; charset=UTF-8")
            self.set_header("Cache-Control", "no-store")
            self.finish(text.encode("utf-8", "backslashreplace"))

    class Root(Handler):
        def get(self) -> None:
            self.redirect("/mcp/" + (f"?{self.request.query}" if self.request.query else ""))

    class Page(Handler):
        def auth_fail(self, invalid_password: bool) -> None:
            self.render("login.html", invalid_password=invalid_password)

        async def get(self, name: str) -> None:
            if (name or "overview") not in NAMES:
                raise webapp.APIError(404, "No such page.")
            assert self.xsrf_token  # the cookie that state-changing requests need
            name = name or "overview"
            self.html(await self.whatever_happens(name, site.page(name, self.query())) or "")

        async def post(self, name: str) -> None:  # the login form
            self.redirect(f"/mcp/{quote(name or '')}", status=303)

    class Rows(Handler):
        async def get(self, name: str) -> None:
            if name not in NAMES:
                raise webapp.APIError(404, "No such page.")
            self.html(await self.whatever_happens(name, self._rows(name)) or "")

        async def _rows(self, name: str) -> str:
            await site.settle()
            window = await site.rows(name, self.query())
            self.set_header("X-Older", window.older)
            return "\n".join(window.rows)

    class Row(Handler):
        async def get(self, name: str) -> None:
            found = await self.whatever_happens(name, self._detail(name))
            if found is None:
                raise webapp.APIError(404, "This row is not there any more.")
            self.html(found)

        async def _detail(self, name: str) -> str | None:
            await site.settle()
            return site.detail(name, self.get_query_argument("key", ""), self.query())

    class Copy(Handler):
        async def get(self, what: str) -> None:
            await site.settle()
            try:
                found = site.copy(what, self.get_query_argument("key", ""))
            except Exception as error:
                site.source.fault(f"pages: copy as {what}", error)
                raise webapp.APIError(409, f"This row cannot be copied ({told(error)}).") from None
            if found is None:
                raise webapp.APIError(404, "mitmproxy has this flow no more.")
            self.plain(found)

    class Static(Handler):
        def get(self, name: str, ending: str) -> None:
            path = STATIC / f"{name}.{ending}"
            if not path.is_file():
                raise webapp.APIError(404, "No such file.")
            self.set_header("Content-Type", _TYPES[ending])
            self.set_header("Cache-Control", "no-cache")
            self.finish(path.read_bytes())

    class SilenceRule(Handler):
        async def post(self) -> None:
            from mcp_wiretap.pages.findings import project_lines

            wanted = self.json
            if not isinstance(wanted, dict):
                raise webapp.APIError(400, "A silence is an object with rule, endpoint and reason.")
            rule, endpoint = self.word(wanted, "rule"), self.word(wanted, "endpoint") or "*"
            reason = " ".join(self.word(wanted, "reason").split())[:MOST_REASON]
            if endpoint != "*":
                try:
                    expectation.check_pattern(endpoint)
                except ValueError as error:
                    raise webapp.APIError(400, str(error)) from None
            known = site.traces.rules
            if rule not in known and rule not in {r.family for r in known.values()}:
                raise webapp.APIError(400, "There is no such rule.")
            if not reason:
                raise webapp.APIError(400, "A silence needs a reason.")
            silence = Silence(rule, endpoint, reason)
            count = await site.silence(silence)
            self.write({"count": count, "toml": project_lines(silence)})

        @staticmethod
        def word(wanted: dict[str, Any], name: str) -> str:
            value = wanted.get(name, "")
            if not isinstance(value, str) or len(value) > MOST_WORD:
                raise webapp.APIError(400, f"{name} is no text of at most {MOST_WORD} characters.")
            return safe(value)

    class Updates(webapp.WebSocketEventBroadcaster):
        connections: ClassVar[set[Any]] = set()
        subscription: Subscription | None = None

        def open(self, *args: str, **kwargs: str) -> None:
            super().open(*args, **kwargs)  # type: ignore[no-untyped-call]
            query = {name: self.get_query_argument(name, "") for name in self.request.query_arguments}
            page = query.pop("page", "overview")
            self.subscription = live.subscribe(self._tell, page if page in NAMES else "overview", query)

        def _tell(self, text: str) -> None:
            if self._send_queue.qsize() > MOST_WAITING:
                self.close(1008, "does not read")
                return
            self.send(text.encode("utf-8", "backslashreplace"))

        def on_message(self, message: str | bytes) -> None:
            return None  # pages only listen

        def on_close(self) -> None:
            if self.subscription is not None:
                live.unsubscribe(self.subscription)
            super().on_close()  # type: ignore[no-untyped-call]

    names = "|".join(NAMES)
    return [
        (r"/mcp", Root),
        (rf"/mcp/({names})?", Page),
        (rf"/mcp/rows/({names})", Rows),
        (rf"/mcp/row/({names})", Row),
        (r"/mcp/copy/(json|curl|case)", Copy),
        (r"/mcp/static/([a-z]+)\.(css|js|svg)", Static),
        (r"/mcp/silence", SilenceRule),
        (r"/mcp/updates", Updates),
    ]
