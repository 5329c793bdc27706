"""A rule of anybody's: whatever it raises or yields, the other rules, the report and the traffic are as without it."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import Evidence, Finding, Rule, RuleBook, RuleFile, Unchecked, find_rules, load_file, rule
from mcp_wiretap.rule.containment import told
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange, Message

CALL = 'modern tools/call {"name": "deploy"}\n  -> result {"content": []}\n'


class Unprintable(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def made(check: Callable[[Message], Iterator[Any]], severity: Any = "warning", id: str = "ACME001") -> Rule:
    mark = rule(id, id.lower(), "x", on="request", level="must", party="client", era="both", severity=severity, spec="x")
    found: Rule = mark(check).__rule__  # type: ignore[attr-defined]
    return found


def judged(*rules: Rule) -> tuple[Exchange, RuleBook]:
    book = RuleBook.of(rules)
    inspector = Inspector(book)
    for event in read_script(CALL):
        inspector.feed(event)
    (exchange,) = inspector.exchanges.values()
    return exchange, book


def well(message: Message) -> Iterator[Finding]:
    yield Finding("the other rule spoke")


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        asyncio.CancelledError(),
        GeneratorExit(),
        RecursionError(),
        MemoryError(),
        Unprintable(),
        BaseException("x"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("after", [0, 1])
def test_whatever_a_rule_raises_is_its_fault_and_the_others_speak(error: BaseException, after: int) -> None:
    def raises(message: Message) -> Iterator[Finding]:
        yield from (Finding("before") for _ in range(after))
        raise error

    exchange, _ = judged(made(raises), made(well, id="ACME002"))
    assert [finding.message for finding in exchange.findings] == ["before"] * after + ["the other rule spoke"]
    assert [where for where, _ in exchange.faults] == ["rule ACME001"]
    assert exchange.faults[0][1].startswith(type(error).__name__)


def test_a_ctrl_c_while_a_rule_works_ends_the_command() -> None:
    def interrupted(message: Message) -> Iterator[Finding]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        judged(made(interrupted))


async def test_under_an_event_loop_a_keyboard_interrupt_is_the_rules_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(message: Message) -> Iterator[Finding]:
        raise KeyboardInterrupt
        yield

    import signal

    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # as mitmproxy does it
    try:
        exchange, _ = judged(made(interrupts))
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    assert exchange.faults == [("rule ACME001", "KeyboardInterrupt: ")]


def test_a_rule_that_yields_without_end_is_closed_and_said_to_be_unfinished() -> None:
    closed = []

    def endless(message: Message) -> Iterator[Finding]:
        try:
            for number in itertools.count():
                yield Finding(f"number {number}")
        finally:
            closed.append(True)

    exchange, book = judged(made(endless, "info"), made(well, id="ACME002"))
    assert closed and len(exchange.findings) == 200
    assert exchange.findings[-1].message == "the other rule spoke"  # it is worse than what the endless one says
    assert 200 <= book.suppressed == exchange.suppressed <= 2_000
    assert "all that ACME001 finds there" in [one.what for one in exchange.unchecked]


@pytest.mark.parametrize("thing", [Unchecked("it", "no reason"), Finding("same", once="x")], ids=["unchecked", "once"])
def test_what_is_not_listed_can_be_yielded_without_end_neither(thing: object) -> None:
    exchange, _ = judged(made(lambda message: itertools.repeat(thing)))
    assert len(exchange.findings) <= 200 and len(exchange.unchecked) <= 3


def test_a_rule_that_does_not_let_itself_be_closed_is_at_fault() -> None:
    def stubborn(message: Message) -> Iterator[Finding]:
        while True:
            try:
                yield Finding("more")
            except GeneratorExit:
                yield Finding("and more")

    exchange, _ = judged(made(stubborn), made(well, id="ACME002"))
    assert [where for where, _ in exchange.faults] == ["rule ACME001"]


def test_the_worst_finding_is_kept_however_many_milder_ones_come_before() -> None:
    def many(message: Message) -> Iterator[Finding]:
        yield from (Finding(f"mild {number}", severity="info") for number in range(300))
        yield Finding("grave", severity="error")
        yield from (Finding(f"mild {number}", severity="warning") for number in range(300, 310))

    exchange, book = judged(made(many, "error"))
    severities = [finding.severity for finding in exchange.findings]
    assert len(severities) == 200 and severities.count("error") == 1 and severities.count("warning") == 10
    assert book.suppressed == 111


@pytest.mark.parametrize(
    "thing",
    [
        "a text",
        None,
        7,
        Finding(None),  # type: ignore[arg-type]
        Finding("x", ["no evidence"]),  # type: ignore[list-item]
        Finding("x", [Evidence("where", 7)]),  # type: ignore[arg-type]
        Finding("x", [Evidence("where", "x", 7)]),  # type: ignore[arg-type]
        Finding("x", severity="grave"),  # type: ignore[arg-type]
        Finding("x", party="proxy"),  # type: ignore[arg-type]
        Finding("x", related=(1,)),  # type: ignore[arg-type]
        Unchecked(None, "x"),  # type: ignore[arg-type]
    ],
)
def test_what_no_report_could_show_is_the_rules_fault(thing: object) -> None:
    exchange, _ = judged(made(lambda message: iter([thing])), made(well, id="ACME002"))
    assert [finding.message for finding in exchange.findings] == ["the other rule spoke"]
    assert [where for where, _ in exchange.faults] == ["rule ACME001"] and all(
        isinstance(one.what, str) for one in exchange.unchecked
    )


@pytest.mark.parametrize("text", ["import sys\nsys.exit(0)", "raise KeyError", "import asyncio\nraise asyncio.CancelledError"])
def test_a_rule_file_that_ends_the_process_is_refused_instead(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"rules\.py cannot be run: "):
        find_rules([str(path)])


def test_what_runs_is_what_was_read_not_what_python_cached(tmp_path: Path) -> None:
    """Python takes a compiled file without a look at its source where that file says that it need not be looked at."""
    import importlib.util
    import py_compile

    path = tmp_path / "rules.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    cached = importlib.util.cache_from_source(str(path))
    py_compile.compile(str(path), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    example = Path(__file__).parent.parent / "example_pack" / "house_rules.py"
    path.write_bytes(example.read_bytes())
    file = RuleFile.read(str(path))
    path.write_text("raise RuntimeError('changed meanwhile')")
    assert [found.id for found in load_file(file)] == ["ACME001"]
    assert not (tmp_path / "ran").exists()


def test_the_text_of_an_error_is_told_whatever_it_is() -> None:
    assert told(ValueError("x")) == "ValueError: x"
    assert told(Unprintable()) == "Unprintable: (making its text raised SystemExit)"
    assert len(told(ValueError("x" * 10_000))) < 600
