"""How people name rules: ids (HDR006), families (HDR), names (name-header-mismatch), parties (client, server); case does not
matter for ids and families. A name that means nothing is refused with the nearest that does: a typing error in `--ignore` would
otherwise be a rule that is silently on.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from mcp_wiretap.rule import Rule


class UnknownRule(ValueError):
    """No rule is meant by a word. `suggestions` are those that look like it."""

    def __init__(self, word: str, suggestions: list[str]) -> None:
        self.word, self.suggestions = word, suggestions
        hint = f"did you mean {' or '.join(suggestions)}?" if suggestions else "`mcp-wiretap rules` lists all"
        super().__init__(f"unknown rule {word!r}; {hint}")


def split(values: Iterable[str]) -> list[str]:
    """The words of options that were repeated or separated by commas or spaces."""
    return [word for value in values for word in value.replace(",", " ").split()]


def resolve(words: Iterable[str], rules: Iterable[Rule]) -> list[str]:
    """The words as `rule.matches` understands them. UnknownRule for one that means no rule."""
    rules = list(rules)
    ids, families = {rule.id for rule in rules}, {rule.family for rule in rules}
    names = {rule.name for rule in rules} | {"client", "server", "either"}
    resolved = []
    for word in words:
        if word.upper() in ids or word.upper() in families:
            resolved.append(word.upper())
        elif word.lower() in names:
            resolved.append(word.lower())
        else:
            raise UnknownRule(word, nearest(word, ids | families | names))
    return resolved


def find(word: str, rules: Iterable[Rule]) -> Rule:
    """The one rule with that id or name. UnknownRule otherwise."""
    rules = list(rules)
    for rule in rules:
        if word.upper() == rule.id or word.lower() == rule.name:
            return rule
    family = [rule.id for rule in rules if rule.family == word.upper()]
    raise UnknownRule(word, family[:3] or nearest(word, [rule.id for rule in rules] + [rule.name for rule in rules]))


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Up to three known words that look like this one."""
    by_lower = {one.lower(): one for one in known}
    return [by_lower[match] for match in get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)]
