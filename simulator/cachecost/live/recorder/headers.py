"""Hop-by-hop headers (RFC 9110, 7.6.1), which are not forwarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Pairs = list[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
CHUNKED = (b"transfer-encoding", b"chunked")


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
    """The upstream's headers as they are forwarded: in the same order, with all duplicates."""
    pairs = list(pairs)
    dropped = _dropped_names(pairs)
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _dropped_names(pairs: Pairs) -> frozenset[bytes]:
    """Hop-by-hop names, with those in a `connection` header."""
    named = (value.split(b",") for name, value in pairs if name.lower() == b"connection")
    return HOP_BY_HOP | {one.strip().lower() for each in named for one in each}


def looked_up(pairs: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by lower-case name; the last one of a name wins."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
