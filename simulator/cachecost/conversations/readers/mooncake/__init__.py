"""Reads Mooncake traces."""
