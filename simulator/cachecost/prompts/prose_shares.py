"""The content kinds of a block (`Block.prose`): one ("text"), or several with their shares ("data:1200,text:8800")."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

WHOLE = 10_000
"""All shares of a block together."""


@lru_cache(maxsize=4096)
def shares_in(prose: str) -> Mapping[str, int]:
    """The share of each kind, of `WHOLE`. A kind alone may be any word: who uses it knows the kinds."""
    pairs = [part.partition(":") for part in prose.split(",")]
    if not all(share.isdecimal() for _, _, share in pairs):
        return {prose: WHOLE}
    return {kind: int(share) for kind, _, share in pairs}


def main_kind(prose: str) -> str:
    """The kind with the largest share."""
    shares = shares_in(prose)
    return max(sorted(shares), key=shares.__getitem__)


def write_shares(shares: Mapping[str, int]) -> str:
    """The only kind whose share is not 0, or all such kinds with their shares, in the order given."""
    told = {kind: share for kind, share in shares.items() if share}
    return next(iter(told)) if len(told) == 1 else ",".join(f"{kind}:{share}" for kind, share in told.items())
