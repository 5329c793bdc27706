import gc

import pytest
from mitmproxy.test import taddons

from mcp_wiretap.proxy.garbage import AT_ONCE, Frozen, collecting_less
from mcp_wiretap.proxy.wiretap import Wiretap


@pytest.fixture(autouse=True)
def all_stays():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [((700, 10, 10), (AT_ONCE, 10, 10)), ((0, 10, 10), (0, 10, 10)), ((AT_ONCE + 1, 5, 5), (AT_ONCE + 1, 5, 5))],
)
def test_the_threshold_is_raised_for_a_while_and_never_lowered_nor_switched_on(before, meanwhile):
    gc.set_threshold(*before)
    with collecting_less():
        assert gc.get_threshold() == meanwhile
    assert gc.get_threshold() == before


def test_a_threshold_that_somebody_set_meanwhile_stays():
    gc.set_threshold(700, 10, 10)
    with collecting_less():
        gc.set_threshold(900, 10, 10)
    assert gc.get_threshold() == (900, 10, 10)


def test_what_was_set_aside_is_given_back():
    frozen = Frozen()
    frozen.freeze()
    assert gc.get_freeze_count() > 1_000
    frozen.thaw()
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_set_aside_is_theirs():
    gc.freeze()
    frozen = Frozen()
    frozen.freeze()
    frozen.thaw()
    assert gc.get_freeze_count() > 1_000


async def test_the_process_of_the_user_is_left_as_it_was_found():
    """Thresholds, frozen objects and mitmproxy's own way of calling addons, before, with the addon and after it."""
    addon = Wiretap()
    before = gc.get_threshold()
    with taddons.context(loadcore=False) as context:
        own = context.master.addons.trigger_event
        context.master.addons.add(addon)
        context.configure(addon)
        addon.running()
        assert gc.get_freeze_count() > 1_000
        assert gc.get_threshold() == before
        assert context.master.addons.trigger_event != own
        addon.done()
        assert gc.get_freeze_count() == 0
        assert gc.get_threshold() == before
        assert context.master.addons.trigger_event == own


async def test_mitmproxys_own_way_of_calling_addons_comes_back_when_the_option_is_turned_off():
    addon = Wiretap()
    with taddons.context(loadcore=False) as context:
        own = context.master.addons.trigger_event
        context.master.addons.add(addon)
        context.configure(addon, mcp_fast_hooks=False)
        addon.running()
        assert context.master.addons.trigger_event == own
        context.configure(addon, mcp_fast_hooks=True)
        assert context.master.addons.trigger_event != own
        context.configure(addon, mcp_fast_hooks=False)
        assert context.master.addons.trigger_event == own
        addon.done()
