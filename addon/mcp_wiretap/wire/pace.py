"""Rests in long work. Whoever inspects a message of some megabytes says now and then that it may be interrupted here.

Nothing happens where nobody asked for it (`audit`, tests). A proxy that must go on passing bytes meanwhile runs the work inside
of `resting`, and takes it up again later: it goes on as if nothing had happened. No clock is read here; what is found does not
depend on where the rests are.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_EVERY = 16  # items between two offers to rest

_rest: Callable[[], None] | None = None


def breathe() -> None:
    """This is a place to interrupt the work."""
    if _rest is not None:
        _rest()


@contextmanager
def resting(rest: Callable[[], None]) -> Iterator[None]:
    """`rest` is called at each place where the work may be interrupted."""
    global _rest
    before, _rest = _rest, rest
    try:
        yield
    finally:
        _rest = before


def paced[T](items: Iterable[T], every: int = _EVERY) -> Iterator[T]:
    """The items of what a message holds (a list of tools may have fifty thousand), with rests between them."""
    for number, item in enumerate(items):
        if number % every == 0 and _rest is not None:
            _rest()
        yield item
