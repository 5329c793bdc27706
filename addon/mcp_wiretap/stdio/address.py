"""Where the proxy waits for wrappers, and how each side makes sure that the other is the same user's.

A Unix socket, mode 0600, in a folder of the user's. Where there are none (CPython on Windows), or the path is too long for one: a
port of the loopback interface and, at the same path, a file with the port and a secret that only the user can read; both sides
prove that they know the secret before anything is said.
"""

import json
import os
import socket
import stat
import struct
import sys
from typing import Any

VARIABLE = "MCP_WIRETAP_SOCKET"
LOOPBACK = "loopback:"  # before a path: a port of the loopback interface even where Unix sockets exist
LONGEST_UNIX = 100  # bytes of a path: macOS takes 103, Linux 107
MOST_HANDSHAKE = 4_096  # bytes of one line of it
_HOST = "127.0.0.1"


class NotOurs(OSError):
    """Somebody else's process is at the other end."""


def default() -> str:
    """The path that both sides use unless they are told another."""
    if told := os.environ.get(VARIABLE):
        return told
    folder = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")  # noqa: PTH111
    return os.path.join(folder, ".mcp-wiretap.sock")  # noqa: PTH118


def has_unix(path: str) -> bool:
    """Whether a Unix socket can be at this path."""
    return sys.platform != "win32" and not path.startswith(LOOPBACK) and len(os.fsencode(path)) <= LONGEST_UNIX


def plain(path: str) -> str:
    """The path itself, as a file."""
    return path.removeprefix(LOOPBACK)


def connect(path: str, timeout: float) -> socket.socket:
    """A connection to the proxy that waits there. OSError where none does, or it is not the same user's."""
    path = plain(path)
    info = os.stat(path)  # noqa: PTH116
    if sys.platform != "win32" and info.st_uid not in (os.getuid(), 0):
        raise NotOurs(f"{path} belongs to another user")
    if stat.S_ISSOCK(info.st_mode):
        return _connect_unix(path, timeout)
    return _connect_loopback(path, timeout)


def _connect_unix(path: str, timeout: float) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        made.settimeout(timeout)
        made.connect(path)
        check_peer(made)
        made.settimeout(None)
    except OSError:
        made.close()
        raise
    return made


def _connect_loopback(path: str, timeout: float) -> socket.socket:
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        port, token = read_token(file.read(MOST_HANDSHAKE))
    made = socket.create_connection((_HOST, port), timeout)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = os.urandom(16).hex()
        made.sendall(line({"nonce": nonce}))
        answer = _read_line(made)
        if not same(answer.get("proof"), proof(token, "proxy", nonce)):
            raise NotOurs(f"port {port} is not that of the proxy that wrote {path}")
        made.sendall(line({"proof": proof(token, "wrapper", str(answer.get("nonce")))}))
        made.settimeout(None)
    except OSError:
        made.close()
        raise
    return made


def read_token(text: str) -> tuple[int, str]:
    """Port and secret of a token file. OSError where it is none."""
    try:
        told = json.loads(text)
        return int(told["port"]), str(told["token"])
    except (ValueError, TypeError, KeyError) as error:
        raise NotOurs("this is no token file of mcp-wiretap") from error


def proof(token: str, side: str, nonce: str) -> str:
    """That the one who says it knows the secret, without saying it."""
    import hmac  # only here: the usual way has no need of it, and a client waits for the wrapper's start

    return hmac.new(token.encode(), f"{side}:{nonce}".encode(), "sha256").hexdigest()


def same(told: object, expected: str) -> bool:
    import hmac

    return isinstance(told, str) and told.isascii() and hmac.compare_digest(told, expected)


def check_peer(connected: socket.socket) -> None:
    """Refuse a process of another user at the other end of a Unix socket. NotOurs where it is one; nothing where the system does
    not tell: the mode of the socket is then what keeps others out."""
    uid = _peer_uid(connected)
    if sys.platform != "win32" and uid is not None and uid not in (os.getuid(), 0):
        raise NotOurs(f"a process of user {uid} is at the other end")


def _peer_uid(connected: socket.socket) -> int | None:
    try:
        if sys.platform == "linux":
            told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", told)[1])
        if sys.platform == "darwin":  # struct xucred: version, uid, ...
            told = connected.getsockopt(0, 1, 76)
            return int(struct.unpack("2I", told[:8])[1])
    except (OSError, struct.error):
        pass
    return None


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _read_line(connected: socket.socket) -> dict[str, Any]:
    """One line of the handshake, and no byte more."""
    got = bytearray()
    while not got.endswith(b"\n") and len(got) < MOST_HANDSHAKE:
        byte = connected.recv(1)
        if not byte:
            raise NotOurs("the other end has closed")
        got += byte
    try:
        value = json.loads(got)
    except ValueError as error:
        raise NotOurs("the other end does not speak as the proxy does") from error
    return value if isinstance(value, dict) else {}
