"""Python's search for cyclic garbage: what was loaded at the start is taken out of it, and given back when the addon goes.

A full search walks every object there is. Some 130,000 of them are modules, rules and options that live as long as the process:
without them a search takes half as long, and nothing passes meanwhile.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 50_000  # objects made between two searches of `audit`: nobody waits for a single flow


class Frozen:
    """What `gc.freeze` set aside for one owner. Does nothing where somebody froze before: it is then theirs to give back."""

    def __init__(self) -> None:
        self._ours = False

    def freeze(self) -> None:
        """Set aside all objects of now. For when everything is loaded and no traffic was seen: cyclic garbage among them would
        stay."""
        if gc.get_freeze_count() == 0:
            gc.collect()
            gc.freeze()
            self._ours = True

    def thaw(self) -> None:
        """Give them back to the search."""
        if self._ours:
            gc.unfreeze()
            self._ours = False


@contextmanager
def collecting_less(young: int = AT_ONCE, *, freeze: bool = False) -> Iterator[None]:
    """Search less often, for as long as this lasts. A threshold that is higher already, or off (0), stays. `freeze`: and set
    aside what there is."""
    frozen = Frozen()
    if freeze:
        frozen.freeze()
    before = gc.get_threshold()
    raised = (young, *before[1:])
    if 0 < before[0] < young:
        gc.set_threshold(*raised)
    try:
        yield
    finally:
        if gc.get_threshold() == raised:  # not where somebody set another one meanwhile
            gc.set_threshold(*before)
        frozen.thaw()
