"""The server's process: started in a group of its own, signalled as a group, and never left behind.

Launchers such as npx and uvx start the real server as a child of theirs: a signal to the launcher must reach that one, too.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

CANNOT_START = 127  # as shells say it
_GRACE = 2.0  # seconds between the request to end and the end, where this process was killed
_STEP = 0.1  # seconds
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGBREAK")


def start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start the server. OSError where it cannot be started."""
    more: dict[str, Any] = {}
    words = list(command)
    if sys.platform == "win32":
        # A .cmd starter (npx.cmd) is found by its name only where its whole path is given.
        import shutil

        words[0] = shutil.which(words[0]) or words[0]
        more["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
    else:
        more["process_group"] = 0
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **more)


def wait(server: "subprocess.Popen[bytes]") -> int:
    """Wait for the server's end. On Windows in steps: signals are heard only between them."""
    while True:
        try:
            return server.wait(_STEP if sys.platform == "win32" else None)
        except subprocess.TimeoutExpired:
            continue


def status_of(returned: int) -> int:
    """The exit status that says the same: 128+n where signal n ended it."""
    return returned if returned >= 0 else 128 - returned


def forward_signals(server: "subprocess.Popen[bytes]", heard: Callable[[], None]) -> None:
    """Signals to this process go to the server's group."""

    def pass_on(number: int, _: Any) -> None:
        heard()
        send(server, number)

    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None:
            try:
                signal.signal(number, pass_on)
            except (OSError, ValueError):
                continue


def send(server: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        if sys.platform == "win32":
            if number in (signal.SIGINT, signal.SIGBREAK):
                os.kill(server.pid, signal.CTRL_BREAK_EVENT)
            else:
                server.terminate()
        else:
            os.killpg(server.pid, number)
    except OSError:
        pass  # it has gone already


class Guardian:
    """Ends the server's group where this process is killed so that it cannot do it itself (SIGKILL).

    A child that waits at a pipe. Made before the server and before any thread; it holds nothing of ours open but the pipe.
    """

    def __init__(self) -> None:
        self._pipe = -1
        if sys.platform == "win32":
            return
        read, self._pipe = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                os.dup2(read, 0)
                os.closerange(1, 256)
                _guard()
            finally:
                os._exit(0)
        os.close(read)

    def watch(self, server: "subprocess.Popen[bytes]") -> None:
        """This is the group to end."""
        if sys.platform == "win32":
            _end_with_us(server)
        else:
            self._tell(b"%d\n" % server.pid)

    def dismiss(self) -> None:
        """The server has ended."""
        if self._pipe >= 0:
            self._tell(b"over\n")
            os.close(self._pipe)
            self._pipe = -1

    def _tell(self, data: bytes) -> None:
        with suppress(OSError):
            os.write(self._pipe, data)


def _guard() -> None:
    told = b""
    while data := os.read(0, 100):
        told += data
        if told.endswith(b"over\n"):
            return
    if sys.platform != "win32" and told.strip().isdigit():
        group = int(told)
        for number, wait in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, 0.0)):
            try:
                os.killpg(group, number)
            except OSError:
                return
            until = time.monotonic() + wait
            while time.monotonic() < until:
                time.sleep(0.05)
                os.killpg(group, 0)


def _end_with_us(server: "subprocess.Popen[bytes]") -> None:
    """Windows: a job object that ends its processes when the last handle to it, ours, is closed."""
    if sys.platform == "win32":
        try:
            import ctypes
            from ctypes import wintypes

            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = wintypes.HANDLE
            job = kernel.CreateJobObjectW(None, None)
            limits = (ctypes.c_byte * 144)()  # JOBOBJECT_EXTENDED_LIMIT_INFORMATION of 64-bit Windows
            ctypes.c_uint32.from_buffer(limits, 16).value = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            kernel.SetInformationJobObject(wintypes.HANDLE(job), 9, ctypes.byref(limits), ctypes.sizeof(limits))
            kernel.AssignProcessToJobObject(wintypes.HANDLE(job), wintypes.HANDLE(int(server._handle)))
        except (OSError, AttributeError, ValueError):
            pass  # the server still sees the end of its input
