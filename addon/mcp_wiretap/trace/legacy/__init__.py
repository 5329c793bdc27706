"""Follows what only legacy revisions have: handshake, session ids, resumption, messages on other streams."""
