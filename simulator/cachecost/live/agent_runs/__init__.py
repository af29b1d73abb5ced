"""Runs the command of a scenario against the simulated API, and records what it sends."""
