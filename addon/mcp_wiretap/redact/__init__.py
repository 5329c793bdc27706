"""Finds the secrets of a recording and replaces them. Knows no mitmproxy."""
