"""Token counters, and their error margins."""
