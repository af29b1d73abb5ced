"""Things that a scenario chooses by name, with options: primitives of breakpoints, changes of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, create_model
from pydantic_core import PydanticUndefined

from cachecost.base.schema_errors import one_of, show_value
from cachecost.strategies.derived_models import CONFIG, derive_model

Chosen = TypeVar("Chosen")


class OptionRow(NamedTuple):
    """A row of `cachecost strategies --breakpoints` or `--changes`."""

    name: str
    what: str
    options: str


@dataclass(frozen=True, eq=False)
class OptionTable(Generic[Chosen]):
    """Frozen dataclasses by name, and `shorthands`: names for one with its options, that take those in `kept` only."""

    what: str
    types: Mapping[str, type[Chosen]]
    shorthands: Mapping[str, Chosen]
    kept: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return sorted({*self.types, *self.shorthands})

    def parse(self, value: Any, whole: type[Chosen]) -> Chosen:
        """`name` or `{name: {option: value}}`. Raises ValueError."""
        if isinstance(value, whole):
            return value
        entry = {value: None} if isinstance(value, str) else value
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise ValueError(f"expected the name of {self.what}, or one name with its options; got {show_value(value)}")
        name = next(iter(entry))
        if name not in self.names:
            raise ValueError(one_of(self.names, name))
        options = getattr(self._with_options(name).model_validate(dict(entry)), name)
        given = options.model_dump(exclude_unset=True) if options else {}
        try:
            return replace(self.shorthands[name], **given) if name in self.shorthands else self.types[name](**given)  # type: ignore[type-var]
        except ValueError as error:
            raise ValueError(f"{name}.{error}") from None

    def list_options(self) -> list[OptionRow]:
        """Each name with the first sentence of what it does, and its options with their defaults."""
        return [
            OptionRow(name, _first_sentence(self.options(name)), _defaults(self.options(name))) for name in self.names
        ]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what `parse` takes."""
        options = {name: self.options(name).model_json_schema() for name in self.names}
        entry = {"type": "object", "properties": options, "additionalProperties": False}
        return {"anyOf": [{"enum": self.names}, {**entry, "minProperties": 1, "maxProperties": 1}]}

    @cache  # noqa: B019 - tables live as long as the program
    def options(self, name: str) -> type[BaseModel]:
        """The options of one, as a model."""
        chosen: Any = type(self.shorthands[name]) if name in self.shorthands else self.types[name]
        return derive_model(chosen, name, only=None if name in self.types else self.kept)

    @cache  # noqa: B019
    def _with_options(self, name: str) -> type[BaseModel]:
        entry: dict[str, Any] = {name: (self.options(name) | None, None)}
        return create_model(name, __config__=CONFIG, **entry)


def _first_sentence(model: type[BaseModel]) -> str:
    text = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def _defaults(model: type[BaseModel]) -> str:
    return ", ".join(f"{name} {_format_default(field.default)}" for name, field in model.model_fields.items())


def _format_default(value: object) -> str:
    """A default as YAML would have it; what has none, or None, is left out by whoever does not say it."""
    if value is None or value is PydanticUndefined:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)
