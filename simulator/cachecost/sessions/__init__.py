"""Finds the sessions of agents on this machine, reads what their bills need, and remembers what was read."""
