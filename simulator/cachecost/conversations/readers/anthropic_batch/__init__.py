"""Reads batches of the Messages API."""
