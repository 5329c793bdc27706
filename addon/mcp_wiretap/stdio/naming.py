"""The name of a server by its command: what is started, not what starts it. Silences and expectations hang on `stdio://NAME`."""

import re
from collections.abc import Sequence

LONGEST = 64  # characters
_LAUNCHERS = {"npx", "bunx", "pnpm", "npm", "yarn", "bun", "uvx", "uv", "pipx", "deno", "docker", "podman", "env", "cmd"}
_VERBS = {"run", "exec", "x", "dlx", "tool", "-y", "--yes", "/c"}
_INTERPRETERS = re.compile(r"(?:python|pypy)[0-9.]*|node|nodejs|ruby|perl|php|java|bash|sh|zsh|dotnet|tsx|ts-node", re.I)
_GENERIC = {"index", "main", "__main__", "start", "cli", "app", "run", "dist", "build", "src", "bin", "lib", "out", "target"}
_ENDINGS = re.compile(r"\.(?:py|pyz|mjs|cjs|js|ts|mts|jar|exe|cmd|bat|sh|rb|php|dll)$", re.I)
_LAUNCHER_VALUES = {  # options of launchers whose value is the next word
    *("-p", "--package", "--from", "--with", "--python", "--directory", "--project", "-e", "--env", "-v", "--volume", "--mount"),
    *("--name", "--network", "-w", "--workdir", "--entrypoint", "--env-file", "-u", "--user", "--registry", "--platform"),
    "--add-host",
}
_INTERPRETER_VALUES = {"-X", "-W", "-r", "--require", "--import", "--loader", "-cp", "-classpath"}


def clean(name: str) -> str:
    """A name that may stand for a host: letters, digits, dot, hyphen and underscore."""
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:LONGEST]
    return cleaned or "server"


def name_of(command: Sequence[str]) -> str:
    """`npx -y @modelcontextprotocol/server-filesystem /tmp` is server-filesystem, `python -m pkg.server` is pkg.server."""
    words = list(command)
    while words:
        word = words.pop(0)
        base = _ENDINGS.sub("", _base(word))
        if base.lower() in _LAUNCHERS:
            words = _after_options(words, _LAUNCHER_VALUES)
        elif _INTERPRETERS.fullmatch(base):
            if "-m" in words[:-1]:
                return clean(words[words.index("-m") + 1])
            words = _after_options(words, _INTERPRETER_VALUES)
        else:
            return clean(_of_path(word) if _is_path(word) else _package(word))
    return clean(_ENDINGS.sub("", _base(command[0]))) if command else "server"


def _is_path(word: str) -> bool:
    path = word.replace("\\", "/")
    return path.startswith((".", "/", "~")) or path[1:3] == ":/" or ("/" in path and _ENDINGS.search(path) is not None)


def _of_path(word: str) -> str:
    """The file's name; where many are called so (`dist/index.js`), the folder's."""
    parts = [part for part in word.replace("\\", "/").split("/") if part not in ("", ".", "..", "~")]
    names = [_ENDINGS.sub("", part) for part in reversed(parts)]
    return next((name for name in names if name.lower() not in _GENERIC), names[0] if names else "server")


def _after_options(words: list[str], with_value: set[str]) -> list[str]:
    """What is started: the first word that is neither an option, nor the value of one, nor a verb of the launcher."""
    rest = list(words)
    while rest and (rest[0].startswith("-") or rest[0] in _VERBS or re.fullmatch(r"[A-Z_][A-Z0-9_]*=.*", rest[0], re.S)):
        option = rest.pop(0)
        if option == "-jar":
            return rest
        if option in with_value and rest:
            rest.pop(0)
    return rest


def _package(word: str) -> str:
    """A package without its scope, version and registry: @scope/name@1.2, name==1.2, name:tag."""
    name = word.rpartition("/")[2]
    return _ENDINGS.sub("", re.split(r"(?<=.)[@:]|==|>=|\[", name, maxsplit=1)[0])


def _base(word: str) -> str:
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2]
