"""API keys: identified by a digest, and removed from everything that is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

SECRET_HEADERS = ("x-api-key", "authorization", "proxy-authorization", "cookie", "x-goog-api-key", "api-key")
"""Headers whose value is a secret."""
HIDDEN = "[key]"
SHORTEST = 8
"""Shorter values of a secret header are not treated as secrets."""


def workspace_of(headers: Mapping[str, str]) -> str:
    """The workspace, whose calls share a cache: a digest of the call's API key; "" without one."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    key = headers.get("x-api-key") or bearer or headers.get("x-goog-api-key")
    return blake2b(key.encode(), digest_size=4, person=b"workspace").hexdigest() if key else ""


def secrets_in(headers: Mapping[str, str]) -> list[str]:
    """The values of secret headers, longest first, without a word like `Bearer` before them."""
    found = {_bare(headers[name]) for name in SECRET_HEADERS if headers.get(name)}
    return sorted((secret for secret in found if len(secret) >= SHORTEST), key=lambda secret: (-len(secret), secret))


def _bare(value: str) -> str:
    scheme, _, rest = value.partition(" ")
    return rest.strip() if rest and scheme.isalpha() else value.strip()


def without(data: bytes, secrets: Iterable[str]) -> bytes:
    """`data` with every secret replaced by HIDDEN, also where JSON escapes it."""
    for form in _forms(secrets):
        data = data.replace(form, HIDDEN.encode())
    return data


def _forms(secrets: Iterable[str]) -> Iterator[bytes]:
    for secret in secrets:
        plain = secret.encode("utf-8", "surrogateescape")
        yield plain
        if (slashed := plain.replace(b"/", b"\\/")) != plain:
            yield slashed
