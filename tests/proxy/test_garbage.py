import gc

import pytest

from mcp_wiretap.proxy.garbage import LIVE, collect_less


@pytest.fixture(autouse=True)
def thresholds_stay():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "after"),
    [((700, 10, 10), (LIVE, 10, 10)), ((0, 10, 10), (0, 10, 10)), ((LIVE + 1, 5, 5), (LIVE + 1, 5, 5))],
)
def test_the_threshold_is_raised_and_never_lowered_nor_switched_on(before, after):
    gc.set_threshold(*before)
    collect_less(LIVE)
    assert gc.get_threshold() == after
