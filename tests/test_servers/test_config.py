"""Configs: the schema beside them, and what a person reads who got one wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from test_servers.config import CONFIGS, ConfigError, json_schema, load, parse, schema_text

FILES = sorted(path for path in CONFIGS.rglob("*.json") if path.name != "schema.json")
INFO = {"serverInfo": {"name": "x", "version": "1"}}


def test_the_schema_beside_the_configs_is_the_one_of_the_models() -> None:
    assert (CONFIGS / "schema.json").read_text(encoding="utf-8") == schema_text(), (
        "run: python -m test_servers.config > test_servers/configs/schema.json"
    )


def test_the_schema_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_config_loads_and_fits_the_schema(path: Path) -> None:
    assert load(path).server_info.name
    data = json.loads(path.read_text(encoding="utf-8"))
    assert not list(Draft202012Validator(json_schema()).iter_errors(data))


@pytest.mark.parametrize(
    ("data", "place", "fix"),
    [
        ({}, "/serverInfo", "add it"),
        ([], "/", "found []"),
        (INFO | {"tols": []}, "/tols", "correct the spelling"),
        (INFO | {"tools": [{"preset": "eco"}]}, "/tools/0", "choose one of 'add'"),
        (INFO | {"tools": [{"params": {}}]}, "/tools/0", "needs 'preset'"),
        (INFO | {"tools": [{"preset": "echo", "params": {"loud": 1}}]}, "/tools/0/params/loud", "remove it"),
        (INFO | {"resources": [{"preset": "numbered_resources", "params": {"count": "x"}}]}, "/count", 'found "x"'),
        (INFO | {"transport": {"port": 70000}}, "/transport/port", "65535"),
        (INFO | {"transport": {"type": "sse", "modern": True}}, "/transport", '"type": "streamable-http"'),
        (INFO | {"oauth": {"mode": "protected-resource"}}, "/oauth", '"issuer"'),
        (INFO | {"tasks": {}, "transport": {"modern": {"legacy": "reject"}}}, "/", '"tasksExtension": true'),
    ],
)
def test_a_bad_config_names_the_file_the_place_and_the_fix(data: Any, place: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(data, "some/config.json")
    message = str(caught.value)
    assert message.startswith("some/config.json: ")
    assert place in message
    assert fix in message


def test_every_fault_of_a_config_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"serverInfo": {"name": ""}, "loging": True}, "c.json")
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), (b"{\n  oops", ":2:3: not JSON"), (b"\xff{}", "byte 0 is not UTF-8")],
)
def test_a_file_that_is_no_json_is_told_with_its_place(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "c.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"c\.json") as caught:
        load(path)
    assert said in str(caught.value)


def test_the_readme_names_every_config() -> None:
    readme = (CONFIGS.parent / "README.md").read_text(encoding="utf-8")
    assert [path.stem for path in FILES if path.parent == CONFIGS and f"`{path.stem}`" not in readme] == []
