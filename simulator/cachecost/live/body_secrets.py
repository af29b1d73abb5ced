"""Secrets in a call's body: credentials for other servers that the API connects to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cachecost.live.keys import HIDDEN, SHORTEST, longest_first, url_credentials, without, without_scheme

FIELDS = ("authorization_token",)
"""Fields whose value is a secret (`mcp_servers[].authorization_token`, Anthropic's page on the MCP connector)."""
SERVER = "server_url"
OF_SERVER = ("authorization",)
HEADERS = "headers"
"""In an object with SERVER, the values of OF_SERVER and of HEADERS are secrets (OpenAI's guide to MCP tools)."""
MAY_HOLD = re.compile(rb"authorization_token|server_url|mcp_servers|\\u00[2-7]")
"""What a body with such a field has: its name, or an escape of an ordinary letter, which may be part of the name."""
Pairs = list[tuple[str, Any]]


def secrets_of(known: Iterable[str], body: bytes) -> list[str]:
    """All secrets of a call, longest first: those that are `known`, and those of the body."""
    own = [form for value in _credentials(body) for form in (value, without_scheme(value))]
    return longest_first([*known, *(one for one in own if len(one) >= SHORTEST)])


def remove_secrets(body: bytes, secrets: Sequence[str]) -> bytes:
    """A JSON body without the secrets and without credentials of any length, otherwise unchanged byte for byte."""
    clean = without(body, secrets)
    if all(one == HIDDEN for one in _credentials(clean)) and not _has_open_address(clean):
        return clean
    return json.dumps(json.loads(clean, object_pairs_hook=_hide_credentials), separators=(",", ":")).encode()


def redact_value(value: Any, secrets: Sequence[str]) -> Any:
    """A JSON value without the secrets. It works on the assembled stream, where a secret may come in pieces."""
    if isinstance(value, str):
        return redact_text(value, secrets)
    if isinstance(value, Mapping):
        return {redact_value(name, secrets): redact_value(inner, secrets) for name, inner in value.items()}
    return [redact_value(inner, secrets) for inner in value] if isinstance(value, list) else value


def redact_text(text: str, secrets: Sequence[str]) -> str:
    return without(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def _credentials(body: bytes) -> list[str]:
    """The values of secret fields at any depth, also of one that comes twice; none if the body is not JSON."""
    found: list[str] = []

    def look(pairs: Pairs) -> dict[str, Any]:
        found.extend(value for name, value in _secret_pairs(pairs))
        return dict(pairs)

    if MAY_HOLD.search(body):
        try:
            json.loads(body, object_pairs_hook=look)
        except (ValueError, RecursionError):
            return []
    return found


def _has_open_address(body: bytes) -> bool:
    """Whether the address of a server holds anything that is hidden there, whatever its length."""
    found: list[bool] = []

    def look(pairs: Pairs) -> dict[str, Any]:
        urls = [value for name, value in pairs if _is_address(name, pairs) and isinstance(value, str)]
        found.extend(url_credentials(url)[1] != url for url in urls)
        return dict(pairs)

    if MAY_HOLD.search(body):
        with suppress(ValueError, RecursionError):
            json.loads(body, object_pairs_hook=look)
    return any(found)


def _secret_pairs(pairs: Pairs) -> Pairs:
    """The secret fields of an object, those of the headers in it, and what is secret in the address of a server."""
    found: Pairs = []
    for name, value in pairs:
        if _is_address(name, pairs) and isinstance(value, str):
            found += [(name, secret) for secret in url_credentials(value)[0]]
        else:
            found += _secrets_of_field(name, value, _is_server(pairs))
    return found


def _secrets_of_field(name: str, value: Any, is_server: bool) -> Pairs:
    if is_server and name == HEADERS and isinstance(value, Mapping):
        return [pair for pair in value.items() if isinstance(pair[1], str) and pair[1]]
    is_secret = name in FIELDS or (is_server and name in OF_SERVER)
    return [(name, value)] if is_secret and isinstance(value, str) and value else []


def _is_server(pairs: Pairs) -> bool:
    return any(name == SERVER for name, _ in pairs)


def _is_address(name: str, pairs: Pairs) -> bool:
    """Whether a field is the address of an MCP server: Anthropic's have a name beside it, as no image's source has."""
    return name == SERVER or (name == "url" and {"name", "type"} <= {key for key, _ in pairs})


def _hide_credentials(pairs: Pairs) -> dict[str, Any]:
    """The object with its secret fields hidden."""
    is_server = _is_server(pairs)
    hidden: dict[str, Any] = {}
    for name, value in pairs:
        secret = dict(_secrets_of_field(name, value, is_server))
        if _is_address(name, pairs) and isinstance(value, str):
            hidden[name] = url_credentials(value)[1]
        elif isinstance(value, Mapping):
            hidden[name] = {**value, **dict.fromkeys(secret, HIDDEN)}
        else:
            hidden[name] = HIDDEN if secret else value
    return hidden
