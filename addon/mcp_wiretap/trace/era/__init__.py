"""Decides the era of each exchange, client and endpoint, and keeps the evidence for it."""
