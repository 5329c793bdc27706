"""Compares mirrored headers with the body, and finds the faults of one request."""
