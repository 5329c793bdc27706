"""The MCP server of the inspector inside mitmweb, at /mcp/rpc: what `mcp_wiretap.ask` answers, of live traffic and loaded files.

Bearer token only: the same as mitmweb's, in the Authorization header. A cookie does not open it, so a page of another origin can
do nothing with it, and no XSRF token is asked for.
"""

import asyncio
from importlib import import_module
from typing import Any, ClassVar

from mitmproxy.tools.web import app as webapp

from mcp_wiretap.web.site import Site


def handler_of(site: Site, hosts: list[str]) -> type[webapp.RequestHandler]:
    """The handler of /mcp/rpc."""
    door: list[Any] = []

    class Rpc(webapp.RequestHandler):
        SUPPORTED_METHODS: ClassVar[tuple[str, ...]] = ("GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD")  # type: ignore[misc]

        def check_xsrf_cookie(self) -> None:
            """Nothing: it is the bearer token that opens this door, and no page of another origin has it."""

        def get_current_user(self) -> bool:
            scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
            return scheme.lower() == "bearer" and bool(token) and bool(self.settings["is_valid_password"](token.strip()))

        def prepare(self) -> None:
            if self.request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
                raise webapp.APIError(403, "A page of another site cannot ask.")
            if not self.current_user:
                self.set_status(401)
                self.set_header("WWW-Authenticate", "Bearer")
                self.finish("mitmweb's token is needed: Authorization: Bearer TOKEN\n")

        async def post(self) -> None:
            try:
                if not door:  # the SDK takes a second to load: not before somebody asks, and not in the loop
                    asked = await asyncio.to_thread(import_module, "mcp_wiretap.web.asked")
                    door.append(asked.Door(site, hosts))
                await door[0].answer(self)
            except Exception as error:
                site.source.fault("pages: a question of an agent", error)
                raise webapp.APIError(500, "The question could not be answered; the fault is in the log.") from None

        async def refused(self) -> None:
            self.set_header("Allow", "POST")
            self.set_status(405)

        get = delete = put = patch = head = options = refused

    return Rpc
