"""A table over a grid: cells that are functions of their key alone, computed anywhere, in any order."""
