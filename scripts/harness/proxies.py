"""mitmproxy processes in front of servers: how they are told, on which ports they listen, when they are ready."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from harness.children import Child, ChildError, Children, free_ports

FIRST_PORT = 8080
STARTING = 60.0
# mitmproxy listens before it gives up over an error of its start, such as an addon that does not load.
SETTLING = 0.3


@dataclass(frozen=True)
class Upstream:
    """One server behind the proxy: where a client finds it when it asks the proxy, and how mitmproxy is told."""

    url: str
    port: int

    @property
    def mode(self) -> str:
        scheme, host, *_ = urlsplit(self.url)
        return f"reverse:{scheme}://{host}@{self.port}"

    @property
    def proxied(self) -> str:
        parts = urlsplit(self.url)
        return f"http://127.0.0.1:{self.port}{parts.path}" + (f"?{parts.query}" if parts.query else "")


@dataclass(frozen=True)
class Proxy:
    """A mitmproxy that listens in front of every upstream; `page` is the address of mitmweb, with its token, or ""."""

    child: Child
    upstreams: list[Upstream]
    page: str = ""


def start_proxy(
    children: Children,
    command: Sequence[str],
    urls: Sequence[str],
    *,
    name: str = "proxy",
    port: int = FIRST_PORT,
    web_port: int | None = None,
    **how: Any,
) -> Proxy:
    """A proxy in front of `urls` on the first free ports from `port` on, once it listens; `how` goes to Children.start.

    Another program may take a port between our look and mitmproxy's: then it is tried again, three times in all.
    """
    for attempt in (1, 2, 3):
        first, *others = free_ports(web_port or port, *[port] * len(urls))
        ports, web = (others, ["--set", f"web_port={first}"]) if web_port else ([first, *others][: len(urls)], [])
        upstreams = [Upstream(url, free) for url, free in zip(urls, ports, strict=True)]
        modes = [word for upstream in upstreams for word in ("--mode", upstream.mode)]
        child = children.start(name, [*command, "--listen-host", "127.0.0.1", *modes, *web], **how)
        try:
            for _ in upstreams:
                child.wait_for(r"reverse proxy to .* listening at", STARTING)
            page = child.wait_for(r"Web server listening at (\S+)", STARTING)[1] if web_port else ""
            time.sleep(SETTLING)
            child.must_run()
            return Proxy(child, upstreams, page)
        except ChildError:
            if attempt == 3 or "address already in use" not in child.output().lower():
                raise
            child.stop()
    raise AssertionError("the loop returns or raises")
