"""Follows what servers list (tools, resources, prompts) and what a client had seen of it."""
