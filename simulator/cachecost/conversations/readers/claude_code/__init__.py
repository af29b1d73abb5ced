"""Reads Claude Code transcripts."""
