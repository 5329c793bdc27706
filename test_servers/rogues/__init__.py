"""The faults of rogue servers: what is scripted by the config, and what takes code.

Every module of this package is imported once, so that adding a fault is adding a class to one of them.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
