"""API keys: identified by a digest, and removed from everything that is written.

So are secrets in a call's body: credentials for other servers that the API connects to.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote_plus

SECRET_ENDINGS = ("api-key", "apikey", "authorization", "cookie", "-auth", "-token", "-secret", "-subscription-key")
"""A header whose name ends like this has a secret as its value: the APIs' own, and those of gateways before them."""
HIDDEN = "[key]"
SHORTEST = 8
"""Shorter values of a secret header are not treated as secrets."""
SECRET_PARAMETER = re.compile("(?i)key|token|secret|signature|passw|credential|session|auth|jwt|^(sig|code|pwd?)$")
"""How parameters of a URL with a secret are named: `key`, `access_token`, `X-Amz-Signature`, `sig` …"""
ESCAPES = {'"': '"', "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""Characters by what JSON writes after a backslash (RFC 8259, 7), besides `\\uXXXX` and the backslash itself."""


def workspace_of(headers: Mapping[str, str]) -> str:
    """The workspace, whose calls share a cache: a digest of the call's API key; "" without one."""
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    key = headers.get("x-api-key") or bearer or headers.get("x-goog-api-key")
    return blake2b(key.encode(), digest_size=4, person=b"workspace").hexdigest() if key else ""


def secrets_in(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The values of secret headers, longest first, without a word like `Bearer` before them; each value of a cookie."""
    found: list[str] = []
    for name, value in ((name.lower(), value) for name, value in headers):
        if not name.endswith(SECRET_ENDINGS):
            continue
        found.append(without_scheme(value))
        if name.endswith("cookie"):
            found += [pair.partition("=")[2].strip(' "') for pair in value.split(";")]
        if value.lower().startswith("basic "):  # a user and a password (RFC 7617)
            with suppress(ValueError):
                found.append(b64decode(without_scheme(value)).decode().partition(":")[2])
    return longest_first(one for one in found if len(one) >= SHORTEST)


def query_secrets(query: str) -> list[str]:
    """The values of parameters of a URL that are named like secrets, as they stand there and decoded."""
    pairs = (pair.partition("=") for pair in query.split("&"))
    values = [value for name, _, value in pairs if SECRET_PARAMETER.search(unquote_plus(name))]
    return longest_first(form for value in values for form in (value, unquote_plus(value)) if len(form) >= SHORTEST)


def url_credentials(url: str) -> tuple[list[str], str]:
    """The credentials in the URL of a server that a call connects to, and the URL without them.

    Hidden are the user, the password and every value of the query. Of these the ones that are surely secrets are
    returned: a password, a user without one, values of parameters that are named like secrets.
    """
    head, mark, rest = url.partition("://")
    if not mark:
        return [], url
    place = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    user_info, at, host = rest[:place].rpartition("@")
    rest, hash_, fragment = rest[place:].partition("#")
    path, question, query = rest.partition("?")
    user, _, password = user_info.partition(":")
    secrets = [form for one in (password or user,) if one for form in (one, unquote_plus(one))]
    secrets += query_secrets(query)
    clean = "&".join(f"{pair.partition('=')[0]}={HIDDEN}" if "=" in pair else HIDDEN for pair in query.split("&"))
    hidden_user = f"{HIDDEN}@" if at else ""
    return secrets, f"{head}://{hidden_user}{host}{path}{f'?{clean}' if question else ''}{hash_}{fragment}"


def longest_first(secrets: Iterable[str]) -> list[str]:
    """In the order in which they are removed, since one may be part of another."""
    return sorted(set(secrets), key=lambda secret: (-len(secret), secret))


def without_scheme(value: str) -> str:
    """A credential without a word like `Bearer` before it."""
    scheme, _, rest = value.partition(" ")
    return rest.strip() if rest and scheme.isalpha() else value.strip()


def without(data: bytes, secrets: Iterable[str]) -> bytes:
    """`data` with every secret replaced by HIDDEN, however JSON escapes it, also in JSON inside a JSON string."""
    is_escaped = b"\\" in data
    for secret in secrets:
        if secret and (is_escaped or secret.encode("utf-8", "surrogateescape") in data):
            data = _pattern(secret).sub(_hide, data)
    return data


def _hide(found: re.Match[bytes]) -> bytes:
    """HIDDEN. What a backslash escapes before it stays, so that JSON stays JSON."""
    data, start = found.string, found.start()
    before = start
    while before > 0 and data[before - 1 : before] == b"\\":
        before -= 1
    is_escape = (start - before) % 2 == 1
    return found[0][:1] + HIDDEN.encode() if is_escape else HIDDEN.encode()


@lru_cache(maxsize=64)
def _pattern(secret: str) -> re.Pattern[bytes]:
    """Every spelling of a secret. A string inside a string has more backslashes."""
    return re.compile(b"".join(map(_spellings, secret)))


def _spellings(letter: str) -> bytes:
    plain = letter.encode("utf-8", "surrogateescape")
    units = letter.encode("utf-16-be", "surrogatepass")
    codes = (units[place : place + 2].hex() for place in range(0, len(units), 2))
    escaped = b"".join(b"\\\\+u(?i:%b)" % code.encode() for code in codes)
    if letter == "\\":
        return rb"(?:%b|\\+)" % escaped
    short = rb"\\*" if letter in '"/' else b""
    named = rb"|\\+%b" % ESCAPES[letter].encode() if letter in "\b\f\n\r\t" else b""
    return b"(?:%b%b|%b%b)" % (short, re.escape(plain), escaped, named)


FIELDS = ("authorization_token",)
"""Fields whose value is a secret (`mcp_servers[].authorization_token`, Anthropic's page on the MCP connector)."""
SERVER, OF_SERVER, HEADERS = "server_url", "authorization", "headers"
"""In an object with SERVER, the value of OF_SERVER and those of HEADERS are secrets (OpenAI's guide to MCP tools)."""
MAY_HOLD = re.compile(rb"authorization_token|server_url|mcp_servers|\\u00[2-7]")
"""What a body with such a field has: its name, or an escape of an ordinary letter, which may be part of the name."""
Pairs = list[tuple[str, Any]]


def secrets_of(known: Iterable[str], body: bytes) -> list[str]:
    """All secrets of a call, longest first: those that are `known`, and those of the body."""
    own = [form for value in _credentials(body)[0] for form in (value, without_scheme(value))]
    return longest_first([*known, *(one for one in own if len(one) >= SHORTEST)])


def remove_secrets(body: bytes, secrets: Sequence[str]) -> bytes:
    """A JSON body without the secrets and without credentials of any length, otherwise unchanged byte for byte."""
    clean = without(body, secrets)
    found, has_open_address = _credentials(clean)
    if all(one == HIDDEN for one in found) and not has_open_address:
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


def _credentials(body: bytes) -> tuple[list[str], bool]:
    """The values of secret fields at any depth, also of one that comes twice, and whether the address of a server holds
    anything that is hidden there, whatever its length. Nothing if the body is not JSON.
    """
    found: list[str] = []
    is_open: list[bool] = []

    def look(pairs: Pairs) -> dict[str, Any]:
        is_server = any(name == SERVER for name, _ in pairs)
        for name, value in pairs:
            if _is_address(name, pairs) and isinstance(value, str):
                secrets, hidden = url_credentials(value)
                found.extend(secrets)
                is_open.append(hidden != value)
            else:
                found.extend(secret for _, secret in _secrets_of_field(name, value, is_server))
        return dict(pairs)

    if MAY_HOLD.search(body):
        try:
            json.loads(body, object_pairs_hook=look)
        except (ValueError, RecursionError):
            return [], False
    return found, any(is_open)


def _secrets_of_field(name: str, value: Any, is_server: bool) -> Pairs:
    if is_server and name == HEADERS and isinstance(value, Mapping):
        return [pair for pair in value.items() if isinstance(pair[1], str) and pair[1]]
    is_secret = name in FIELDS or (is_server and name == OF_SERVER)
    return [(name, value)] if is_secret and isinstance(value, str) and value else []


def _is_address(name: str, pairs: Pairs) -> bool:
    """Whether a field is the address of an MCP server: Anthropic's have a name beside it, as no image's source has."""
    return name == SERVER or (name == "url" and {"name", "type"} <= {key for key, _ in pairs})


def _hide_credentials(pairs: Pairs) -> dict[str, Any]:
    is_server = any(name == SERVER for name, _ in pairs)
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
