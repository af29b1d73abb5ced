"""Renders the comparison of `cachecost run`."""
