"""What `mitmproxy -s` is given: mitmproxy runs this file again whenever it changes, so nothing is in it."""

from mcp_wiretap.proxy.wiretap import Wiretap

addons = [Wiretap()]
