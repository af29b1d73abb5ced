"""Renders the alternatives of `cachecost whatif`."""
