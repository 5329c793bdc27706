"""Which responses are passed on as they come, although they do not say that they are event streams.

mitmproxy keeps a response back until it is whole. Where its length is not given in advance it may be a stream, whatever it calls
itself: a server may answer `subscriptions/listen` with one JSON message a line, and its client would wait for ever. What passes
at once can no longer be changed, so that is left to whoever means to.
"""

from types import ModuleType
from typing import Any

from mitmproxy import ctx
from mitmproxy.addonmanager import traverse
from mitmproxy.http import HTTPFlow

LISTEN = "subscriptions/listen"
_EMPTY = frozenset({204, 205, 304})  # statuses without a body


def is_stream(flow: HTTPFlow, *, mcp: bool) -> bool:
    """Whether a live response, of which the head has come, is to be passed on as it comes. `mcp`: the request is known to be MCP.
    An event stream is in any case; it is not asked about."""
    response = flow.response
    if response is None or response.stream or response.status_code in _EMPTY or response.status_code < 200:
        return False
    if flow.request.method == "HEAD" or not (mcp or _says_mcp(flow)):
        return False
    if flow.request.headers.get("mcp-method") == LISTEN:
        return True
    if "content-length" in response.headers:
        return False
    return not (_may_be_intercepted(flow) or _may_be_changed())


def _says_mcp(flow: HTTPFlow) -> bool:
    return any(name.lower().startswith(b"mcp-") for name, _ in flow.request.headers.fields)


def _may_be_intercepted(flow: HTTPFlow) -> bool:
    """Whether the user means to hold the response when it is whole: by now the filter fits, or it looks into the body."""
    wanted = ctx.options.intercept if "intercept" in ctx.options else None
    if not wanted or not ctx.options.intercept_active:
        return False
    addon: Any = ctx.master.addons.get("intercept")
    return "~b" in wanted or addon is None or addon.should_intercept(flow)


def _may_be_changed() -> bool:
    """Whether somebody may change bodies: an option of mitmproxy, or an addon with a hook for whole responses."""
    if "modify_body" in ctx.options and ctx.options.modify_body:
        return True
    return any(_is_foreign(addon) and callable(getattr(addon, "response", None)) for addon in traverse(ctx.master.addons.chain))


def _is_foreign(addon: object) -> bool:
    home = addon.__name__ if isinstance(addon, ModuleType) else type(addon).__module__
    return home.partition(".")[0] not in ("mitmproxy", "mcp_wiretap")
