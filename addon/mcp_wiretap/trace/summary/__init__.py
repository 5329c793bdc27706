"""Describes an exchange in a few words: method, name, outcome, clients, counts."""
