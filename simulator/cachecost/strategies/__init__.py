"""A conversation in, timed requests out."""
