"""Hooks brought to the addons that have them. mitmproxy asks each of its some forty addons for each of the eight hooks of a
request, which is a third of what the request costs it; here those are passed over that cannot have the hook.

The one place that touches mitmproxy's addon manager (private: `chain`, `trigger_event`, `safecall`). Where it is not as it was
in mitmproxy 12, nothing is changed.
"""

import logging

from mitmproxy import exceptions, hooks, version
from mitmproxy.addonmanager import AddonManager, safecall

logger = logging.getLogger(__name__)

_KNOWN = "12."


class Dispatch:
    """`AddonManager.trigger_event` of one manager, with the same order, the same errors and the same halts.

    Only mitmproxy's own addons are ever passed over: their hooks are methods of their classes. Scripts, and addons that hold
    other addons, are asked each time.
    """

    def __init__(self, manager: AddonManager) -> None:
        self.manager = manager
        self._chain: list[object] = []
        self._length = -1
        self._asked: dict[str, list[object]] = {}  # hook -> who is asked, of this chain

    def install(self) -> None:
        """Take the place of the manager's own method."""
        if not version.VERSION.startswith(_KNOWN):
            logger.info(f"mitmproxy {version.VERSION} is not known to the inspector: hooks are called its own, slower way.")
            return
        self.manager.trigger_event = self.trigger_event  # type: ignore[method-assign]

    def remove(self) -> None:
        """Give the manager its own method back."""
        if vars(self.manager).get("trigger_event") == self.trigger_event:
            del self.manager.trigger_event

    async def trigger_event(self, event: hooks.Hook) -> None:
        for addon in self._addons(event.name):
            try:
                with safecall():
                    await self.manager.invoke_addon(addon, event)
            except exceptions.AddonHalt:
                return

    def _addons(self, hook: str) -> list[object]:
        chain = self.manager.chain
        if chain is not self._chain or len(chain) != self._length:  # it is appended to, or made anew
            self._chain, self._length, self._asked = chain, len(chain), {}
        asked = self._asked.get(hook)
        if asked is None:
            asked = self._asked[hook] = [addon for addon in chain if _may_have(addon, hook)]
        return asked


def _may_have(addon: object, hook: str) -> bool:
    """Whether an addon has this hook, or may get it later, or holds addons that may."""
    ours_to_know = type(addon).__module__.startswith("mitmproxy.")
    return not ours_to_know or hasattr(addon, hook) or hasattr(addon, "addons")
