"""Compares, concatenates and cuts recordings."""
