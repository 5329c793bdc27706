"""Serving what 2026-07-28 deprecates is the purpose of some servers; the SDK need not warn of it here."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::mcp.shared.exceptions.MCPDeprecationWarning")
