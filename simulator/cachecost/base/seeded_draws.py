"""Draws that a seed decides, and no generator's state."""

from __future__ import annotations


def seeded_share(seed: int, what: str, number: int) -> float:
    """A reproducible share in [0, 1) for the `number`-th time that `what` is drawn."""
    from hashlib import blake2b

    digest = blake2b(f"{seed}:{what}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
