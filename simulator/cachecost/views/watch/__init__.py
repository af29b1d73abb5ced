"""A running session in a terminal."""
