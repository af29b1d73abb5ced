"""The least value of a JSON schema is one that the schema takes."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from cachecost.live.server.answers.blocks import MOST_CHARACTERS, MOST_PARTS, minimal
from cachecost.prompts.request import NotAMessage

SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, "cachecost"),
    ({"type": "string", "minLength": 12}, "cachecostxxx"),
    ({"type": "string", "maxLength": 3}, "cac"),
    ({"type": "string", "enum": ["b", "a"]}, "b"),
    ({"const": 7}, 7),
    ({"type": "string", "default": "d"}, "d"),
    ({"type": "string", "examples": ["e"]}, "e"),
    ({"type": "string", "pattern": "^[0-9]{5}$"}, "00000"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "AAA"),
    ({"type": "string", "format": "date"}, "2026-01-01"),
    ({"type": "string", "format": "uuid"}, "00000000-0000-4000-8000-000000000000"),
    ({"type": "integer"}, 1),
    ({"type": "integer", "minimum": 4}, 4),
    ({"type": "integer", "exclusiveMinimum": 4}, 5),
    ({"type": "integer", "maximum": 0}, 0),
    ({"type": "integer", "exclusiveMaximum": 1}, 0),
    ({"type": "integer", "minimum": 4, "multipleOf": 5}, 5),
    ({"type": "number", "exclusiveMinimum": 4, "maximum": 4.5}, 4.5),
    ({"type": "boolean"}, False),
    ({"type": "null"}, None),
    ({"type": ["null", "integer"]}, 1),
    ({"type": "array", "items": {"type": "integer"}}, []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}, ["cachecost0", "cachecost1"]),
    ({"type": "array", "prefixItems": [{"const": "x"}, {"type": "integer"}], "minItems": 2}, ["x", 1]),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}),
    (
        {"properties": {"a": {"properties": {"b": {"type": "null"}}, "required": ["b"]}}, "required": ["a"]},
        {"a": {"b": None}},
    ),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "required": ["k"]}, {"k": 1}),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
    ({"oneOf": [{"type": "string", "minLength": 10}, {"type": "null"}]}, "cachecostx"),
    ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "integer"}}}], "type": "object"}, {"a": 1}),
    ({"$ref": "#/$defs/d", "$defs": {"d": {"type": "integer", "minimum": 3}}}, 3),
    ({"$ref": "#/definitions/d~1e", "definitions": {"d/e": {"const": "f"}}}, "f"),
]


@pytest.mark.parametrize(("schema", "value"), SCHEMAS, ids=[str(schema)[:60] for schema, _ in SCHEMAS])
def test_it_is_the_least_and_it_is_valid(schema: dict[str, Any], value: Any) -> None:
    assert minimal(schema) == value
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(value)


def test_a_schema_that_refers_to_itself_ends() -> None:
    leaf = {"type": "null"}
    tree = {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#"}, leaf]}}, "required": ["left"]}
    Draft202012Validator(tree).validate(minimal(tree))


@pytest.mark.parametrize(
    "schema", [{}, True, {"$ref": "#/nowhere"}, {"type": "string", "pattern": "("}, {"type": "file"}]
)
def test_what_cannot_be_read_is_guessed(schema: Any) -> None:
    assert minimal(schema) == "cachecost"


def test_a_property_is_worded_by_its_name() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["path", "n"],
    }
    assert minimal(schema, lambda name: "README.md" if name == "path" else None) == {"path": "README.md", "n": 1}


def names(count: int) -> list[str]:
    return [str(number) for number in range(count)]


TOO_LARGE: list[tuple[str, dict[str, Any], str]] = [
    ("items", {"type": "array", "minItems": 10**9}, "parts"),
    ("more items than a float holds", {"type": "array", "minItems": 10**400}, "parts"),
    ("text", {"type": "string", "minLength": 10**9}, "characters"),
    ("nested", {"type": "array", "minItems": 50, "items": {"$ref": "#"}}, "parts"),
    (
        "required names of required names",
        {
            "required": names(200),
            "additionalProperties": {"required": names(200), "type": "object"},
            "type": "object",
        },
        "parts",
    ),
    ("a constant", {"type": "array", "minItems": 9_000, "items": {"const": "x" * 10_000}}, "characters"),
    (
        "parts of parts",
        {
            "allOf": [{"$ref": "#/$defs/0"}],
            "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)},
        },
        "parts",
    ),
    ("itself", {"allOf": [{"$ref": "#"}]}, "allOf"),
]


@pytest.mark.parametrize(("schema", "word"), [row[1:] for row in TOO_LARGE], ids=[row[0] for row in TOO_LARGE])
def test_a_value_that_would_be_too_large_is_an_error(schema: dict[str, Any], word: str) -> None:
    with pytest.raises(NotAMessage, match=rf"^schema: expected one .*{word}; got"):
        minimal(schema)


def test_the_largest_values_that_are_made() -> None:
    assert len(minimal({"type": "array", "minItems": MOST_PARTS // 2 - 1})) == MOST_PARTS // 2 - 1
    assert len(minimal({"type": "string", "minLength": MOST_CHARACTERS})) == MOST_CHARACTERS


@pytest.mark.parametrize(
    "pattern", ["^(a+)+b$", "^(a|a)*b$", "^a*a*a*a*a*a*a*b$", "^" + "a?" * 30 + "a" * 30 + "c$", "^(a{0,9}){0,9}b$"]
)
def test_a_pattern_that_takes_forever_is_not_tried_on_long_texts(pattern: str) -> None:
    start = process_time()
    assert minimal({"type": "string", "pattern": pattern, "minLength": 9}) == "cachecost"
    assert process_time() - start < 5
