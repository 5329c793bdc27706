"""How a client and a server found their era: probes, refusals, retries, fallbacks (ERA003, ERA006, ERA020)."""

from mcp_wiretap.trace.tracker import Tracker


class Negotiations(Tracker):
    name = "negotiation"
