"""`mcp-wiretap web|console|dump`: a tool of mitmproxy with the addon loaded, all other arguments its own."""

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from mcp_wiretap import selection
from mcp_wiretap.command import Refused

_SCRIPTS = ("-s", "--script", "--scripts")


def addon_path() -> str:
    """The file to give to `mitmweb -s`."""
    spec = find_spec("mcp_wiretap.proxy.addon")
    if spec is None or spec.origin is None:
        raise Refused("the addon is not where it should be; install mcp-wiretap anew")
    return spec.origin


def run(tool: str, arguments: list[str]) -> int:
    """Start the tool; returns when it has ended."""
    path = addon_path()
    _refuse_twice(arguments, path)
    from mcp_wiretap.proxy import options

    check_values(arguments, options.KINDS)
    check_options(arguments, options.NAMES)
    from mitmproxy.tools import main

    start = {"web": main.mitmweb, "console": main.mitmproxy, "dump": main.mitmdump}[tool]
    return start(["-s", path, *arguments]) or 0


def check_values(arguments: Sequence[str], kinds: Mapping[str, Any]) -> None:
    """Refuse a value of an option of ours that is of another type: mitmproxy says so late, among other lines."""
    for value in _values(arguments, ("--set",)):
        name, equals, text = value.partition("=")
        kind = kinds.get(name)
        if kind is int and not re.fullmatch("[+-]?[0-9]+", text):
            raise Refused(f"--set {value}: {name} is a whole number, not {text!r}")
        if kind is bool and equals and text not in ("true", "false", "toggle"):
            raise Refused(f"--set {value}: {name} is true or false, not {text!r}")


def check_options(arguments: Sequence[str], known: frozenset[str]) -> None:
    """Refuse an option that is one of ours but for its spelling: mitmproxy keeps a misspelt `--set mcp_...` for ever. Where other
    scripts are loaded it may be theirs: the addon looks again when it runs (`options.tell_unknown`)."""
    given = _values(arguments, ("--set",))
    if _values(arguments, _SCRIPTS) or any(value.startswith("scripts=") for value in given):
        return
    for value in given:
        name = value.partition("=")[0]
        if name.startswith("mcp_") and name not in known and (near := selection.nearest(name, known)):
            raise Refused(f"--set {value}: there is no option {name}; did you mean {' or '.join(near)}?")


def _refuse_twice(arguments: Sequence[str], path: str) -> None:
    for script in _values(arguments, _SCRIPTS):
        if Path(script).exists() and Path(script).samefile(path):
            raise Refused(f"-s {script}: the addon is loaded already; leave it out")


def _values(arguments: Sequence[str], names: tuple[str, ...]) -> list[str]:
    """The values of an option, written as two arguments or with `=`."""
    values = [after for before, after in pairwise(arguments) if before in names]
    values += [one.partition("=")[2] for one in arguments if one.partition("=")[0] in names and "=" in one]
    return values
