"""The content kinds of a block (`Block.prose`): one ("text"), or several with their shares ("data:1200,text:8800")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

WHOLE = 10_000
"""All shares of a block together."""


@lru_cache(maxsize=4096)
def shares_in(prose: str) -> Mapping[str, int]:
    """The share of each kind, of `WHOLE`. What is no list of shares is a kind alone, which may be any word: who uses it
    knows the kinds.
    """
    pairs = [part.partition(":") for part in prose.split(",")]
    shares = {kind: int(share) for kind, _, share in pairs if share.isdecimal() and len(share) <= len(str(WHOLE))}
    return shares if len(shares) == len(pairs) and sum(shares.values()) == WHOLE else {prose: WHOLE}


def main_kind(prose: str) -> str:
    """The kind with the largest share."""
    shares = shares_in(prose)
    return max(sorted(shares), key=shares.__getitem__)


def write_shares(shares: Mapping[str, int]) -> str:
    """The only kind whose share is not 0, or all such kinds with their shares, in the order given."""
    some = {kind: share for kind, share in shares.items() if share}
    return next(iter(some)) if len(some) == 1 else ",".join(f"{kind}:{share}" for kind, share in some.items())
