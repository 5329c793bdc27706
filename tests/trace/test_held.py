"""What is kept whole after its end, for which reasons, and when it is let go."""

from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.model import Exchange
from tests.trace.following import follow


def exchanges(number: int) -> list[Exchange]:
    """Exchanges that are over and not released: their server's era is open."""
    _, found = follow("modern tools/list\n  -> 503\n" * number)
    return found


def test_an_exchange_is_released_when_the_last_reason_is_gone() -> None:
    held = Held(10, 10_000, lambda _: None)
    [exchange] = exchanges(1)
    held.keep(exchange, "one")
    held.keep(exchange, "two")
    held.settle(exchange)
    held.free(exchange, "one")
    assert not exchange.released
    held.free(exchange, "two")
    assert exchange.released
    assert len(held) == 0


def test_an_exchange_that_nobody_keeps_is_released_at_once() -> None:
    held = Held(10, 10_000, lambda _: None)
    [exchange] = exchanges(1)
    held.settle(exchange)
    assert exchange.released


def test_a_reason_that_is_gone_before_the_end_releases_at_the_end() -> None:
    held = Held(10, 10_000, lambda _: None)
    [exchange] = exchanges(1)
    ended, exchange.ended = exchange.ended, None
    held.keep(exchange, "one")
    held.free(exchange, "one")
    assert not exchange.released
    exchange.ended = ended
    held.settle(exchange)
    assert exchange.released


def test_what_was_released_is_not_kept_again() -> None:
    held = Held(10, 10_000, lambda _: None)
    [exchange] = exchanges(1)
    exchange.release()
    held.keep(exchange, "one")
    assert len(held) == 0


def test_the_oldest_that_are_over_go_first() -> None:
    dropped: list[str] = []
    held = Held(2, 10_000, lambda x: dropped.append(x.flow))
    first, second, third = exchanges(3)
    first.ended = None
    for exchange in (first, second, third):
        held.keep(exchange, "one")
        held.settle(exchange)
    assert dropped == [second.flow]
    assert [x.released for x in (first, second, third)] == [False, True, False]
