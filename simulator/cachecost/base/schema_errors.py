"""Turns pydantic's errors about a YAML file into errors with the user's own names and places.

Every error says path, expected, got and the near name; the errors of a union's branches become one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachecost.base.errors import Fault, nearest
from cachecost.base.yaml_text import ExactNumber, PlacedValue, Way

if TYPE_CHECKING:
    from pydantic import ValidationError

Schema = Mapping[str, Any]
Context = Mapping[str, Any]

WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
"""JSON Schema's types, as people call them."""

EXPECTED: dict[str, Callable[[Context], str]] = {
    "string_type": lambda _: "text",
    "int_type": lambda _: "a whole number",
    "float_type": lambda _: "a number",
    "bool_type": lambda _: "true or false",
    "dict_type": lambda _: "a mapping",
    "model_type": lambda _: "a mapping",
    "model_attributes_type": lambda _: "a mapping",
    "dataclass_type": lambda _: "a mapping",
    "list_type": lambda _: "a list",
    "tuple_type": lambda _: "a list",
    "greater_than_equal": lambda context: f"at least {context['ge']}",
    "greater_than": lambda context: f"more than {context['gt']}",
    "less_than_equal": lambda context: f"at most {context['le']}",
    "less_than": lambda context: f"less than {context['lt']}",
    "too_short": lambda context: f"a list of at least {context['min_length']}",
    "too_long": lambda context: f"a list of at most {context['max_length']}",
    "string_too_short": lambda context: "some text",
}


def show_value(value: object) -> str:
    """A value as an error shows it: short, spelled as in YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else f"a list of {len(value)}"
    text = str(value) if isinstance(value, int | ExactNumber) else repr(str(value))
    return text if len(text) <= 60 else text[:59] + "…"


def show_kind(value: object) -> str:
    """As `show_value` for the whole of a file that may be a foreign one, with secrets in it: text is not quoted."""
    return "text" if isinstance(value, str) else show_value(value)


def one_of(names: Sequence[str], got: object) -> str:
    """Says `expected one of a, b; got 'x' (did you mean …?)`."""
    return _expected_text(names, [], got)


def _expected_text(names: Sequence[str], phrases: Sequence[str], got: object) -> str:
    near = nearest(got, names) if isinstance(got, str) else ""
    words = ", ".join(f"'{name}'" if "," in name else name for name in names)
    lead = [f"one of {words}" if len(names) > 1 else words] if names else []
    return f"expected {' or '.join(dict.fromkeys([*lead, *phrases]))}; got {show_value(got)}{near}"


def faults_of(error: ValidationError, placed: PlacedValue, schema: Schema) -> list[Fault]:
    """What `error` says about a file's value: one fault a place, in the user's own names.

    `schema` is the JSON Schema of the model that was validated: it knows the keys there could be.
    """
    found: dict[Way, list[dict[str, Any]]] = {}
    for way, details in _without_rivals(list(_errors(error)), placed.value):
        found.setdefault(way, []).append(details)
    return [placed.fault(way, _sentence(way, errors, schema)) for way, errors in found.items()]


def _errors(error: ValidationError) -> Iterator[dict[str, Any]]:
    """pydantic's errors, those of a model that a validator called in their place."""
    for details in error.errors(include_url=False):
        inner: Any = details.get("ctx", {}).get("error")
        if hasattr(inner, "errors"):  # a ValidationError
            yield from ({**deeper, "loc": (*details["loc"], *deeper["loc"])} for deeper in _errors(inner))
        else:
            yield dict(details)


def _without_rivals(errors: Sequence[Any], value: Any) -> Iterator[tuple[Way, dict[str, Any]]]:
    """(way, error), without those of union branches that have another shape than what was given."""
    walked = [(*_walk(error, value), error) for error in errors]
    deeper = {union for way, union, _ in walked if union is not None and len(way) > len(union)}
    for way, union, error in walked:
        if union not in deeper or len(way) > len(union or ()):
            yield way, error


def _walk(error: Mapping[str, Any], value: Any) -> tuple[Way, Way | None]:
    """Where an error is, in the user's names, and the place of the union it is one branch of."""
    way: Way = ()
    union: Way | None = None
    steps = error["loc"]
    for number, step in enumerate(steps):
        is_key = isinstance(value, dict) and step in value
        if is_key or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            value, way = value[step], (*way, step)
        elif number == len(steps) - 1 and error["type"] == "missing":
            way = (*way, step)
        else:
            union = way if union is None else union
    return way, union


def _sentence(way: Way, errors: Sequence[dict[str, Any]], schema: Schema) -> str:
    first = errors[0]
    if first["type"] == "extra_forbidden":
        return _unknown_key(str(way[-1]), keys_at(schema, way[:-1]))
    if first["type"] == "missing":
        return f"expected {_meaning(schema, way)}; got nothing"
    if first["type"] in ("value_error", "assertion_error"):
        return str(first["ctx"]["error"])
    names = sorted({name for error in errors for name in _literals(error)})
    return _expected_text(names, [_phrase(error) for error in errors if not _literals(error)], first["input"])


def _unknown_key(key: str, known: Sequence[str]) -> str:
    near = nearest(key, known)
    return f"unknown key{near}" if near or not known else f"unknown key; expected one of {', '.join(known)}"


def _literals(error: Mapping[str, Any]) -> list[str]:
    """The values of a literal: pydantic gives them as `'a', 'b' or 3`."""
    if error["type"] != "literal_error":
        return []
    return [name.strip("'") for name in re.findall(r"'[^']*'|\d+", error["ctx"]["expected"])]


def _phrase(error: Mapping[str, Any]) -> str:
    phrase = EXPECTED.get(error["type"])
    return phrase(error.get("ctx", {})) if phrase else str(error["msg"])


def _meaning(schema: Schema, way: Way) -> str:
    """What may stand at `way`, in a few words."""
    words: list[str] = []
    for option in _options(schema, way):
        if "enum" in option:
            words.append("one of " + ", ".join(map(str, option["enum"])))
        elif "const" in option:
            words.append(str(option["const"]))
        else:
            words += [WORDS[name] for name in _types(option) if name in WORDS]
    return " or ".join(dict.fromkeys(words)) or "a value"


def _types(option: Schema) -> list[str]:
    """JSON Schema's types of a value: its `type` is a name or a list of names."""
    found = option.get("type", [])
    return [found] if isinstance(found, str) else list(found)


def keys_at(schema: Schema, way: Way) -> list[str]:
    """The keys a mapping at `way` can have, sorted; [] where any key will do."""
    return sorted({key for option in _options(schema, way) for key in option.get("properties", ())})


def _options(schema: Schema, way: Way) -> list[Schema]:
    """The schemas that may hold at `way`, `$ref` and unions resolved."""
    options = list(_alternatives(schema, schema))
    for step in way:
        inner = [found for option in options if (found := _inside(option, step)) is not None]
        options = [flat for found in inner for flat in _alternatives(found, schema)]
    return options


def _inside(option: Schema, step: str | int) -> Schema | None:
    if isinstance(step, int):
        found = option.get("items")
    else:
        found = option.get("properties", {}).get(step, option.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    if "$ref" in schema:
        yield from _alternatives(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        return
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for branch in branches:
        yield from _alternatives(branch, root)
    if not branches:
        yield schema
