"""Renders what `cachecost lint` found."""
