"""Ids that look as the API's do and are the same in every run."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
LENGTH = 22


class Ids:
    """Ids made of what was sent, and of how often it was: parallel calls have the same ids in any order."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._seen: Counter[bytes] = Counter()

    def next(self, *parts: bytes) -> str:
        """What follows `req_` and `msg_` in the ids of one call."""
        said = blake2b(b"\0".join(parts), digest_size=16, person=b"call").digest()
        self._seen[said] += 1
        key = b"%d:%d:" % (self._seed, self._seen[said]) + said
        return "01" + _spelled(int.from_bytes(blake2b(key, digest_size=16, person=b"id").digest()))


def _spelled(number: int) -> str:
    letters = []
    for _ in range(LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters.append(LETTERS[letter])
    return "".join(letters)
