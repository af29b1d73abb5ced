"""Secrets in a call's body: credentials for other servers that the API connects to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cachecost.live.keys import HIDDEN, secrets_in, without

FIELDS = ("authorization_token",)
"""Fields whose value is a secret (`mcp_servers[].authorization_token`, Anthropic's page on the MCP connector)."""


def secrets_of(headers: Mapping[str, str], body: bytes) -> list[str]:
    """All secrets of a call, the longest first."""
    told = _parse_json(body) if any(field.encode() in body for field in FIELDS) else None
    return sorted({*secrets_in(headers), *_secret_fields(told)}, key=lambda secret: (-len(secret), secret))


def remove_secrets(body: bytes, secrets: Sequence[str]) -> bytes:
    """A JSON body without the secrets, otherwise unchanged byte for byte."""
    clean = without(body, [form for secret in secrets for form in _spellings(secret)])
    if any(field.encode() in clean for field in FIELDS) and (told := _parse_json(clean)) is not None:
        left = [secret for secret in _secret_fields(told) if secret != HIDDEN]
        return json.dumps(_hide_fields(told), separators=(",", ":")).encode() if left else clean
    return clean


def redact_value(value: Any, secrets: Sequence[str]) -> Any:
    """A JSON value without the secrets. It works on the assembled stream, where a secret may come in pieces."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {redact_value(name, secrets): redact_value(inner, secrets) for name, inner in value.items()}
    return [redact_value(inner, secrets) for inner in value] if isinstance(value, list) else value


def _spellings(secret: str) -> list[str]:
    """The secret, and its JSON forms with and without non-ASCII characters."""
    written = (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return sorted({secret, *written}, key=len, reverse=True)


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _secret_fields(value: Any) -> Iterator[str]:
    """The values of FIELDS, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in FIELDS and isinstance(inner, str) and inner:
                yield inner
            else:
                yield from _secret_fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_fields(inner)


def _hide_fields(value: Any) -> Any:
    """The value with FIELDS hidden, for secrets escaped in a way that a search does not find."""
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if name in FIELDS and isinstance(inner, str) and inner else _hide_fields(inner)
            for name, inner in value.items()
        }
    return [_hide_fields(inner) for inner in value] if isinstance(value, list) else value
