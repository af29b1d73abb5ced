"""Reads sessions of Gemini CLI."""
