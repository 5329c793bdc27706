"""Probes a server: calls that a recording shows to work are sent with one thing changed, and the answers judged by the rules.

`bases` chooses the calls, `sending` sends them, `run` goes through the probes, `report` tells. What is changed, and what is right
then, is declared in rule packs (`mcp_wiretap.rule.probes`).
"""
