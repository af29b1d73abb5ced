"""What a fuzzer does to a file: values put in the place of others, pieces cut, doubled, swapped; seeded."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

DEPTH = 100_000
RAW = "\x00raw\x00"
"""A text that stands for JSON which cannot be made from a value."""
TEXTS = [
    "",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\u202eevil\u2066",
    "a\n::error::injected",
    '=HYPERLINK("http://x")',
    "<script>alert(1)</script>",
    "| a | b |",
    "\ud800",
    "\ufeff",
    "\x00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "1e400",
    "nan",
    "x" * 100_000,
    "{" * 300,
    "[" * DEPTH,
    '{"a":' * DEPTH,
    "9" * 5000,
    "-1",
    "../../../etc/passwd",
    "anthropic/claude-opus-4-6",
    "tool_result",
    "claude-opus-4-6",
]
NUMBERS: list[Any] = [  # none that makes a long question of a short one: 1,000 turns are no damage, and take their time
    0,
    -1,
    1,
    3,
    20,
    10**6,
    10**9,
    10**12,
    10**13,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**15,
    10**300,
    -(10**300),
    0.5,
    -0.0,
    5e-324,
    1e308,
]
ODD: list[Any] = [None, True, False, [], {}, [[]], [None], [{}], {"": None}, {"type": "text"}, {"type": "image"}]
BREAKPOINT = {"type": "ephemeral"}
KINDS: list[Any] = [
    {"type": "text", "text": "x", "cache_control": {**BREAKPOINT, "ttl": "1h"}},
    {"type": "text", "text": "", "cache_control": BREAKPOINT},
    {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "", "cache_control": BREAKPOINT}],
    },
    {"type": "tool_reference", "tool_name": "look"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    {"type": "document", "source": {"type": "content", "content": []}},
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    {"type": "web_search_20250305", "name": "web_search", "cache_control": BREAKPOINT},
    {"type": "enabled", "budget_tokens": 10**6},
    {"role": "system", "content": []},
    {"role": "assistant", "content": ""},
    {"input_tokens": 10**12, "output_tokens": 0, "cache_read_input_tokens": 7, "iterations": [{}]},
    BREAKPOINT,
    {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 0}}]},
]
"""What is valid in one place and odd in another."""
RAWS = ["9" * 5000, "-" + "9" * 5000, "1e400", "1e-400", "NaN", "Infinity", "-Infinity", '"\\ud800"', "1E+999999999"]
RAWS += ["[" * deep + "]" * deep for deep in (150, 900, 5000, DEPTH)]
RAWS += ['{"a":' * deep + "1" + "}" * deep for deep in (150, 900, 5000, DEPTH)]
SIGNS = [
    *(bytes([sign]) for sign in b'{}[],:"\\\n\r\t#=*&\x00\xff'),
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\x1b[2J",
    b"- ",
]
WORDS = [
    b"null",
    b"0x",
    b"-1",
    b"1e308",
    b"1e999999999999",
    b"10000-01-01",
    b"*a",
    b"&a ",
    b"!!python/object:os.system ",
]
LONG = [b"9" * 5000, b"." * 50, b"[" * DEPTH, b"{a: " * 5000, b"a." * 20_000]
TOKENS = [*SIGNS, *WORDS, *LONG]
NUMBER = re.compile(rb"(?<![\w\"])-?\d[\d_.]*")


def damaged(data: bytes, random: Random) -> bytes:
    """`data` after one to three changes: mostly of a JSON value, so that much of it is still read, else of bytes."""
    for _ in range(random.choice((1, 1, 2, 3))):
        change = random.choice((*[_value] * 8, _line, _bytes, _number, _number))
        data = change(data, random)
    return data


def hostile(random: Random) -> Any:
    """A value that nobody sends, or that stands elsewhere."""
    if random.random() < 0.3:
        return random.choice(KINDS)
    return random.choice((random.choice(TEXTS), random.choice(NUMBERS), random.choice(ODD), RAW + random.choice(RAWS)))


def _value(data: bytes, random: Random) -> bytes:
    """A value of one line, or of the whole file, is another; a text that holds JSON is opened."""
    lines = data.splitlines(keepends=True) or [b""]
    number = random.randrange(len(lines))
    for source, put in (
        (lines[number], lambda new: b"".join([*lines[:number], new, *lines[number + 1 :]])),
        (data, bytes),
    ):
        try:
            value = json.loads(source)
        except (ValueError, RecursionError):
            continue
        return put(_json(_changed(value, random)) + b"\n")
    return _number(data, random)


def _changed(value: Any, random: Random) -> Any:
    """`value` with something in it replaced, added, dropped or doubled, at a random depth."""
    inner = isinstance(value, (dict, list)) and value and random.random() < 0.9
    if not inner:
        return _opened(value, random)
    if isinstance(value, list):
        at = random.randrange(len(value))
        return [*value[:at], _changed(value[at], random), *value[at + 1 :]]
    key = random.choice(list(value))
    if random.random() < 0.1:
        return {**value, random.choice(("x", "", "cache_control", "type", "thread")): hostile(random)}
    if random.random() < 0.08:
        return {name: one for name, one in value.items() if name != key}
    return {**value, key: _changed(value[key], random)}


def _opened(value: Any, random: Random) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "[") and random.random() < 0.8:
        try:
            return _json(_changed(json.loads(value), random)).decode("utf-8", "replace")
        except (ValueError, RecursionError):
            pass
    return hostile(random)


def _json(value: Any) -> bytes:
    """JSON of a value in which some texts stand for raw JSON."""
    text = json.dumps(value, ensure_ascii=True)
    breakpoint = json.dumps(RAW)[1:-1]
    while (start := text.find(f'"{breakpoint}')) >= 0:
        end = text.index('"', start + 1)
        while text[end - 1] == "\\":
            end = text.index('"', end + 1)
        text = text[:start] + json.loads(text[start : end + 1]).removeprefix(RAW) + text[end + 1 :]
    return text.encode()


def _line(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at, to = random.randrange(len(lines)), random.randrange(len(lines) + 1)
    changes = (
        [*lines[:to], lines[at], *lines[to:]],
        lines[:at] + lines[at + 1 :],
        lines * 3,
        [*lines[:at], lines[at].rstrip(b"\n"), *lines[at + 1 :]],
        lines[::-1],
    )
    return b"".join(random.choice(changes))


def _bytes(data: bytes, random: Random) -> bytes:
    at, to = sorted(random.randrange(len(data) + 1) for _ in range(2))
    near = min(to, at + 40)
    changes = (
        data[:at] + random.choice(TOKENS) + data[at:],
        data[:at] + random.choice(TOKENS) + data[near:],
        data[:at],
        data[:at] + data[to:],
        data[:to] + data[at:],
        data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
    )
    return random.choice(changes)


def _number(data: bytes, random: Random) -> bytes:
    """A number of a text is another: YAML and TOML have no JSON."""
    found = list(NUMBER.finditer(data))
    if not found:
        return _bytes(data, random)
    one = random.choice(found)
    return data[: one.start()] + _written(random) + data[one.end() :]


def _written(random: Random) -> bytes:
    value = random.choice((*NUMBERS, *RAWS, *TEXTS[:20], "[1, 1e308]", "{mean: 1e-300, sd: 1e300}", "1_000_000_000"))
    return str(value).encode("utf-8", "surrogatepass")
