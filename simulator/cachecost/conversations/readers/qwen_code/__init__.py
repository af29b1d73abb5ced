"""Reads sessions of Qwen Code."""
