"""Renders what `cachecost explain` found."""
