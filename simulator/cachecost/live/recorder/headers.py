"""Hop-by-hop headers (RFC 9110, 7.6.1), which are not forwarded."""

from __future__ import annotations

from collections.abc import Iterable

Pairs = list[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
CHUNKED = (b"transfer-encoding", b"chunked")
LENGTH, ENCODING = b"content-length", b"transfer-encoding"


def has_two_lengths(pairs: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body has both a length and chunks: servers disagree where it ends (RFC 9112, 6.1 and 11.2)."""
    return {LENGTH, ENCODING} <= {name.lower() for name, _ in pairs}


def for_upstream(pairs: Iterable[tuple[bytes, bytes]], host: bytes) -> Pairs:
    """A client's headers as they are forwarded: with the upstream's `host`; a body without a length is chunked."""
    pairs = list(pairs)
    dropped = _dropped_names(pairs)
    return [(b"host", host), *(pair for name, value in pairs for pair in _for_upstream(name, value, dropped))]


def _for_upstream(name: bytes, value: bytes, dropped: frozenset[bytes]) -> Pairs:
    lower = name.lower()
    if lower == b"transfer-encoding":
        return [CHUNKED]
    return [] if lower == b"host" or lower in dropped else [(name, value)]


def for_client(pairs: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """The upstream's headers as they are forwarded: in the same order, with all duplicates.

    The length of a chunked body is dropped, since the chunks say how long it is (RFC 9112, 6.1).
    """
    pairs = list(pairs)
    dropped = _dropped_names(pairs) | ({LENGTH} if has_two_lengths(pairs) else frozenset())
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _dropped_names(pairs: Pairs) -> frozenset[bytes]:
    """Hop-by-hop names, with those in a `connection` header."""
    named = (value.split(b",") for name, value in pairs if name.lower() == b"connection")
    return HOP_BY_HOP | {one.strip().lower() for each in named for one in each}


def decoded(pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers with lower-case names, as text."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in pairs]
