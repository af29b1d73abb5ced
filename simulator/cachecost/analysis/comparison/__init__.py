"""Compares the strategies of a scenario."""
