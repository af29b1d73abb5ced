"""Sends the calls of a strategy to the simulated cache and prices what it answers."""
