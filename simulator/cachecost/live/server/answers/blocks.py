"""Reads the parts of a body that answers depend on, and makes blocks. Missing or malformed parts are empty.

Values for JSON schemas are minimal, on a best-effort basis: strings satisfy the limits, format and pattern of their
schema, the most likely first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain
from typing import Any

from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.prompts.request import NotAMessage

Item = Mapping[str, Any]


def blocks(message: Item) -> list[Item]:
    """The blocks of a message; a string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)


def has(message: Item, kind: str) -> bool:
    return any(block.get("type") == kind for block in blocks(message))


def count_tool_calls_of_turn(body: Item) -> int:
    """How many assistant messages called tools since the last message without tool results."""
    calls = 0
    for message in reversed(objects_in(body.get("messages"))):
        if message.get("role") == "assistant":
            calls += has(message, "tool_use")
        elif message.get("role") == "user" and not has(message, "tool_result"):
            break
    return calls


def wanted_schema(body: Item) -> Item | None:
    """The JSON schema that the text must follow; None without one."""
    wanted = object_or_empty(body.get("output_config")).get("format") or body.get("output_format")
    schema = object_or_empty(wanted).get("schema")
    return schema if object_or_empty(wanted).get("type") == "json_schema" and isinstance(schema, Mapping) else None


def id_of(prefix: str, body: Item, turn: int, number: int = 0) -> str:
    """An id derived from the messages, the turn and the place in the answer, not from the workspace or time."""
    said = json.dumps([body.get("messages"), turn, number], separators=(",", ":"), default=str)
    return f"{prefix}_01{blake2b(said.encode(), digest_size=11, person=prefix.encode()).hexdigest()}"


def tool_use(body: Item, turn: int, name: str, arguments: Item, number: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_of("toolu", body, turn, number), "name": name, "input": dict(arguments)}


def thinking(words: str) -> dict[str, Any]:
    """A thinking block; its signature is a digest of its text and only good for being sent back."""
    signature = blake2b(words.encode(), digest_size=32, person=b"signature").hexdigest()
    return {"type": "thinking", "thinking": words, "signature": signature}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def stop_reason(content: Sequence[Item]) -> str:
    return "tool_use" if any(block.get("type") == "tool_use" for block in content) else "end_turn"


Schema = Mapping[str, Any]
WORD = "cachecost"
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "nobody@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
CANDIDATES = (
    WORD,
    *FORMATS.values(),
    *("a1", "A1", "A-1", "a-1", "#000000", "1.0", "1.0.0", "/", "a/b", "+10000000000", "$1"),
)
"""Candidates for a pattern; runs of one letter or digit follow."""
LONGEST_RUN = 40
MOST_STEPS = 10**6
"""Of one match: with N repetitions, a string of length L takes up to L to the power of N + 1."""
MOST_NESTED = 10
"""Characters of a string that is tried on a pattern that repeats a group: it may take 2 to the power of that."""


def strings_of(schema: Schema, wanted: Any) -> Iterator[str]:
    least, most = whole_number(schema.get("minLength")), schema.get("maxLength")
    pattern, longest = None, 0
    if isinstance(text := schema.get("pattern"), str):
        with suppress(re.error):  # one that Python does not support is ignored: the value is a guess anyway
            pattern = re.compile(text)
            repetitions = len(
                re.findall(r"[*+?]|\{\d*,\d*\}", text.replace("(?", "("))
            )  # what is none may count as one
            longest = int(MOST_STEPS ** (1 / (repetitions + 1)))
            longest = min(longest, MOST_NESTED) if re.search(r"\)[*+?{]", text) else longest
    runs = (letter * length for length in range(LONGEST_RUN) for letter in "0aA")
    for tried in chain((FORMATS.get(str(schema.get("format"))), wanted), CANDIDATES, runs):
        if not isinstance(tried, str):
            continue
        fitted = tried.ljust(least, "x")
        fitted = fitted[:most] if isinstance(most, int) else fitted
        if pattern is None or (len(fitted) <= longest and pattern.search(fitted)):
            yield fitted


def whole_number(value: Any) -> int:
    """A limit of a schema that counts something; 0 where it is not a number."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


Wording = Callable[[str], Any]
"""The value of a string property of this name; None: any."""

DEEPEST = 12
MOST_PARTS = 10_000
"""Values, properties and references that are looked at for one value."""
MOST_CHARACTERS = 1_000_000
"""In the strings of a value."""


class MinimalValue:
    """Makes values for `schema`. `wording` chooses strings by the property's name."""

    def __init__(self, schema: Schema, wording: Wording) -> None:
        self._root = schema
        self._wording = wording
        self._parts = MOST_PARTS
        self._characters = MOST_CHARACTERS

    def _count(self, parts: int = 0, characters: int = 0) -> None:
        """Count what a value has. Raises NotAMessage where that is too much."""
        self._parts -= parts
        self._characters -= characters
        if self._parts < 0 or self._characters < 0:
            most = f"{MOST_PARTS:,} parts" if self._parts < 0 else f"{MOST_CHARACTERS:,} characters"
            raise NotAMessage("schema", f"one whose smallest value has at most {most}", "more")

    def value(self, schema: Any, name: str = "", depth: int = 0) -> Any:
        """A value for `schema`, the property `name`; null if it refers to itself endlessly."""
        self._count(parts=1)
        if not isinstance(schema, Mapping) or depth > DEEPEST:
            return None if depth > DEEPEST else WORD
        schema = self._resolve(schema)
        named = {key: schema[key][:1] for key in ("enum", "examples") if isinstance(schema.get(key), list)}
        named |= {key: [schema[key]] for key in ("const", "default") if key in schema}
        for given in chain.from_iterable(named.get(key, ()) for key in ("const", "enum", "default", "examples")):
            self._count(characters=len(given) if isinstance(given, str) else len(json.dumps(given)))
            return given
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            plain = [one for one in branches if isinstance(one, Mapping) and "$ref" not in one]
            branch = plain[0] if plain and depth > DEEPEST // 2 else branches[0]
            return self.value(_merge(rest, self._resolve(branch)), name, depth + 1)
        return self._of_kind(schema, name, depth)

    def _of_kind(self, schema: Schema, name: str, depth: int) -> Any:
        """The type may be missing, several of which one is null, or in capitals, as Gemini writes it."""
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if not isinstance(kind, str):
            is_array = "items" in schema or "prefixItems" in schema
            kind = "object" if "properties" in schema or "required" in schema else "array" if is_array else "string"
        match kind.lower():
            case "object":
                properties = object_or_empty(schema.get("properties"))
                other = schema.get("additionalProperties", {})
                return {key: self.value(properties.get(key, other), key, depth + 1) for key in required_names(schema)}
            case "array":
                return self._array(schema, name, depth)
            case "string":
                self._count(characters=whole_number(schema.get("minLength")))
                return next(strings_of(schema, self._wording(name)), WORD)
            case "integer" | "number" as kind:
                return _number(schema, 1 if kind == "integer" else 0)
            case kind:
                return {"boolean": False, "null": None}.get(kind, WORD)

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        first = list(schema.get("prefixItems") or ())
        rest = schema.get("items", {})
        number = whole_number(schema.get("minItems"))
        self._count(parts=number)
        made = [self.value(one, name, depth + 1) for one in (first + [rest] * number)[:number]]
        if not schema.get("uniqueItems"):
            return made
        named = self._resolve(rest).get("enum")
        if isinstance(named, list) and len(named) >= len(made):
            return named[: len(made)]
        return [one + number if isinstance(one, int) else f"{one}{number}" for number, one in enumerate(made)]

    def _resolve(self, schema: Any) -> Schema:
        for _ in range(DEEPEST):
            if not isinstance(schema, Mapping):
                return {}
            if "$ref" in schema or "allOf" in schema:
                self._count(parts=1 + len(object_or_empty(schema.get("properties"))))
            if isinstance(schema.get("$ref"), str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                reference = schema["$ref"]
                found: Any = self._root
                for step in reference.removeprefix("#").strip("/").split("/"):
                    step = step.replace("~1", "/").replace("~0", "~")
                    found = found.get(step) if step and isinstance(found, Mapping) else found
                schema = _merge(found if isinstance(found, Mapping) else {}, rest)
            elif isinstance(schema.get("allOf"), list):
                parts = schema["allOf"]
                schema = {key: value for key, value in schema.items() if key != "allOf"}
                for part in parts:
                    schema = _merge(schema, self._resolve(part))
            else:
                break
        return object_or_empty(schema)


def required_names(schema: Schema) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def minimal(schema: Schema, wording: Wording = lambda name: None) -> Any:
    """A minimal value for `schema`. Raises NotAMessage where it would be too large."""
    try:
        return MinimalValue(schema, wording).value(schema)
    except RecursionError:
        raise NotAMessage("schema", "one that does not include itself by allOf", "more") from None


def _merge(one: Schema, other: Schema) -> Schema:
    both = {**one, **other}
    for key in ("properties", "$defs"):
        if key in one and key in other:
            both[key] = {**one[key], **other[key]}
    if "required" in one and "required" in other:
        both["required"] = list(dict.fromkeys([*required_names(one), *required_names(other)]))
    return both


def _number(schema: Schema, whole: int) -> int | float:
    """The valid number nearest to 1."""
    step = schema.get("multipleOf") or (1 if whole else 0)
    low, high = _limit(schema, "inimum", step or 0.5), _limit(schema, "aximum", -(step or 0.5))
    number = 1 if low is None else max(1, low)
    number = number if high is None else min(number, high)
    if step:
        number = math.ceil(number / step) * step
        number -= step if high is not None and number > high else 0
    return int(number) if float(number).is_integer() else number


def _limit(schema: Schema, kind: str, inside: float) -> float | None:
    """The least or greatest value; one that is excluded is moved `inside`."""
    prefix = "m" if f"m{kind}" in schema else ""
    excluded = schema.get("exclusiveM" + kind)
    if isinstance(excluded, int | float) and not isinstance(excluded, bool):
        return excluded + inside
    return schema[prefix + kind] if prefix else None
