"""Compares predictions with bills, call by call."""
