"""Requests as a broken or hostile client sends them: good bodies with seeded mutations, odd headers, odd queries."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

MODEL = "claude-opus-4-6"
BREAKPOINT = {"type": "ephemeral", "ttl": "5m"}
TOOL = {"name": "get_order", "description": "Look it up", "input_schema": {"type": "object", "properties": {"id": {}}}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": {"id": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "sent"}]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


SAY = {"type": "text", "text": "Say it.", "cache_control": BREAKPOINT}
BODIES = (
    {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": "Say it."}]},
    {
        "model": MODEL,
        "max_tokens": 2048,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": BREAKPOINT}],
        "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [user(SAY, IMAGE), {"role": "assistant", "content": [THOUGHT, CALL]}, user(RESULT, DOCUMENT)],
        "metadata": {"user_id": "u"},
        "temperature": 1.0,
    },
    {
        "model": "claude-haiku-4-5",
        "max_tokens": 64,
        "cache_control": BREAKPOINT,
        "diagnostics": {"previous_message_id": "msg_1"},
        "thread": {"type": "create"},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "minProperties": 1}}},
        "context_management": {
            "edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]
        },
        "container": {"id": "c", "skills": [{"type": "anthropic", "skill_id": "pdf", "version": "latest"}]},
        "mcp_servers": [{"type": "url", "name": "m", "url": "https://example.com", "authorization_token": "t"}],
        "tools": [{**TOOL, "defer_loading": True}, {"type": "bash_20250124", "name": "bash"}],
        "stop_sequences": ["x"],
        "messages": [user(SAY), {"role": "assistant", "content": "It."}, user(SAY)],
    },
)
DEEP = ["[" * depth + "]" * depth for depth in (90, 150, 250, 400, 900, 3_000, 100_000)]
RAW = ("1e400", "-1e400", "1e308", "9" * 4_000, "-" + "9" * 400, "1E+99999999999", '"\\ud800"', '"\\udc00x"', *DEEP)
"""JSON that Python's values do not hold as it is, or not at all."""
VALUES = (
    None, True, False, 0, -1, 1, 2**63, -(2**63), 10**300, 0.5, -0.0, 1e308, "", "x", "\x00", "\ud800", "é🙂",
    "a" * 5_000,
    [], {}, [None], [[]], [{}], {"": None}, {"type": None}, {"type": "ephemeral"}, [0], {"type": [], "text": {}},
    "1h", "text", "tool_use", "../../etc/passwd", "claude-opus-4-6", "thinking",
)  # fmt: skip
HEADER_VALUES = (
    "", " ", "0", "-1", "1e9", "9" * 5_000, "²", "٣", "\xff", "nan", "gzip", "gzip,gzip", "br", "deflate", "Bearer ",
    "Bearer x", "x" * 5_000, "2026-10-21", "2023-06-01", "true", "é", ",,,", "\t", "a,b;q=1",
)  # fmt: skip
HEADERS = (
    "x-api-key", "authorization", "anthropic-version", "anthropic-beta", "content-encoding", "content-type",
    "x-stainless-retry-count", "x-stainless-timeout", "accept", "accept-encoding", "content-length-x", "range",
)  # fmt: skip
PATHS = (
    *["/v1/messages"] * 12, *["/v1/messages/count_tokens"] * 3, "/v1/models", "/v1/models/{value}",
    "/cachecost", "/cachecost.json", "/", "/v1/messages/batches", "/{value}", "/v1//messages",
)  # fmt: skip
QUERY = ("limit", "after_id", "before_id", "lifecycle", "lifecycle[]", "beta", "x")
PLACEHOLDER = "raw-json-{}"


def body_of(dice: random.Random, bodies: Sequence[Mapping[str, Any]] = BODIES) -> bytes:
    """A good body after up to four mutations of its structure, and now and then one of its bytes."""
    body = copy.deepcopy(dice.choice(bodies))
    for _ in range(dice.randrange(5)):
        if body:
            _mutate(body, dice)
    data = json.dumps(body, ensure_ascii=dice.random() < 0.7).encode("utf-8", "surrogatepass")
    for number, raw in enumerate(RAW):
        data = data.replace(b'"%b"' % PLACEHOLDER.format(number).encode(), raw.encode())
    return _bent(data, dice) if dice.random() < 0.1 else data


def _bent(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return dice.choice((data[:at], data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :], b"\xef\xbb\xbf" + data))


def _mutate(body: object, dice: random.Random) -> None:
    """One change somewhere: a value replaced, a key left out or added, an element repeated."""
    places = list(_places(body))
    holder, key = dice.choice(places)
    what = dice.randrange(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif what == 2 and isinstance(holder, dict):
        holder[dice.choice(("cache_control", "type", "x", "\ud800", "citations", "content", "thread"))] = _value(dice)
    else:
        holder[key] = _value(dice)


def _value(dice: random.Random) -> object:
    if dice.random() < 0.3:
        return PLACEHOLDER.format(dice.randrange(len(RAW)))
    return copy.deepcopy(dice.choice(VALUES))


def _places(value: object):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield value, key
        yield from _places(child)


def headers_of(dice: random.Random) -> dict[str, str]:
    """Good headers, and half of the time one or two odd ones."""
    head = {"x-api-key": "k", "anthropic-version": dice.choice(("2023-06-01", "2026-10-21"))}
    if dice.random() < 0.5:
        head |= {dice.choice(HEADERS): dice.choice(HEADER_VALUES) for _ in range(dice.randrange(1, 3))}
    return head


def target_of(dice: random.Random) -> tuple[str, str, str]:
    """(method, path, query); most are a call."""
    value = dice.choice(("%00", "%ff", "a%2Fb", "%ED%A0%80", "x" * 3_000, "claude-opus-4-6", "..", "%F0%9F%99%82"))
    path = dice.choice(PATHS).format(value=value)
    query = "&".join(
        f"{dice.choice(QUERY)}={dice.choice((value, '9' * 5_000, '-1', '', '1e9', '%D9%A3', '%C2%B2'))}"
        for _ in range(dice.randrange(3))
    )
    method = (
        "POST" if "messages" in path and dice.random() < 0.95 else dice.choice(("GET", "GET", "POST", "HEAD", "PUT"))
    )
    return method, path, query
