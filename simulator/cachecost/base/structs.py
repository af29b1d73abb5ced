"""`@value`: a frozen class with slots, for objects that are created by the ten thousand.

Such classes are written like dataclasses, and `dataclasses.replace`, `fields` and `asdict` take them; but they are
msgspec structs: they cost nothing at start-up, where a dataclass compiles half a millisecond of code, and an object is
created in half the time.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar, cast, dataclass_transform

import msgspec

Kind = TypeVar("Kind")
OWN_OF_CLASS = ("__dict__", "__weakref__")


@dataclass_transform(frozen_default=True)
def value(kind: type[Kind]) -> type[Kind]:
    """A struct that equals another with equal fields."""
    return _struct(kind, eq=True)


@dataclass_transform(frozen_default=True, eq_default=False)
def thing(kind: type[Kind]) -> type[Kind]:
    """A struct that equals only itself."""
    return _struct(kind, eq=False)


class _Fields:
    """`__dataclass_fields__` of a struct: computed on first use from the class as written."""

    def __init__(self, written: type) -> None:
        self._written = written
        self._found: dict[str, Field[Any]] = {}

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        if not self._found:
            self._found = {field.name: field for field in fields(dataclass(self._written))}
        return self._found


def _struct(kind: type[Kind], eq: bool) -> type[Kind]:
    written = {name: value for name, value in vars(kind).items() if name not in OWN_OF_CLASS}
    defaults = {name: _default(value) for name, value in written.items() if isinstance(value, Field)}
    body = {**written, **defaults, "__annotations__": kind.__annotations__, "__dataclass_fields__": _Fields(kind)}
    metaclass: Any = type(msgspec.Struct)
    return cast("type[Kind]", metaclass(kind.__name__, (msgspec.Struct,), body, frozen=True, eq=eq))


def _default(value: Field[Any]) -> Any:
    if value.default_factory is not MISSING:
        return msgspec.field(default_factory=value.default_factory)
    return msgspec.field(default=value.default)
