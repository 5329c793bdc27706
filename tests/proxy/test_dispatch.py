import inspect
import logging

import pytest
from mitmproxy import addons, exceptions, hooks, version
from mitmproxy.addonmanager import AddonManager, traverse
from mitmproxy.addons.anticache import AntiCache
from mitmproxy.addons.keepserving import KeepServing
from mitmproxy.test import taddons, tflow

from mcp_wiretap.proxy import dispatch as dispatch_module
from mcp_wiretap.proxy.dispatch import Dispatch


class Hears:
    """An addon of somebody else's, with the hook `request`."""

    def __init__(self, name, heard, fails=None):
        self.name, self.heard, self.fails = name, heard, fails

    def request(self, flow):
        self.heard.append(self.name)
        if self.fails is not None:
            raise self.fails


class Waits(Hears):
    async def request(self, flow):
        self.heard.append(self.name)


class Holds:
    """An addon that holds others, which change."""

    def __init__(self):
        self.addons = []


class Bare:
    """An addon without hooks."""


@pytest.fixture
def master():
    with taddons.context(loadcore=False) as context:
        yield context.master


@pytest.fixture
def dispatch(master):
    dispatch = Dispatch(master.addons)
    dispatch.install()
    return dispatch


async def ask(master):
    await master.addons.trigger_event(hooks.UpdateHook([]))
    await master.addons.handle_lifecycle(RequestHook(tflow.tflow()))


RequestHook = hooks.all_hooks["request"]


async def test_every_addon_of_mitmproxy_hears_every_hook_that_it_has(master, monkeypatch):
    """Each hook of each of its addons notes that it was called, whichever way."""
    master.addons.add(*addons.default_addons())
    calls = []

    def noting(kind, hook):
        def note(self, *arguments):
            calls.append((type(self).__name__, hook, len(arguments)))

        monkeypatch.setattr(kind, hook, note)

    for addon in traverse(master.addons.chain):
        for hook in hooks.all_hooks:
            if callable(getattr(addon, hook, None)):
                noting(type(addon), hook)

    async def all_hooks():
        calls.clear()
        for kind in hooks.all_hooks.values():
            event = kind(*(None for parameter in inspect.signature(kind).parameters))
            await master.addons.trigger_event(event)
        return list(calls)

    own = await all_hooks()
    dispatch = Dispatch(master.addons)
    dispatch.install()
    assert await all_hooks() == own == await all_hooks()
    assert len(own) > 50


async def test_a_hook_of_mitmproxys_own_that_waits_is_awaited_and_one_that_fails_is_logged(master, dispatch, monkeypatch, caplog):
    heard = []

    async def waits(self, flow):
        heard.append("waited")

    def fails(self, flow):
        raise ValueError("broken inside")

    monkeypatch.setattr(KeepServing, "request", waits, raising=False)
    monkeypatch.setattr(AntiCache, "request", fails)
    master.addons.add(AntiCache(), KeepServing(), Hears("last", heard))
    await ask(master)
    assert heard == ["waited", "last"]
    assert "Addon error: broken inside" in caplog.text


@pytest.mark.parametrize("owner", ["mitmproxy's", "somebody's"])
async def test_a_halt_ends_the_round_whoever_asks_for_it(master, dispatch, monkeypatch, owner):
    heard = []

    def halts(self, flow):
        raise exceptions.AddonHalt

    monkeypatch.setattr(AntiCache, "request", halts)
    first = AntiCache() if owner == "mitmproxy's" else Hears("one", heard, exceptions.AddonHalt())
    master.addons.add(first, Hears("two", heard))
    await ask(master)
    assert heard == ([] if owner == "mitmproxy's" else ["one"])


async def test_addons_without_the_hook_are_not_asked(master, dispatch, monkeypatch):
    master.addons.add(KeepServing())
    asked = []

    async def invoke(addon, event):
        asked.append(addon)

    monkeypatch.setattr(master.addons, "invoke_addon", invoke)
    await ask(master)
    assert asked == []


async def test_the_order_stays_and_async_hooks_are_awaited(master, dispatch):
    heard = []
    master.addons.add(Hears("one", heard), Waits("two", heard), Hears("three", heard))
    await ask(master)
    assert heard == ["one", "two", "three"]


async def test_a_hook_that_fails_is_logged_and_the_next_is_asked(master, dispatch, caplog):
    heard = []
    master.addons.add(Hears("one", heard, ValueError("broken")), Hears("two", heard))
    await ask(master)
    assert heard == ["one", "two"]
    assert "Addon error: broken" in caplog.text


async def test_what_comes_later_is_asked_as_well(master, dispatch):
    heard = []
    holder, bare = Holds(), Bare()
    master.addons.add(holder, bare)
    await ask(master)
    holder.addons.append(Hears("held", heard))
    bare.request = Hears("given a hook", heard).request
    master.addons.add(Hears("added", heard))
    await ask(master)
    assert heard == ["held", "given a hook", "added"]


async def test_removed_it_leaves_mitmproxys_own(master, dispatch):
    assert master.addons.trigger_event == dispatch.trigger_event
    dispatch.remove()
    assert "trigger_event" not in vars(master.addons)
    dispatch.remove()


def test_what_another_addon_put_in_its_place_stays(master, dispatch):
    async def another(event):
        pass

    master.addons.trigger_event = another
    dispatch.remove()
    assert master.addons.trigger_event is another


def test_a_mitmproxy_whose_source_is_not_known_is_left_as_it_is(master, monkeypatch, caplog):
    caplog.set_level(logging.INFO)

    async def trigger_event(self, event):
        """A later mitmproxy does something else here."""

    monkeypatch.setattr(AddonManager, "trigger_event", trigger_event)
    Dispatch(master.addons).install()
    assert "trigger_event" not in vars(master.addons)
    assert f"the source of mitmproxy {version.VERSION} is not a known one ({dispatch_module.fingerprint()})" in caplog.text


def test_a_mitmproxy_without_its_source_is_left_as_it_is(master, monkeypatch, caplog):
    caplog.set_level(logging.INFO)

    def no_source(thing):
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", no_source)
    Dispatch(master.addons).install()
    assert "trigger_event" not in vars(master.addons)
    assert "there is none" in caplog.text


@pytest.mark.parametrize("method", ["trigger_event", "invoke_addon"])
def test_a_manager_that_somebody_else_has_changed_stays_as_it_is(master, method, caplog):
    caplog.set_level(logging.INFO)

    async def another(*arguments):
        pass

    setattr(master.addons, method, another)
    Dispatch(master.addons).install()
    assert getattr(master.addons, method) is another
    assert "trigger_event" not in vars(master.addons) or method == "trigger_event"
    assert "somebody else" in caplog.text


def test_the_mitmproxy_installed_here_was_looked_at():
    """Where this fails, read mitmproxy's `addonmanager.py` anew: where it still does what `Dispatch` does, add it to KNOWN."""
    assert dispatch_module.fingerprint() in dispatch_module.KNOWN, (version.VERSION, dispatch_module.fingerprint())


def test_that_it_is_on_is_said(master, caplog):
    caplog.set_level(logging.INFO)
    Dispatch(master.addons).install()
    assert version.VERSION in caplog.text
