"""Reads OpenTelemetry traces of model calls."""
