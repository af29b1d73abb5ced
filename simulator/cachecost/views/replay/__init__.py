"""Renders the ledgers of `cachecost replay`."""
