"""A scenario's schema, as text for editors and for people. Both are document from the models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from cachecost.base.schema_errors import Schema
from cachecost.providers.listing import AssumptionRow, assumption_rows
from cachecost.scenario.field_types import RULES, SHIPPED
from cachecost.scenario.models import WITHOUT_COMMAND, Scenario
from cachecost.strategies.derived_models import DerivedModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NUMBERS = {"integer": "^-?[0-9][0-9_]*$", "number": "^-?[0-9][0-9_]*(\\.[0-9_]+)?$"}
"""Editors read 21_000 as text, so a number's schema allows such text too."""


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file (draft 2020-12)."""
    document = {"$schema": DIALECT, **Scenario.model_json_schema()}
    return _for_editors(document)  # type: ignore[no-any-return]


def schema_text() -> str:
    """The text of `scenarios/scenario.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _for_editors(part: Any) -> Any:
    """`part` with underscored numbers allowed, the assumptions of the rulebook listed, and no document-up titles."""
    if isinstance(part, list):
        return [_for_editors(item) for item in part]
    if isinstance(part, float) and part.is_integer():  # which of both pydantic writes depends on its version
        return int(part)
    if not isinstance(part, dict):
        return part
    inner = {key: _for_editors(value) for key, value in part.items()}
    title = inner.pop("title") if isinstance(inner.get("title"), str) else ""
    if title == RULES:
        return {**inner, "properties": _assumptions(), "additionalProperties": False}
    kind = inner.get("type")
    is_open = "const" not in inner and "enum" not in inner
    return _allow_underscores(inner) if isinstance(kind, str) and kind in NUMBERS and is_open else inner


def _allow_underscores(number: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {key: number.pop(key) for key in ("description", "default") if key in number}
    return {"anyOf": [number, {"type": "string", "pattern": NUMBERS[number["type"]]}], **about}


def _assumptions() -> Schema:
    return {row.name: {**_values(row), "description": row.about} for row in assumption_rows()}


def _values(row: AssumptionRow) -> Schema:
    if row.number is not None:
        return {"type": "number"}
    truths = {"true": True, "false": False}
    return {"enum": [truths.get(reading.value, reading.value) for reading in row.readings]}


def explain_defaults() -> str:
    """Every key of a scenario with its meaning and, as YAML, its default; comments where there is none."""
    title = "# Every key of a scenario with its default. Keys that are commented out have no default, or are off.\n"
    return "\n".join([title, *_explain_fields(Scenario)]) + "\n"


def _explain_fields(model: type[BaseModel]) -> Iterator[str]:
    """The fields of a mapping, each below its docstring."""
    for name, field in model.model_fields.items():
        yield f"# {' '.join((field.description or '').split())}"
        inner, written = _inner_model(field.annotation, *field.metadata), field.alias or name
        must_be_given = field.is_required() or (model is Scenario and name in WITHOUT_COMMAND)
        default = None if must_be_given else field.get_default(call_default_factory=True)
        if inner and (isinstance(default, BaseModel) or is_dataclass(default)):
            yield f"{written}:"
            yield from (f"  {line}" for line in _explain_fields(inner))
        else:
            shipped = model is Scenario and name == "as_of"
            value = SHIPPED if shipped else json.dumps(default, ensure_ascii=False, default=str)
            yield f"# {written}:  must be given" if must_be_given else f"{written}: {value}"
            yield from (f"#   {line}" for line in (_explain_fields(inner) if inner else ()))


def _inner_model(*annotations: Any) -> type[BaseModel] | None:
    """The model that a field's value, or each item of it, is document of."""
    for annotation in annotations:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
        found = annotation.model if isinstance(annotation, DerivedModel) else _inner_model(*get_args(annotation))
        if found:
            return found
    return None
