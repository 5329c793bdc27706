"""Makes the tables of members in rules/mcp_wiretap_rules/schemas from the published schemas of the protocol.

    python -m harness.schema_tables FOLDER     FOLDER holds REVISION/schema.json, as `schema/` of the specification does

A table keeps what a message must look like: types, required members, constants, choices. Descriptions, formats and bounds are
left out, and so are definitions that no message needs. The tables are checked in: nothing is fetched when the package is built.
"""

import json
import sys
from pathlib import Path
from typing import Any

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
TABLES = Path(__file__).parents[2] / "rules" / "mcp_wiretap_rules" / "schemas"
_KEPT = ("type", "const", "enum", "required")
# Values that are numbers in the TypeScript source, which its translation makes integers: what users enter, and any JSON.
_OF_ANY_NUMBER = frozenset({"ElicitResult", "JSONValue"})
_EXTRA_RESULTS = {"task": "CreateTaskResult", "input_required": "InputRequiredResult"}


def table_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The table of one revision: `params` and `results` by method, `definitions` by name."""
    definitions: dict[str, Any] = schema.get("$defs") or schema["definitions"]
    params: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for name, definition in definitions.items():
        members = definition.get("properties", {})
        method = members.get("method", {}).get("const")
        if method is None:
            continue
        if "params" in members:
            params[method] = {"required": "params" in definition.get("required", ()), "node": _pruned(members["params"])}
        result = name.removesuffix("Request") + "Result"
        if name.endswith("Request") and result in definitions:
            results[method] = {"$ref": result}
    for key, name in _EXTRA_RESULTS.items():
        if name in definitions:
            results[key] = {"$ref": name}
    pruned = {name: _pruned(definition) for name, definition in definitions.items()}
    for name in _OF_ANY_NUMBER & pruned.keys():
        pruned[name] = _with_any_number(pruned[name])
    return {"params": params, "results": results, "definitions": _reached(pruned, (params, results))}


def _pruned(node: Any) -> dict[str, Any]:
    """A node of a schema with what is kept of it."""
    if not isinstance(node, dict):
        return {}
    if "$ref" in node:
        return {"$ref": node["$ref"].rpartition("/")[2]}
    kept: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    if node.get("properties"):
        kept["properties"] = {name: _pruned(member) for name, member in node["properties"].items()}
    if node.get("items"):
        kept["items"] = _pruned(node["items"])
    if isinstance(node.get("additionalProperties"), dict) and (others := _pruned(node["additionalProperties"])):
        kept["additionalProperties"] = others
    for key in ("anyOf", "oneOf"):
        if key in node:
            kept["anyOf"] = [_pruned(alternative) for alternative in node[key]]
    if "allOf" in node:
        kept["allOf"] = [_pruned(part) for part in node["allOf"]]
    return kept


def _with_any_number(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _with_any_number(inner) for key, inner in node.items()}
    if isinstance(node, list):
        return [_with_any_number(inner) for inner in node]
    return "number" if node == "integer" else node


def _reached(definitions: dict[str, Any], roots: Any) -> dict[str, Any]:
    """The definitions that the roots lead to."""
    reached: dict[str, Any] = {}
    waiting = [roots]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            name = node.get("$ref")
            if isinstance(name, str) and name not in reached:
                reached[name] = definitions[name]
                waiting.append(definitions[name])
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node
    return reached


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for revision in REVISIONS:
        schema = json.loads((Path(sys.argv[1]) / revision / "schema.json").read_text())
        written = json.dumps(table_of(schema), sort_keys=True, indent=1, separators=(",", ":"))
        (TABLES / f"{revision}.json").write_text(written + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
