"""The order of all tests: those that start nothing first, then those with real processes, then those with a browser."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: 2 if item.get_closest_marker("browser") else 1 if item.get_closest_marker("e2e") else 0)
