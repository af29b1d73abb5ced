"""Renders a validation: predicted against billed."""
