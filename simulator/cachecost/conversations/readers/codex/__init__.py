"""Reads sessions of Codex CLI."""
