"""Renders the difference between two recordings."""
