"""Renders a sweep."""
