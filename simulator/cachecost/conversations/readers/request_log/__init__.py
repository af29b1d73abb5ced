"""Reads request logs, the format that cachecost itself writes."""
