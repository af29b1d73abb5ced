"""Sessions as they are looked at: their calls, the blocks of one call beside those before, what else it might cost."""
