"""Write a file that somebody named: a regular file is replaced when all is written, everything else is written through.

A regular file, or a name that is not there yet, gets its content under another name in the same directory and then that name's
place, so that nobody reads half of it and a failed run leaves the old one. Its mode and its owner stay. A symbolic link stays a
link: its target is replaced. Devices, FIFOs, sockets and open descriptors (`/dev/stdout`, `/dev/fd/63` of a process substitution)
have no place that could be taken: their bytes go where the path leads.
"""

import errno
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

_MOST_LINKS = 40
# A file that can be written but not replaced: mounted by itself into a container, or in a directory that may not be written.
_IRREPLACEABLE = frozenset({errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to. OSError where it cannot be written; what was there before is then still there, if it was a regular
    file."""
    target = _resolved(path)
    there = target.stat() if target.exists() else None
    if there is None or (stat.S_ISREG(there.st_mode) and not _is_of_processes(target)):
        with _replacing(target, there) as file:
            yield file
    elif stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    else:
        with _through(target, there) as file:
            yield file


def _resolved(path: Path) -> Path:
    """The path without symbolic links. Those of /proc that stand for open descriptors stay: they lead to what has no path.
    OSError for links that go round in circles, and for what another user put where everybody may."""
    for _ in range(_MOST_LINKS):
        directory = Path(os.path.realpath(path.parent))
        path = directory / path.name
        if _is_of_processes(path):
            return path
        _refuse_planted(path)
        if not path.is_symlink():
            return path
        path = directory / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _is_of_processes(path: Path) -> bool:
    return path.is_relative_to("/proc") or path.parent == Path("/dev/fd")


def _refuse_planted(path: Path) -> None:
    """In a directory like /tmp what is there already is written by who made it only, as Linux has it (fs.protected_symlinks,
    protected_regular, protected_fifos)."""
    try:
        there, directory = path.lstat(), path.parent.stat()
    except FileNotFoundError:
        return
    shared = directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH
    device = stat.S_ISCHR(there.st_mode) or stat.S_ISBLK(there.st_mode)
    if shared and not device and there.st_uid not in (os.geteuid(), directory.st_uid):
        raise PermissionError(errno.EACCES, "another user put it there", str(path))


@contextmanager
def _through(path: Path, there: os.stat_result) -> Iterator[BinaryIO]:
    """A device, FIFO or socket, as it is; a descriptor of our own where it stands, for instance at the end of a log."""
    if _is_of_processes(path) and (own := _own_descriptor(path)) is not None:
        with os.fdopen(os.dup(own), "wb") as file:
            yield file
    elif stat.S_ISSOCK(there.st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.connect(str(path))
            with peer.makefile("wb") as sending:
                yield cast(BinaryIO, sending)
    else:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY), "wb") as file:
            yield file


def _own_descriptor(path: Path) -> int | None:
    own = {os.path.realpath(name) for name in ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")}
    return int(path.name) if str(path.parent) in own and path.name.isascii() and path.name.isdigit() else None


@contextmanager
def _replacing(target: Path, there: os.stat_result | None) -> Iterator[BinaryIO]:
    try:
        # Opened with O_EXCL and O_NOFOLLOW, mode 0600, under a name that cannot be guessed.
        descriptor, name = tempfile.mkstemp(prefix=".mcp-wiretap-", suffix=".part", dir=target.parent)
    except OSError as error:
        if there is None or error.errno not in _IRREPLACEABLE:
            raise
        descriptor, name = tempfile.mkstemp(prefix="mcp-wiretap-")
    aside = Path(name)
    try:
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                yield file
            _give_mode(descriptor, there)
        finally:
            os.close(descriptor)
        _take_place(aside, target, there)
    finally:
        aside.unlink(missing_ok=True)


def _give_mode(descriptor: int, there: os.stat_result | None) -> None:
    if os.name != "posix":
        return
    if there is None:
        mask = os.umask(0o077)
        os.umask(mask)
        os.fchmod(descriptor, 0o666 & ~mask)
        return
    if os.geteuid() == 0:  # who runs a container as root keeps the files of its directories with their owners
        os.fchown(descriptor, there.st_uid, there.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(there.st_mode) & 0o777)


def _take_place(aside: Path, target: Path, there: os.stat_result | None) -> None:
    try:
        aside.replace(target)
    except OSError as error:
        if there is None or error.errno not in _IRREPLACEABLE:
            raise
        with aside.open("rb") as written, os.fdopen(os.open(target, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
            file.truncate()
            shutil.copyfileobj(written, file)
