"""Reads LiteLLM logs."""
