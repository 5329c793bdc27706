"""What may be read of a directory in which somebody stands, and which of the rule files in it may run.

A file is read only where nobody but the user (and root) can have written it. Rule files that a project file names run only after
the user has allowed them: kept in the user's configuration directory, by the path of the project file and by the content of it
and of the rule files. A changed file is not the one that was allowed.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp_wiretap import outfile

LARGEST = 1 << 20  # bytes of a project file or of a rule file
_STORE = "trusted.json"


class NotOurs(Exception):
    """A file that is not read. The message says why, without the path."""


def read_own(path: Path) -> bytes:
    """The content of a file that nobody but the user and root can have written. NotOurs for others; OSError."""
    _check_own(path.parent, path.parent.stat())
    if path.is_symlink():
        if os.name == "posix" and not _is_ours(path.lstat().st_uid):
            raise NotOurs(f"it is a link of another user (uid {path.lstat().st_uid})")
        target = Path(os.path.realpath(path)).parent
        _check_own(target, target.stat())
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotOurs("it is no regular file")
        _check_own(path, found)
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise NotOurs(f"it is larger than {LARGEST >> 20} MB")
    return content


def _check_own(path: Path, found: os.stat_result) -> None:
    if os.name != "posix":
        return
    what = "its directory" if stat.S_ISDIR(found.st_mode) else "it"
    if not _is_ours(found.st_uid):
        raise NotOurs(f"{what} belongs to another user (uid {found.st_uid})")
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX:
        return  # as /tmp: everybody may add files, nobody may replace those of others
    if found.st_mode & stat.S_IWOTH:
        raise NotOurs(f"everybody may write {what if what != 'it' else 'it'}")
    if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid):
        raise NotOurs(f"a group of users (gid {found.st_gid}) may write {what}")


def _is_ours(uid: int) -> bool:
    """Of the user or of root; to root by sudo, the user is who called it."""
    if uid in (0, os.geteuid()):
        return True
    return os.geteuid() == 0 and os.environ.get("SUDO_UID") == str(uid)


def _is_private(gid: int) -> bool:
    """Whether a group is the user's alone: root's, or the one that has the user's name (or no name, as in a container)."""
    if gid == 0:
        return True
    if gid != os.getegid():
        return False
    import grp
    import pwd

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return True
    try:
        return group.gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(slots=True)
class Trusted:
    """The projects whose rule files were allowed: project file -> what was read then, path -> SHA-256."""

    path: Path | None  # None: there is no configuration directory
    projects: dict[str, dict[str, str]] = field(default_factory=dict)
    problem: str | None = None  # why what is kept there is not believed

    @classmethod
    def load(cls) -> "Trusted":
        path = _place()
        if path is None:
            return cls(None)
        try:
            return cls(path, _checked(json.loads(read_own(path))))
        except FileNotFoundError:
            return cls(path)
        except NotOurs as why:
            return cls(path, problem=f"{path} is not read: {why}")
        except OSError as error:
            return cls(path, problem=f"{path} cannot be read: {error.strerror}")
        except (ValueError, RecursionError):
            return cls(path, problem=f"{path} is not as `mcp-wiretap trust` writes it; nothing in it counts")

    def allows(self, project: Path, content: Mapping[str, str]) -> bool:
        """Whether a project's files are those that were allowed."""
        return self.projects.get(str(project)) == dict(content)

    def allow(self, project: Path, content: Mapping[str, str]) -> None:
        self.projects[str(project)] = dict(content)

    def forget(self, project: Path) -> bool:
        """Take a project back, by its file or by its directory; whether it was there."""
        named = [one for one in self.projects if one == str(project) or Path(one).parent == project]
        for one in named:
            del self.projects[one]
        return bool(named)

    def save(self) -> None:
        """OSError where it cannot be written."""
        if self.path is None:
            raise FileNotFoundError(2, "there is no home directory to keep it in")
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"version": 1, "projects": self.projects}, indent=1, sort_keys=True)
        with outfile.writing(self.path) as file:
            file.write(text.encode() + b"\n")
        self.path.chmod(0o600)


def _checked(value: object) -> dict[str, dict[str, str]]:
    """ValueError for what is not of this form."""
    projects = value.get("projects") if isinstance(value, dict) and value.get("version") == 1 else None
    if not isinstance(projects, dict):
        raise ValueError
    for content in projects.values():
        if not isinstance(content, dict) or not all(isinstance(one, str) for one in content.values()):
            raise ValueError
    return projects


def _place() -> Path | None:
    given = os.environ.get("XDG_CONFIG_HOME") if os.name == "posix" else os.environ.get("APPDATA")
    if given and Path(given).is_absolute():
        return Path(given) / "mcp-wiretap" / _STORE
    try:
        return Path.home() / ".config" / "mcp-wiretap" / _STORE
    except RuntimeError:
        return None
