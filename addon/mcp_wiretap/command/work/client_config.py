"""The configurations of MCP clients: where they are, the servers in them, and a server put behind `mcp-wiretap stdio` and back.

An entry is changed in the places of its command and its arguments only. What stood there is found again in the backup, so that
undoing gives the file back byte for byte, whatever else was changed in it meanwhile.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp_wiretap.command.work.jsonc import Node, parse
from mcp_wiretap.stdio.naming import clean

TABLES = ("mcpServers", "servers", "mcp")  # members that hold servers by name
_URLS = ("url", "httpUrl", "serverUrl")
LOOPBACK = "http://127.0.0.1:"
type Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Entry:
    """One server of a configuration."""

    path: tuple[str, ...]  # names of the members that lead to it
    node: Node

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def command(self) -> list[str] | None:
        """What starts it, as one list; None where it is no stdio server."""
        command = self.node.get("command")
        if command is None:
            return None
        if command.items is not None:  # opencode
            words = command.plain()
        else:
            arguments = self.node.get("args")
            words = [command.value, *(arguments.plain() if arguments is not None and arguments.items is not None else [])]
        return words if words and all(isinstance(word, str) for word in words) else None

    @property
    def url(self) -> str | None:
        found = self.url_node
        return found.value if found is not None and isinstance(found.value, str) else None

    @property
    def url_node(self) -> Node | None:
        return next((node for key in _URLS if (node := self.node.get(key)) is not None), None)

    @property
    def wrapped(self) -> list[str] | None:
        """The server's own command, where it stands behind the wrapper already."""
        words = self.command
        if words is None or len(words) < 3 or words[1] != "stdio" or "mcp-wiretap" not in Path(words[0].replace("\\", "/")).name:
            return None
        return words[words.index("--") + 1 :] if "--" in words else None


def entries(root: Node) -> Iterator[Entry]:
    """The servers of a configuration, of all its projects (Claude Code)."""
    for table in TABLES:
        found = root.get(table)
        if found is None:
            continue
        if table == "mcp" and (inner := found.get("servers")) is not None:  # settings.json of VS Code
            yield from (Entry((table, "servers", name), node) for name, node in inner.objects())
        else:
            yield from (Entry((table, name), node) for name, node in found.objects())
    projects = root.get("projects")
    for project, node in projects.objects() if projects is not None else ():
        servers = node.get("mcpServers")
        for name, one in servers.objects() if servers is not None else ():
            yield Entry(("projects", project, "mcpServers", name), one)


def wrap(entry: Entry, program: Sequence[str], *, inline: bool) -> list[Edit]:
    """Put the wrapper in front of a stdio server. `program` is what starts mcp-wiretap."""
    command, arguments = entry.node.get("command"), entry.node.get("args")
    assert command is not None and entry.command is not None
    words = [*program, "stdio", "--name", clean(entry.name), *(["--inline"] if inline else []), "--", *entry.command]
    if command.items is not None:
        return [(command.start, command.end, _json(words))]
    edits = [(command.start, command.end, _json(words[0]))]
    if arguments is not None:
        edits.append((arguments.start, arguments.end, _json(words[1:])))
    else:
        edits.append((command.end, command.end, f', "args": {_json(words[1:])}'))
    return edits


def unwrap(entry: Entry, text: str, before: Entry | None, before_text: str) -> list[Edit]:
    """Put the server's own command back, as `before`, the same entry of the backup, wrote it."""
    own = entry.wrapped
    command, arguments = entry.node.get("command"), entry.node.get("args")
    assert own is not None and command is not None
    known = before is not None and before.command == own
    was, was_arguments = (before.node.get("command"), before.node.get("args")) if known and before is not None else (None, None)
    if command.items is not None:
        return [(command.start, command.end, _text(before_text, was) or _json(own))]
    edits = [(command.start, command.end, _text(before_text, was) or _json(own[0]))]
    if arguments is None:
        return edits
    if (was is None and len(own) > 1) or was_arguments is not None:
        edits.append((arguments.start, arguments.end, _text(before_text, was_arguments) or _json(own[1:])))
    else:  # there were none
        start = text.rfind('"args"', 0, arguments.start)
        comma = re.compile(r",\s*$").search(text, 0, start)
        edits.append((comma.start() if comma is not None else start, arguments.end, ""))
    return edits


def redirect(entry: Entry, port: int) -> list[Edit]:
    """Point an HTTP server's URL at a port of this machine."""
    node, url = entry.url_node, urlsplit(entry.url or "")
    assert node is not None
    query = f"?{url.query}" if url.query else ""
    return [(node.start, node.end, _json(f"{LOOPBACK}{port}{url.path}{query}"))]


def redirect_back(entry: Entry, before: Entry | None, before_text: str) -> list[Edit]:
    """Put an HTTP server's own URL back."""
    node, was = entry.url_node, before.url_node if before is not None else None
    if node is None or was is None or before is None or before.url is None or entry.url is None:
        return []
    same_path = urlsplit(entry.url).path == urlsplit(before.url).path
    if entry.url == before.url or not entry.url.startswith(LOOPBACK) or not same_path:
        return []
    return [(node.start, node.end, before_text[was.start : was.end])]


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with its spans replaced."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def undone(text: str, backup: str | None, names: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The text with its servers taken from behind the wrapper, all or those of these names; and what they are called."""
    before = {entry.path: entry for entry in entries(parse(backup))} if backup is not None else {}
    edits: list[Edit] = []
    done: list[str] = []
    for entry in entries(parse(text)):
        if names and entry.name not in names:
            continue
        if entry.wrapped is not None:
            more = unwrap(entry, text, before.get(entry.path), backup or "")
        else:
            more = redirect_back(entry, before.get(entry.path), backup or "")
        if more:
            edits += more
            done.append(entry.name)
    return edited(text, edits), done


def _text(text: str, node: Node | None) -> str:
    return text[node.start : node.end] if node is not None else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode", "gemini", "opencode")


def places(client: str) -> list[Path]:
    """Where a client keeps its configuration: of this project first, then of this user."""
    home = Path.home()
    match client:
        case "claude-desktop":
            return [_application_data(home) / "Claude" / "claude_desktop_config.json"]
        case "claude-code":
            return [Path(".mcp.json"), home / ".claude.json"]
        case "cursor":
            return [Path(".cursor/mcp.json"), home / ".cursor" / "mcp.json"]
        case "vscode":
            return [Path(".vscode/mcp.json"), _application_data(home) / "Code" / "User" / "mcp.json"]
        case "gemini":
            return [Path(".gemini/settings.json"), home / ".gemini" / "settings.json"]
        case "opencode":
            own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
            names = ("opencode.json", "opencode.jsonc")
            return [*(Path(name) for name in names), *(own / name for name in names)]
    return [Path(client).expanduser()]


def _application_data(home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
