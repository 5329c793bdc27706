"""Follows refusals: in which words a server refuses, how often, and what that tells of its sessions, versions and origins."""
