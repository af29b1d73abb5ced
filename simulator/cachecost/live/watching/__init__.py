"""Follows a running session: a file that grows, or a simulated API."""
