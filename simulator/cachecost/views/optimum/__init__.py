"""Renders the plan of `cachecost optimize`."""
