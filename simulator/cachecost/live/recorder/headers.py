"""Which headers are for one hop only (RFC 9110, 7.6.1), and are therefore not passed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Pairs = list[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
CHUNKED = (b"transfer-encoding", b"chunked")


def for_upstream(pairs: Iterable[tuple[bytes, bytes]], host: bytes) -> Pairs:
    """What a client sent, as it is sent on: `host` is the upstream's, a body without a length is sent in chunks."""
    pairs = list(pairs)
    dropped = _dropped_names(pairs)
    return [(b"host", host), *(pair for name, value in pairs for pair in _for_upstream(name, value, dropped))]


def _for_upstream(name: bytes, value: bytes, dropped: frozenset[bytes]) -> Pairs:
    lower = name.lower()
    if lower == b"transfer-encoding":
        return [CHUNKED]
    return [] if lower == b"host" or lower in dropped else [(name, value)]


def for_client(pairs: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """What the upstream answered, as it is passed on: in the same order, with every duplicate."""
    pairs = list(pairs)
    dropped = _dropped_names(pairs)
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _dropped_names(pairs: Pairs) -> frozenset[bytes]:
    """The names that are of this hop, with those that a `connection` header names."""
    named = (value.split(b",") for name, value in pairs if name.lower() == b"connection")
    return HOP_BY_HOP | {one.strip().lower() for each in named for one in each}


def looked_up(pairs: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Headers by their names in lower case; the last of one name wins."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
