"""The name of a server by its command."""

import pytest

from mcp_wiretap.stdio.naming import clean, name_of


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem@1.2 /data", "server-filesystem"),
        ("npx --package=x some-server", "some-server"),
        ("uvx mcp-server-git --repository x", "mcp-server-git"),
        ("uvx --from git+https://example.com/x mcp-x", "mcp-x"),
        ("uv --directory /srv run weather", "weather"),
        ("python -m package.server x.json", "package.server"),
        ("/usr/bin/python3.12 -u /srv/weather.py", "weather"),
        ("node /srv/weather/dist/index.js", "weather"),
        ("docker run -i --rm -e KEY=1 mcp/github:latest", "github"),
        ("cmd /c npx -y foo", "foo"),
        (r"C:\tools\server.exe --x", "server"),
        ("java -jar x/y.jar", "y"),
        ("env TOKEN=1 node x.js", "x"),
        ("pipx run pkg==1.0", "pkg"),
        ("npx", "npx"),
    ],
)
def test_it_is_what_is_started_and_not_what_starts_it(command: str, name: str) -> None:
    assert name_of(command.split()) == name


def test_a_name_may_stand_for_a_host() -> None:
    assert clean("My server / #1") == "My-server-1"
    assert clean("\u202e") == "server"
    assert len(clean("x" * 1_000)) == 64
