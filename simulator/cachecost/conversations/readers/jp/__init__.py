"""Reads jp conversations."""
