"""Renders what the next message of a session costs: a table, JSON, a status line, a sentence."""
