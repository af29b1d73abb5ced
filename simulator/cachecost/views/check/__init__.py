"""Renders the verdicts of `cachecost check`."""
