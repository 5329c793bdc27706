"""Clients that are wrong on purpose, each a script against an honest server: `python -m test_servers.drive --rogue NAME`.

A script is declared by `@rogue_client(NAME, config=CONFIG)`; every module of this package is imported once. What the audit
finds against the client stands beside, in NAME.expected: a rule id and its reason a line.
"""

import importlib
import pkgutil

from test_servers.rogue_clients.base import ROGUE_CLIENTS, RogueClient, rogue_client

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ROGUE_CLIENTS", "RogueClient", "rogue_client"]
