"""Renders what `cachecost bill` found."""
