"""`mcp-wiretap trust [DIR]`: the rule files of a project may run from now on, as they are now."""

import argparse
from pathlib import Path

from mcp_wiretap import project
from mcp_wiretap.command import Refused
from mcp_wiretap.command.output import say
from mcp_wiretap.trust import Trusted
from mcp_wiretap.wire.secret import visible


def run(arguments: argparse.Namespace) -> int:
    trusted = Trusted.load()
    if trusted.problem is not None:
        say(trusted.problem)
    if arguments.list:
        for path, content in sorted(trusted.projects.items()):
            _print(path, content)
        return 0
    directory = Path(arguments.directory)
    if arguments.remove:
        return _remove(trusted, directory)
    return _allow(trusted, directory)


def _allow(trusted: Trusted, directory: Path) -> int:
    if not directory.is_dir():
        raise Refused(f"{directory} is no directory; name the one of the project")
    try:
        found = project.load(directory)
        content = project.content_of(found) if found.files else {}
    except project.ProjectError as error:
        raise Refused(str(error)) from None
    for line in found.passed_over:
        say(line)
    if found.path is None:
        raise Refused(f"there is no {project.FILE} that would be read in {directory}, nor above it in the same repository")
    if not found.files:
        print(f"{visible(str(found.path))} names no rule files: there is nothing to allow")
        return 0
    trusted.allow(found.path, content)
    _save(trusted)
    _print(str(found.path), content)
    return 0


def _remove(trusted: Trusted, directory: Path) -> int:
    """By the directory of the project, which need not be there any more."""
    place = directory.resolve()
    if not any(trusted.forget(one) for one in (place, *place.parents)):
        raise Refused(f"nothing was allowed of {directory}; --list tells what was")
    _save(trusted)
    return 0


def _save(trusted: Trusted) -> None:
    try:
        trusted.save()
    except OSError as error:
        raise Refused(f"{trusted.path or 'what is allowed'} cannot be written: {error.strerror}") from None


def _print(path: str, content: dict[str, str]) -> None:
    print(visible(path))
    for file, digest in sorted(content.items()):
        if file != path:
            print(f"  {visible(file)}  sha256 {digest[:16]}")
