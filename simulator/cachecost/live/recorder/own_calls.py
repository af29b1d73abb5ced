"""A recorder whose upstream is itself: refused at the start, or at the first call that comes back."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx2

from cachecost.live.loopback import LOOPBACK

HEADER = b"x-cachecost-recorder"
"""One token for each recorder that a request has passed. It is sent only over plain HTTP, the only way for a call to
come back; requests to the API stay unchanged."""
PORTS = {"http": 80, "https": 443}
LOOP = "--upstream leads back to this recorder: expected the API, or a server that forwards calls to it"


def is_itself(upstream: httpx2.URL, port: int) -> bool:
    """Whether `upstream` is a recorder on this port of LOOPBACK. A name is resolved only if the port matches."""
    if (upstream.port or PORTS[upstream.scheme]) != port:
        return False
    try:
        found = socket.getaddrinfo(upstream.host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_is_here(ip_address(address[0])) for *_, address in found)


def _is_here(address: IPv4Address | IPv6Address) -> bool:
    plain = getattr(address, "ipv4_mapped", None) or address
    return str(plain) == LOOPBACK or plain.is_unspecified


def token_for(upstream: httpx2.URL) -> bytes | None:
    """The token by which a recorder recognizes its own calls; None if none is sent."""
    return secrets.token_hex(16).encode() if upstream.scheme == "http" else None


def is_own_call(headers: Iterable[tuple[bytes, bytes]], token: bytes | None) -> bool:
    return token is not None and any(name.lower() == HEADER and value == token for name, value in headers)
