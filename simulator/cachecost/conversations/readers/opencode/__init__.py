"""Reads the session stores of opencode."""
