"""Follows subscriptions and log messages on event streams."""
