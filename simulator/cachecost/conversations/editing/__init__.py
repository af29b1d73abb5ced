"""Concatenates, cuts and splits recordings."""
