"""Reads Langfuse exports."""
