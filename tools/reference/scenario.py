"""The page of scenario files, made from their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cachecost.scenario.models import schema
from tools.reference.markdown import code, prose, table

Part = Mapping[str, Any]
HEAD = """# Scenario files

A scenario is a YAML file: a question, the conversation it is about, and the strategies that answer it. Unknown keys are
errors; all errors of a file are listed at once, each with its line. An editor that knows YAML schemas completes keys
when the file begins with `# yaml-language-server: $schema=scenario.schema.json`
([the schema](../../scenarios/scenario.schema.json)). `cachecost run --explain-defaults` prints every key with its
default. Numbers may have underscores: `21_000`.
"""
ELSEWHERE = {
    "breakpoints": "a preset's name, or a list of [primitives](strategies.md#primitives)",
    "changes": "a list of [changes](strategies.md#changes)",
    "preset": "[a preset's name](strategies.md#presets)",
    "rules": "mapping of [assumptions](rules.md#assumptions) to values",
}
WHOLE_KEYS = "The file"


def page() -> str:
    """The page: the keys of the file, then those of each mapping in it."""
    whole = schema()
    sections = [_section(WHOLE_KEYS, whole), *(_section(name, _mapping(part)) for name, part in whole["$defs"].items())]
    return "\n".join([HEAD, *sections])


def _mapping(part: Part) -> Part:
    """The part itself, or the one of several ways to write it that has keys with words to them."""
    ways = (part, *part.get("anyOf", ()))
    return next((way for way in ways if "properties" in way and "description" in way), part)


def _section(name: str, part: Part) -> str:
    if "properties" not in part:
        return f"## {name}\n\n{_shape(part).capitalize()}.\n"
    required = part.get("required", ())
    rows = (_row(key, value, key in required) for key, value in part["properties"].items())
    return f"## {name}\n\n{prose(part['description'])}\n\n{table(('key', 'value', 'default', 'what'), rows)}"


def _row(key: str, value: Part, required: bool) -> tuple[str, str, str, str]:
    default = "**required**" if required else code(_default(value))
    return code(key), ELSEWHERE.get(key) or _shape(value), default, prose(value.get("description", ""))


def _default(value: Part) -> str:
    if "default" not in value:
        return ""
    found = value["default"]
    return "null" if found in (None, [], {}) or isinstance(found, dict) else json.dumps(found, ensure_ascii=False)


def _shape(value: Part) -> str:
    """What may stand there, in words; a number's second way to be written (underscores) is not told again."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return code(json.dumps(value["const"]))
    if "enum" in value:
        return ", ".join(code(str(each)) for each in value["enum"])
    if "anyOf" in value:
        return _ways(value["anyOf"])
    return _plain(value)


def _ways(ways: list[Part]) -> str:
    numbers = any(way.get("type") in ("integer", "number") for way in ways)
    parts = [_shape(way) for way in ways if way.get("type") != "null" and not (numbers and "pattern" in way)]
    return " or ".join(dict.fromkeys(parts))


def _plain(value: Part) -> str:
    kind: str = value.get("type", "anything")
    if kind == "array":
        count = f"{value['minItems']} × " if value.get("minItems") == value.get("maxItems", 0) else ""
        return f"list of {count}{_shape(value.get('items', {}))}"
    if kind == "object":
        keys = ", ".join(code(key) for key in value.get("properties", ()))
        return f"mapping with {keys}" if keys else "mapping"
    return {"string": "text", "boolean": "true or false"}.get(kind, kind) + _limits(value)


def _limits(value: Part) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    parts = [f"{word} {value[key]}" for key, word in words.items() if key in value]
    return f" {' '.join(parts)}" if parts else ""
