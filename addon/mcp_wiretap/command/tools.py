"""`mcp-wiretap web|console|dump`: a tool of mitmproxy with the addon loaded, all other arguments its own."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from mcp_wiretap import selection
from mcp_wiretap.command import Refused


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

    check_options(arguments, options.NAMES)
    from mitmproxy.tools import main

    start = {"web": main.mitmweb, "console": main.mitmproxy, "dump": main.mitmdump}[tool]
    return start(["-s", path, *arguments]) or 0


def check_options(arguments: Sequence[str], known: frozenset[str]) -> None:
    """Refuse an option of ours that does not exist: mitmproxy keeps a misspelt `--set mcp_...` for ever and says nothing."""
    for value in _values(arguments, ("--set",)):
        name = value.partition("=")[0]
        if name.startswith("mcp_") and name not in known:
            near = selection.nearest(name, known)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}"
            raise Refused(f"--set {value}: there is no option {name}; {hint}")


def _refuse_twice(arguments: Sequence[str], path: str) -> None:
    for script in _values(arguments, ("-s", "--script", "--scripts")):
        if Path(script).exists() and Path(script).samefile(path):
            raise Refused(f"-s {script}: the addon is loaded already; leave it out")


def _values(arguments: Sequence[str], names: tuple[str, ...]) -> list[str]:
    """The values of an option, written as two arguments or with `=`."""
    values = [after for before, after in pairwise(arguments) if before in names]
    values += [one.partition("=")[2] for one in arguments if one.partition("=")[0] in names and "=" in one]
    return values
