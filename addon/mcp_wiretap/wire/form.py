"""application/x-www-form-urlencoded read: the query of an authorization request, the body of a token request.

Spec: RFC 6749 appendix B; parameters must not be sent twice (section 3.1), but `resource` may be (RFC 8707).
"""

from collections.abc import Iterator
from urllib.parse import parse_qsl

MEDIA_TYPE = "application/x-www-form-urlencoded"
LONGEST = 65_536  # bytes; assertions are the longest parameters, and take some kilobytes
MOST = 200  # parameters


class Form:
    """Decoded parameters in order. `problem` says why nothing was read."""

    __slots__ = ("_values", "problem")

    def __init__(self, values: dict[str, list[str]], problem: str = "") -> None:
        self._values = values
        self.problem = problem

    def get(self, name: str) -> str | None:
        """The first value; None where there is none. An empty value counts as omitted (RFC 6749 section 3.1)."""
        values = self._values.get(name)
        return (values[0] or None) if values else None

    def all(self, name: str) -> list[str]:
        return [value for value in self._values.get(name, ()) if value]

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


def read(data: bytes | str) -> Form:
    """Read a query or a body. Never raises."""
    if len(data) > LONGEST:
        return Form({}, f"{len(data)} bytes, more than the limit of {LONGEST}")
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=MOST)
    except ValueError as error:
        return Form({}, str(error))
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return Form(values)
