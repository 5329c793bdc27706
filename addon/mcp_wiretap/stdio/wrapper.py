"""`mcp-wiretap stdio`: stands between a client and its stdio server. Bytes pass first and are copied after.

Threads and blocking reads, no event loop: a line costs a few microseconds, and the whole starts in tens of milliseconds. Nothing
here depends on a proxy: where there is none, or it is killed, or it hangs, the bytes pass as they came.
"""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from mcp_wiretap.stdio import address
from mcp_wiretap.stdio.copies import Copies, Line
from mcp_wiretap.stdio.frames import VERSION, Frame
from mcp_wiretap.stdio.link import Link, Pipe, Told
from mcp_wiretap.stdio.naming import clean, name_of
from mcp_wiretap.stdio.process import CANNOT_START, Guardian, forward_signals, start, status_of, wait

USAGE = """usage: mcp-wiretap stdio [--name N] [--inline] [--record FILE.flow] [--socket PATH] [--] COMMAND [ARG...]

Stands in place of a stdio server in a client's configuration: starts COMMAND, passes standard input, output, error, signals and
exit status as they are, and shows the messages in the mitmweb, mitmproxy or mitmdump of mcp-wiretap that runs, or will run.

  --name N             what the server is called there: stdio://N (default: made of COMMAND)
  --inline             ask the proxy before each message passes: it can be held, edited, answered or killed there
  --record FILE.flow   write the session into this file, without any proxy
  --socket PATH        where the proxy waits (default: MCP_WIRETAP_SOCKET, else the usual place; as the option mcp_socket)

Exit status: the server's; 127 where it cannot be started, 128+N where signal N ended it, 2 for a wrong call.
"""
_CHUNK = 1 << 16
_SWITCH = 0.0002  # seconds that a thread which passes something waits for one that only tells of it
_QUIET = 0.5  # seconds without output of processes that the server left behind
_RECORDED = 30.0  # seconds for the recorder to write what it has
_FEW, _MOST_STDERR = 0.25, 1 << 20  # seconds, and bytes told in them, of stderr: a flood must not drive lines out


class Call(NamedTuple):
    """The command line, read."""

    command: list[str]
    name: str
    inline: bool = False
    record: str = ""
    socket: str = ""


class WrongCall(Exception):
    """The message says what is wrong."""


def read_arguments(arguments: Sequence[str]) -> Call:
    """By hand: argparse takes longer to import than all else here."""
    words, given, inline = list(arguments), {"--name": "", "--record": "", "--socket": ""}, False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if word == "--inline":
            inline = True
        elif option in given:
            if not equals and not words:
                raise WrongCall(f"{option} needs a value")
            given[option] = value if equals else words.pop(0)
        else:
            raise WrongCall(f"there is no option {word}; the server's own come after its command")
    if not words:
        raise WrongCall("the server's command is missing")
    name = clean(given["--name"]) if given["--name"] else name_of(words)
    return Call(words, name, inline, given["--record"], given["--socket"] or address.default())


def main(arguments: Sequence[str]) -> int:
    """Run the server until it ends. Returns its exit status."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    try:
        call = read_arguments(arguments)
        if call.record:
            _check_writable(call.record)
    except WrongCall as error:
        print(f"mcp-wiretap stdio: {error}\nSee `mcp-wiretap stdio --help`.", file=sys.stderr)
        return 2
    guardian = Guardian()
    try:
        server = start(call.command)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        print(f"mcp-wiretap: {call.command[0]} cannot be started: {why}", file=sys.stderr)
        guardian.dismiss()
        return CANNOT_START
    guardian.watch(server)
    status = Wrapper(call, server).run()
    guardian.dismiss()
    return status


def run(arguments: Sequence[str]) -> None:
    """As a process of its own: ends it. A thread may still sit in a read of standard input, which nothing can end."""
    status = main(arguments)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass
    os._exit(status)


class Wrapper:
    """One running server."""

    def __init__(self, call: Call, server: "subprocess.Popen[bytes]") -> None:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        self._server = server
        # Detached: what Python's file objects close when they are collected may by then be another file.
        self._stdin, self._stdout, self._stderr = (os.dup(f.fileno()) for f in (server.stdin, server.stdout, server.stderr))
        for file in (server.stdin, server.stdout, server.stderr):
            file.close()
        self._sinks = {"c": self._stdin, "s": 1, "e": 2}
        self._locks = {"c": threading.Lock(), "s": threading.Lock()}
        self._signalled = False
        self._left = 0.0  # since when only processes that the server left behind keep its output open
        self._client_over = threading.Event()
        self._moved = {"c": 0.0, "s": 0.0, "e": 0.0}  # when something last came
        self._writing = {"c": False, "s": False, "e": False}  # what has come is on its way, to a reader who takes it slowly
        forward_signals(server, self._note_signal)
        said = (("hello", VERSION), ("name", call.name), ("pid", server.pid), ("command", call.command), ("inline", call.inline))
        hello = Frame("hello", time.time(), more=said)
        self._recorder = _recorder(call.record) if call.record else None
        self._pipe = Pipe(self._recorder.stdin, hello) if self._recorder is not None and self._recorder.stdin else None
        self._link = Link(call.socket, hello, inline=call.inline)
        pipe, link = self._pipe, self._link
        self._copies = Copies([pipe.tell, link.tell] if pipe else [link.tell], lambda: pipe is not None or link.alive)

    def run(self) -> int:
        sys.setswitchinterval(_SWITCH)
        self._copies.start()
        _thread(self._pump_client).start()  # not waited for: the client may keep its end open
        outputs = [_thread(self._pump_server), _thread(self._pump_errors)]
        for thread in outputs:
            thread.start()
        returned = wait(self._server)
        ended = time.time()
        while any(thread.is_alive() for thread in outputs) and not self._may_leave():
            outputs[0].join(0.02)
            outputs[1].join(0.02)
        self._copies.settle()
        self._copies.put(Frame("exit", ended, more=(("exit", returned), ("dropped", self._link.dropped))))
        self._copies.settle()
        self._link.close()
        if self._pipe is not None and self._recorder is not None:
            self._pipe.close()
            with suppress(subprocess.TimeoutExpired):  # it goes on without us
                self._recorder.wait(_RECORDED)
        return status_of(returned)

    def _may_leave(self) -> bool:
        """Whether to stop waiting for processes that the server left behind with its output open."""
        if not (self._client_over.is_set() or self._signalled):
            return False  # the client still listens, and they may be the real server
        if (self._writing["s"] or self._writing["e"]) and not self._signalled:
            return False  # the client still reads what the server has said
        if not self._left:
            self._left = time.time()
        return time.time() - max(self._left, self._moved["s"], self._moved["e"]) > _QUIET

    def _note_signal(self) -> None:
        self._signalled = True

    def _pump_client(self) -> None:
        self._pump(0, "c")
        self._link.release()
        self._client_over.set()
        _close(self._stdin)
        _close(0)  # so that a client that goes on writing is told, as the server would have told it

    def _pump_server(self) -> None:
        self._pump(self._stdout, "s")
        _close(self._stdout)

    def _pump(self, source: int, direction: str) -> None:
        try:
            if self._link.inline:
                self._pump_asking(source, direction)
            else:
                self._pump_copying(source, direction)
        except OSError:
            pass  # the reader has gone
        self._copies.note(direction, time.time(), b"")
        self._copies.passed(direction)

    def _pump_copying(self, source: int, direction: str) -> None:
        """Each byte passes as it comes; a copy is cut into lines by another thread."""
        copies, moved = self._copies, self._moved
        while data := _read(source):
            at = moved[direction] = time.time()
            copies.note(direction, at, data)
            self._pass(direction, data)
            copies.passed(direction)

    def _pump_asking(self, source: int, direction: str) -> None:
        """Each line waits for the proxy's word. One that is too long to be told passes as it comes."""
        unfinished = Line()
        while data := _read(source):
            at = self._moved[direction] = time.time()
            *ends, rest = data.split(b"\n")
            for end in ends:
                passing, long = unfinished.add(end), unfinished.cut > 0
                if long or not self._link.asks:
                    self._copies.put(unfinished.frame(direction, at))
                    self._write(direction, (passing if long else bytes(unfinished.kept)) + b"\n")
                else:
                    self._ask(unfinished.frame(direction, at))
                unfinished = Line()
            if rest and (passing := unfinished.add(rest)):
                self._write(direction, passing)
        if unfinished:
            self._copies.put(unfinished.frame(direction, time.time(), finished=False))
            if not unfinished.cut:
                self._write(direction, bytes(unfinished.kept))

    def _ask(self, frame: Frame) -> None:
        def decided(told: Told) -> None:
            try:
                for to, line in [(frame.kind, frame.data)] if told is None else told:
                    if to in self._locks:
                        self._write(to, line + b"\n")
            except OSError:
                pass  # that side has gone meanwhile

        self._copies.settle()
        if self._pipe is not None:
            self._pipe.tell([frame])
        self._link.ask(frame, decided)

    def _pump_errors(self) -> None:
        told, since, lost = 0, 0.0, 0
        while data := _read(self._stderr):
            at = self._moved["e"] = time.time()
            self._pass("e", data)
            if at - since > _FEW:
                told, since = 0, at
            told += len(data)
            if told > _MOST_STDERR:
                lost += len(data)
                continue
            self._copies.put(Frame("e", at, data, cut=lost))
            lost = 0
        if lost:
            self._copies.put(Frame("e", time.time(), cut=lost))

    def _write(self, direction: str, data: bytes) -> None:
        """From several threads: the pump, and what the proxy has decided."""
        with self._locks[direction]:
            self._pass(direction, data)

    def _pass(self, direction: str, data: bytes) -> None:
        self._writing[direction] = True
        try:
            _write(self._sinks[direction], data)
        finally:
            self._writing[direction] = False


def _read(fd: int) -> bytes:
    """Some bytes; none at the end. The other end of a pipe may have made it non-blocking."""
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            select.select([fd], [], [])


def _write(fd: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        try:
            written += os.write(fd, memoryview(data)[written:] if written else data)
        except BlockingIOError:
            select.select([], [fd], [])


def _close(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)


def _thread(pump: Callable[[], None]) -> threading.Thread:
    def guarded() -> None:
        with suppress(OSError):
            pump()

    return threading.Thread(target=guarded, daemon=True)


def _check_writable(path: str) -> None:
    try:
        with open(path, "ab"):  # noqa: PTH123
            pass
    except OSError as error:
        raise WrongCall(f"--record {path}: {error.strerror}") from error


def _recorder(path: str) -> "subprocess.Popen[bytes] | None":
    """The process that writes the recording: it loads more than a client would wait for, and outlives us if we are killed."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "mcp_wiretap.proxy.stdio.recorder", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        print(f"mcp-wiretap: nothing is recorded: {error.strerror}", file=sys.stderr)
        return None
