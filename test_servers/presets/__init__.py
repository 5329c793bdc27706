"""The presets that a config may name: tools, resources, resource templates, prompts.

Every module of this package is imported once, so that adding a preset is adding a module here (or a function to one).
"""

import importlib
import pkgutil

from test_servers.registry import Kind, Preset, registered

__all__ = ["all_presets"]


def all_presets(kind: Kind) -> dict[str, Preset]:
    """Every preset of one kind by name, in name order."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(registered(kind).items()))
