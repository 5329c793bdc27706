"""Hooks brought to the addons that have them, and no others. mitmproxy asks each of its some forty addons for each of the eight
hooks of a request, with a context manager and a coroutine for each: a third of what the request costs it.

The one place that touches mitmproxy's addon manager (private: `chain`, `trigger_event`, `invoke_addon`, `safecall`). Where its
source is not one that was read and found to do the same, nothing is changed.
"""

import hashlib
import inspect
import logging
from typing import Literal

from mitmproxy import exceptions, hooks, version
from mitmproxy.addonmanager import AddonManager, safecall, traverse

logger = logging.getLogger(__name__)

# What `fingerprint` gives, and of which mitmproxy. A new one is added after its source was read: the same order, errors, halts.
KNOWN = {"5de81c87e71412c5": "12.2.3 to 12.3.1"}


def fingerprint() -> str | None:
    """Tells one source of mitmproxy's dispatch from another. None where there is no source (a frozen build)."""
    parts = (
        AddonManager.trigger_event,
        AddonManager.invoke_addon,
        getattr(AddonManager, "_iter_hooks", None),
        safecall,
        traverse,
    )
    try:
        source = "\n".join(inspect.getsource(part) for part in parts if part is not None)
    except (OSError, TypeError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()[:16]


class Dispatch:
    """`AddonManager.trigger_event` of one manager, with the same order, the same errors and the same halts.

    Only mitmproxy's own addons are passed over, or called without its detours: their hooks are methods of their classes.
    Scripts, and addons that hold other addons, are left to mitmproxy each time.
    """

    def __init__(self, manager: AddonManager) -> None:
        self.manager = manager
        self._chain: list[object] = []
        self._length = -1
        self._asked: dict[str, list[tuple[object, bool]]] = {}  # hook -> who of this chain is asked, and whether directly

    def install(self) -> None:
        """Take the place of the manager's own method. Says at level INFO whether it did."""
        if vars(self.manager).get("trigger_event") == self.trigger_event:
            return
        if "trigger_event" in vars(self.manager) or "invoke_addon" in vars(self.manager):
            logger.info("mcp_fast_hooks: somebody else has changed how mitmproxy calls its addons; that stays.")
            return
        found = fingerprint()
        if found not in KNOWN:
            logger.info(
                f"mcp_fast_hooks: the source of mitmproxy {version.VERSION} is not a known one ({found or 'there is none'}): "
                "hooks are called its own, slower way."
            )
            return
        self.manager.trigger_event = self.trigger_event  # type: ignore[method-assign]
        logger.info(f"mcp_fast_hooks: mitmproxy {version.VERSION} calls only the addons that have the hook; false turns it off.")

    def remove(self) -> None:
        """Give the manager its own method back."""
        if vars(self.manager).get("trigger_event") == self.trigger_event:
            del self.manager.trigger_event

    async def trigger_event(self, event: hooks.Hook) -> None:
        arguments = event.args()
        for addon, directly in self._addons(event.name):
            try:
                if directly:
                    result = getattr(addon, event.name)(*arguments)
                    if result is not None and inspect.isawaitable(result):
                        await result
                else:
                    with safecall():
                        await self.manager.invoke_addon(addon, event)
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                with safecall():  # says what failed, as ever
                    raise

    def _addons(self, hook: str) -> list[tuple[object, bool]]:
        chain = self.manager.chain
        if chain is not self._chain or len(chain) != self._length:  # it is appended to, or made anew
            self._chain, self._length, self._asked = chain, len(chain), {}
        asked = self._asked.get(hook)
        if asked is None:
            ways = ((addon, _way(addon, hook)) for addon in chain)
            asked = self._asked[hook] = [(addon, way == "direct") for addon, way in ways if way != "none"]
        return asked


def _way(addon: object, hook: str) -> Literal["none", "direct", "mitmproxy's"]:
    """How a hook is brought to an addon: not at all, where it has none and never will."""
    if not type(addon).__module__.startswith("mitmproxy.") or hasattr(addon, "addons"):
        return "mitmproxy's"
    found = getattr(addon, hook, None)
    if found is None:
        return "none"
    return "direct" if callable(found) else "mitmproxy's"
