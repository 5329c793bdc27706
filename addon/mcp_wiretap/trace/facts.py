"""Typed keys of what trackers find: a fact is declared once, beside its writer, and the key carries the type of its value.

    REISSUE: ExchangeFact[Reissue] = ExchangeFact("reissue", "the request repeats one whose stream broke")

    exchange.facts[REISSUE] = Reissue(...)   # the tracker
    exchange.facts.get(REISSUE)              # a rule: Reissue | None
    @rule(..., needs=(REISSUE,))             # the rule is called only where the fact is there

There is one kind of key for each owner: exchange, endpoint and session. A name that begins with `_` is private to its tracker:
rules cannot need it.
"""

from collections.abc import Callable, Collection, KeysView
from typing import Any, ClassVar, Literal, overload

type Scope = Literal["exchange", "endpoint", "session"]


class Fact[T]:
    """The key of one fact. Keys are compared by identity."""

    __slots__ = ("name", "says")

    scope: ClassVar[Scope]
    known: ClassVar[dict[tuple[Scope, str], "Fact[Any]"]] = {}
    _holds: Callable[[T], T]  # never set; it makes T invariant, so that a value of another type is refused by a type checker

    def __init__(self, name: str, says: str) -> None:
        """Declare a fact: `name` as a pack may write it, `says` in one line what it means.

        Raises:
            ValueError: a fact of this scope has that name already.
        """
        key = (self.scope, name)
        if key in Fact.known:
            raise ValueError(f"the {self.scope} fact {name} is declared twice")
        self.name, self.says = name, says
        Fact.known[key] = self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ExchangeFact[T](Fact[T]):
    """The key of a fact about one exchange. The fact goes when the exchange is released."""

    __slots__ = ()
    scope = "exchange"


class EndpointFact[T](Fact[T]):
    """The key of a fact about one endpoint."""

    __slots__ = ()
    scope = "endpoint"


class SessionFact[T](Fact[T]):
    """The key of a fact about one legacy session."""

    __slots__ = ()
    scope = "session"


class ExchangeFacts:
    """The facts of one exchange."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    @overload
    def get[T](self, fact: ExchangeFact[T]) -> T | None: ...

    @overload
    def get[T, D](self, fact: ExchangeFact[T], otherwise: D) -> T | D: ...

    def get(self, fact: ExchangeFact[Any], otherwise: Any = None) -> Any:
        return self._values.get(fact, otherwise)

    def __getitem__[T](self, fact: ExchangeFact[T]) -> T:
        value: T = self._values[fact]
        return value

    def __setitem__[T](self, fact: ExchangeFact[T], value: T) -> None:
        self._values[fact] = value

    def setdefault[T](self, fact: ExchangeFact[T], value: T) -> T:
        kept: T = self._values.setdefault(fact, value)
        return kept

    def __contains__(self, fact: object) -> bool:
        return fact in self._values

    def __len__(self) -> int:
        return len(self._values)

    @property
    def names(self) -> KeysView[Fact[Any]]:
        """Which facts there are."""
        return self._values.keys()

    def take(self, others: "ExchangeFacts", withheld: Collection[str] = ()) -> None:
        """Take over the facts of another exchange, but for those of the names that are withheld."""
        self._values.update((fact, value) for fact, value in others._values.items() if fact.name not in withheld)


class EndpointFacts:
    """The facts of one endpoint."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    @overload
    def get[T](self, fact: EndpointFact[T]) -> T | None: ...

    @overload
    def get[T, D](self, fact: EndpointFact[T], otherwise: D) -> T | D: ...

    def get(self, fact: EndpointFact[Any], otherwise: Any = None) -> Any:
        return self._values.get(fact, otherwise)

    def __getitem__[T](self, fact: EndpointFact[T]) -> T:
        value: T = self._values[fact]
        return value

    def __setitem__[T](self, fact: EndpointFact[T], value: T) -> None:
        self._values[fact] = value

    def setdefault[T](self, fact: EndpointFact[T], value: T) -> T:
        kept: T = self._values.setdefault(fact, value)
        return kept

    def __contains__(self, fact: object) -> bool:
        return fact in self._values


class SessionFacts:
    """The facts of one legacy session."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    @overload
    def get[T](self, fact: SessionFact[T]) -> T | None: ...

    @overload
    def get[T, D](self, fact: SessionFact[T], otherwise: D) -> T | D: ...

    def get(self, fact: SessionFact[Any], otherwise: Any = None) -> Any:
        return self._values.get(fact, otherwise)

    def __getitem__[T](self, fact: SessionFact[T]) -> T:
        value: T = self._values[fact]
        return value

    def __setitem__[T](self, fact: SessionFact[T], value: T) -> None:
        self._values[fact] = value

    def setdefault[T](self, fact: SessionFact[T], value: T) -> T:
        kept: T = self._values.setdefault(fact, value)
        return kept

    def __contains__(self, fact: object) -> bool:
        return fact in self._values
