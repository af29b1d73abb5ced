"""How many tokens a block has, and how sure we are."""
