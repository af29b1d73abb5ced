"""Drives the real API: planned calls as real requests, under a budget that is never exceeded."""
