"""Composable MCP servers of both eras, made from a small JSON file and presets.

Knows how to serve a situation that the inspector explains; knows nothing of the inspector. `python -m test_servers
test_servers/configs/NAME.json` starts one; see README.md for the list.
"""
