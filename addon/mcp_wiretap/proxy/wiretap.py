"""The addon object. Its hooks translate and delegate; what they do is in the modules beside this one."""

import logging
import sys
from collections.abc import Awaitable, Sequence
from importlib import import_module

from mitmproxy import contentviews, ctx, exceptions, hooks
from mitmproxy.addonmanager import Loader
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow

from mcp_wiretap import web
from mcp_wiretap.proxy import changes, dumping, faulting, options, replay_server, telemetry
from mcp_wiretap.proxy.capture import Capture
from mcp_wiretap.proxy.chain import BeforeSave, First, Last
from mcp_wiretap.proxy.commands import Commands, bind_keys
from mcp_wiretap.proxy.contentview import McpContentview
from mcp_wiretap.proxy.dispatch import Dispatch
from mcp_wiretap.proxy.faulting import Faulting
from mcp_wiretap.proxy.faults import Faults, fail_open
from mcp_wiretap.proxy.garbage import Frozen
from mcp_wiretap.proxy.holding import Holding
from mcp_wiretap.proxy.loaded import Loaded
from mcp_wiretap.proxy.page_source import Pages
from mcp_wiretap.proxy.replay_command import Repeating
from mcp_wiretap.proxy.replay_server import Replaying
from mcp_wiretap.proxy.stdio.tap import Tap
from mcp_wiretap.proxy.telemetry import Telemetry
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.secret import visible

logger = logging.getLogger(__name__)

QUESTIONS = "/mcp/rpc"  # where mitmweb lets agents ask (`web.asking`)
TCP_TIMEOUT = 24 * 3600  # seconds: an event stream may be quiet for hours, and mitmproxy's default ends it after ten minutes


class Wiretap(Commands, Repeating):
    """An inspector for the Model Context Protocol: follows live and loaded MCP traffic and says on each flow what it is."""

    name = "mcpwiretap"

    def __init__(self) -> None:
        self.faults = Faults()
        self.watch: Watch | None = None
        self.loaded: Loaded | None = None
        self.replaying: Replaying | None = None
        self.telemetry: Telemetry | None = None
        self._capture: Capture | None = None
        self._dispatch: Dispatch | None = None
        self._holding: Holding | None = None
        self._ends: tuple[First, BeforeSave, Last] | None = None
        self._frozen = Frozen()
        self._over = False
        self._running = False
        self._tap: Tap | None = None
        self.faulting: Faulting | None = None
        self._told = set[str]()

    def load(self, loader: Loader) -> None:
        import_module("mcp_types.methods")  # half a second that traffic would wait for, when first needed
        options.add(loader)
        self.contentview = McpContentview(self.find, self.settings, self.faults)
        contentviews.add(self.contentview)

    def configure(self, updated: set[str]) -> None:
        try:
            self._configure(updated)
        except exceptions.OptionsError as error:
            if not _starting():
                raise  # mitmproxy puts the old value back and says why
            # Raised here it would be a traceback, and logged it would end mitmproxy only when it listens.
            print("mcp-wiretap: " + "; ".join(map(visible, str(error).split("\n"))), file=sys.stderr, flush=True)
            sys.exit(2)

    def _configure(self, updated: set[str]) -> None:
        if self._capture is None or updated & options.NAMES:
            self._use(options.Settings.read(ctx.options))
        if updated & replay_server.OPTIONS:
            self._replay(replay_server.Wanted.read(ctx.options))
        if self._running and updated & {"mcp_stdio", "mcp_socket"}:
            self._hear()
        if telemetry.OPTION in updated:
            self._send_to(ctx.options.mcp_otlp_endpoint)
        if updated & {"mcp_fault", "mcp_faults"}:
            self._plan_faults(ctx.options.mcp_fault, ctx.options.mcp_faults)
        if self._running:
            self._watch_ends()
        if self._dispatch is not None and "mcp_fast_hooks" in updated:
            self._dispatch_hooks()

    def running(self) -> None:
        self._running = True
        if self.replaying is not None:
            self.replaying.start()
        for step in (
            _prepare_mitmproxy,
            _tell_unknown,
            bind_keys,
            self._mount_pages,
            self._dispatch_hooks,
            self._watch_ends,
            self._freeze,
            self._hear,
            _refuse_replays,
        ):
            try:
                step()
            except Exception as error:
                self.faults.note(step.__name__.strip("_"), error)

    @fail_open
    def requestheaders(self, flow: HTTPFlow) -> None:
        if flow.live and self._capture is not None and not self._over and not _is_question(flow):
            self._capture.changes.came(flow)
            if self._holding is not None:
                self._holding.request_head(flow)

    @fail_open
    def request(self, flow: HTTPFlow) -> Awaitable[None] | None:
        if _is_question(flow):
            return None
        if self._holding is not None and flow.live and not self._over and self._holding.needed:
            return self._holding.request(flow, lambda: self._played(flow))
        unfinished = None
        try:
            if flow.live and self._capture is not None and not self._over:
                unfinished = self._capture.request(flow)
        finally:  # a fault of the trace must not let a request go to the real server
            self._played(flow)
        # A filter may hold the request for what is found in it; else it goes on, and is looked at meanwhile.
        return unfinished if getattr(ctx.options, "intercept_active", False) else None

    @fail_open
    def responseheaders(self, flow: HTTPFlow) -> None:
        if _is_question(flow):
            return
        if self.replaying is not None:
            self.replaying.answered(flow)
        if self._capture is not None and self._capture.follows(flow) and not self._over:
            holds = self._holding is not None and self._holding.waits_for_answer(flow)
            self._capture.responseheaders(flow, whole=holds)

    @fail_open
    def response(self, flow: HTTPFlow) -> Awaitable[None] | None:
        unfinished = None
        if _is_question(flow):
            return None
        if self.replaying is not None:
            self.replaying.over(flow)
        if self._capture is not None and self._capture.follows(flow):
            unfinished = self._capture.response(flow)
            if self._holding is not None and self._holding.needed:
                unfinished = self._holding.response(flow, unfinished)
        elif self.loaded is not None:
            self.loaded.took(flow)
        return _tell_when_done(unfinished, flow)

    @fail_open
    def error(self, flow: HTTPFlow) -> Awaitable[None] | None:
        if self._over or self._capture is None or self.loaded is None or _is_question(flow):
            return None
        unfinished = None
        if self._capture.follows(flow):
            unfinished = self._capture.error(flow, ctx.options.tcp_timeout)
        elif not flow.live:
            self.loaded.took(flow)
        if self.replaying is not None:
            self.replaying.over(flow)
        return _tell_when_done(unfinished, flow)

    @fail_open
    def done(self) -> None:
        if self._tap is not None:
            self._tap.stop()
        if self._dispatch is not None:
            self._dispatch.remove()
        self._frozen.thaw()
        if self.faulting is not None:
            self.faulting.leave()
        for each in self._ends or ():
            each.leave()
        self._ends = None
        if self._capture is not None and self.watch is not None and self.loaded is not None and not self._over:
            self._over = True
            self._capture.close()
            self.watch.finish()
            self.loaded.finish()
            if self.telemetry is not None:
                self.telemetry.close()

    def _hear(self) -> None:
        """Hear the wrappers of stdio servers, at another place than before, or no longer."""
        if self._tap is not None:
            self._tap.stop()
            self._tap = None
        reads_only = not ctx.options.server and (ctx.options.rfile or ctx.options.client_replay)
        if ctx.options.mcp_stdio and not reads_only:
            self._tap = Tap(ctx.options.mcp_socket, lambda: self._capture, self.faults)
            self._tap.start()

    def _played(self, flow: HTTPFlow) -> None:
        """Where a recording answers instead of the real servers, let it."""
        if flow.live and self.replaying is not None and flow.request.scheme != "stdio":
            self.replaying.request(flow)

    def _send_to(self, endpoint: str) -> None:
        """Send spans to another collector, or to none."""
        if endpoint:
            telemetry.check(endpoint)
        if self.telemetry is not None:
            self.telemetry.stop()
        self.telemetry = Telemetry(endpoint, self.faults, self._spans_lost) if endpoint else None
        if self.watch is not None:
            self.watch.tell_first(self.telemetry.operations.before if self.telemetry is not None else lambda judge: judge)

    def _spans_lost(self, number: int) -> None:
        if self.watch is not None:
            self.watch.inspector.count_dropped("spans", number)

    def by_hand(self, flow: HTTPFlow) -> None:
        if self._capture is not None:
            self._capture.changes.ours(flow, "user")

    def planned_faults(self) -> list[str]:
        return self.faulting.told() if self.faulting is not None else []

    def lost(self) -> dict[str, int]:
        return {"spans": self.telemetry.dropped} if self.telemetry is not None else {}

    def _replay(self, wanted: replay_server.Wanted) -> None:
        """Play another recording, or none."""
        following = Replaying(wanted, self.faults) if wanted.path else None
        if self.replaying is not None:
            self.replaying.stop()
        self.replaying = following
        if following is not None:
            replay_server.use_lazily()

    def find(self, flow: Flow) -> tuple[Watch, Exchange] | None:
        if self.watch is None or self.loaded is None or self._capture is None:
            return None
        if isinstance(flow, HTTPFlow):
            exchange = self.watch.exchange_of(flow, self._capture.trace_id(flow))
            if exchange is not None:
                return self.watch, exchange
        return self.loaded.find(flow)

    def settings(self) -> options.Settings:
        return self.watch.settings if self.watch is not None else options.Settings.read(ctx.options)

    def watches(self) -> list[Watch]:
        """The traces: live traffic, then each file that was loaded."""
        watches = [self.watch, *(self.loaded.watches if self.loaded is not None else ())]
        return [watch for watch in watches if watch is not None]

    def inspectors(self) -> list[Inspector]:
        return [watch.inspector for watch in self.watches()]

    def _mount_pages(self) -> None:
        """The inspector's pages, where mitmweb runs."""
        if getattr(ctx.master, "app", None) is not None:
            web.mount(ctx.master, Pages(self.watches, self.contentview, self.faults))

    def _plan_faults(self, lines: Sequence[str], path: str) -> None:
        """Put other faults into traffic, or none."""
        try:
            plan = faulting.read_plan(lines, path)
        except ValueError as error:
            raise exceptions.OptionsError(str(error)) from None
        if self.faulting is not None:
            self.faulting.leave()
            self.faulting = None
        for each in self._ends or ():  # which stand behind it
            each.leave()
        self._ends = None
        if plan and self._capture is not None:
            self.faulting = Faulting(self._capture, self.faults, plan)
            if self._running:
                self.faulting.place()
                logger.warning("mcp_fault: %d faults are going to be put into traffic", len(plan))

    def _watch_ends(self) -> None:
        """An object at the end of the chain, while anything there may change what passes."""
        capture = self._capture
        if capture is None:
            return
        scripts = capture.changes.scripts = changes.other_scripts(self)
        if self.faulting is not None and self.faulting not in ctx.master.addons.chain:
            self.faulting.place()
        wanted = changes.may_change(scripts) or self.faulting is not None
        wanted = wanted or (self._holding is not None and self._holding.needed)
        if wanted and self._ends is None:
            faults = self.faults
            self._ends = First(capture, faults), BeforeSave(capture, faults), Last(capture, faults)
            for each in self._ends:
                each.place()
        capture.watches_ends = self._ends is not None

    def _dispatch_hooks(self) -> None:
        if self._dispatch is None:
            self._dispatch = Dispatch(ctx.master.addons)
        if ctx.options.mcp_fast_hooks:
            self._dispatch.install()
        else:
            self._dispatch.remove()

    def _freeze(self) -> None:
        """Everything is loaded. Not where the addon comes into a proxy that has flows already."""
        view = getattr(ctx.master, "view", None)
        if not (view is not None and len(view)):
            self._frozen.freeze()

    def _use(self, settings: options.Settings) -> None:
        for line in settings.told:
            if line not in self._told:
                self._told.add(line)
                logger.warning("mcp-wiretap: %s", visible(line))
        if self.watch is None or self.loaded is None or self._capture is None:
            self.watch = Watch(settings, _tell, self.faults)
            self.loaded = Loaded(settings, _tell, self.faults)
            self._capture = Capture(self.watch, settings.limits, self.faults)
            self._holding = Holding(self._capture, self.find, self.settings, self.faults)
            return
        self.watch.use(settings)
        self.loaded.use(settings)
        self._capture.limits = settings.limits


def _tell_when_done(unfinished: Awaitable[None] | None, flow: HTTPFlow) -> Awaitable[None] | None:
    """Let mitmdump print what is known of a flow, once it was inspected."""
    if unfinished is None:
        dumping.tell(flow)
        return None

    async def then() -> None:
        await unfinished
        dumping.tell(flow)

    return then()


def _tell(flows: Sequence[HTTPFlow]) -> None:
    """Let the UIs show flows anew."""
    ctx.master.addons.trigger(hooks.UpdateHook(flows))


def _is_question(flow: HTTPFlow) -> bool:
    """Whether an agent asks the inspector itself (/mcp/rpc in mitmweb) through this proxy: that is not inspected, or each
    question would be a part of the next answer."""
    request = flow.request
    if request.path != QUESTIONS or getattr(ctx.master, "app", None) is None or request.port != ctx.options.web_port:
        return False
    return request.host in ("127.0.0.1", "localhost", "::1", ctx.options.web_host)


def _starting() -> bool:
    """Whether one of mitmproxy's tools is starting, and does not listen yet."""
    server = ctx.master.addons.get("proxyserver")
    return server is not None and not server.is_running and ctx.master.addons.get("errorcheck") is not None


def _tell_unknown() -> None:
    options.tell_unknown(ctx.options)


def _refuse_replays() -> None:
    """Keep mitmproxy's client replay from flows of stdio servers: it would connect to a host of the server's name."""
    playback = ctx.master.addons.get("clientplayback")
    if playback is None:
        return
    before = playback.check

    def check(flow: Flow) -> str | None:
        if isinstance(flow, HTTPFlow) and flow.request.scheme == "stdio":
            return "A message to a stdio server cannot be replayed from here; use `mcp-wiretap replay --command`."
        return before(flow)  # type: ignore[no-any-return]

    playback.check = check


def _prepare_mitmproxy() -> None:
    """Options of mitmproxy that stand in the way of MCP, changed only where they are as mitmproxy made them."""
    if _at_default("tcp_timeout"):
        ctx.options.update(tcp_timeout=TCP_TIMEOUT)
    modes = ctx.options.mode
    if _at_default("connection_strategy") and modes and all(mode.startswith("reverse:http") for mode in modes):
        # With the default the proxy connects before there is a flow: a server that is not running would leave no trace.
        ctx.options.update(connection_strategy="lazy")
    if _at_default("web_columns") and "comment" not in ctx.options.web_columns:
        ctx.options.update(web_columns=[*ctx.options.web_columns, "comment"])


def _at_default(name: str) -> bool:
    return name in ctx.options and not ctx.options.has_changed(name)
