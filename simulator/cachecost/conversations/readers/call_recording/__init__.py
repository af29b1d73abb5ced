"""Reads recordings of calls, in content or content-free."""
