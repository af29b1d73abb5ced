"""Recordings compared, put together, cut."""
