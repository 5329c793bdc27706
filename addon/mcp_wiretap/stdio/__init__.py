"""Servers on stdio: the wrapper that stands in place of a server, the way to the proxy, and lines made into exchanges.

Standard library only, and nothing of the other rooms: the wrapper starts with each server, and a client waits for it.
"""
