"""BLAKE2 without OpenSSL, which takes milliseconds to load: a status line has few of them."""

from __future__ import annotations

try:
    from _blake2 import blake2b  # as `random` does
except ImportError:  # missing in some Pythons
    from hashlib import blake2b

__all__ = ["blake2b"]
