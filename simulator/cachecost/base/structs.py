"""`@value`: a frozen class with slots, for objects that are created by the ten thousand.

Such classes are written like dataclasses, and `dataclasses.replace`, `fields` and `asdict` take them; but they are
msgspec structs: they cost nothing at start-up, where a dataclass compiles half a millisecond of code, and an object is
created in half the time. A value may inherit from another; its own defaults are then plain values, without `field()`.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from threading import RLock
from typing import Any, TypeVar, cast, dataclass_transform

import msgspec

Kind = TypeVar("Kind")
_replace: Any = msgspec.structs.replace
OWN_OF_CLASS = ("__dict__", "__weakref__")
_MAKING = RLock()
"""Held while the fields of a class are made: `dataclass` changes the class, so two threads would find half of it."""


@dataclass_transform(frozen_default=True)
def value(kind: type[Kind]) -> type[Kind]:
    """A struct that equals another with equal fields."""
    return _struct(kind, eq=True)


@dataclass_transform(frozen_default=True, eq_default=False)
def identity_struct(kind: type[Kind]) -> type[Kind]:
    """A struct that equals only itself."""
    return _struct(kind, eq=False)


def replace(struct: Kind, /, **changes: object) -> Kind:
    """As that of dataclasses and several times as fast, for structs only."""
    changed: Kind = _replace(struct, **changes)
    return changed


class _Fields:
    """`__dataclass_fields__` of a struct, made on first use: those of its base, then those of the class as written."""

    def __init__(self, written: type, base: type | None = None) -> None:
        self._written = written
        self._base = base
        self._made: dict[str, Field[Any]] = {}

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        with _MAKING:
            if not self._made:
                inherited = fields(self._base) if self._base else ()
                self._made = {field.name: field for field in (*inherited, *fields(dataclass(self._written)))}
        return self._made


def _struct(kind: type[Kind], eq: bool) -> type[Kind]:
    if issubclass(kind, msgspec.Struct):
        own = type(kind.__name__, (), {"__annotations__": kind.__annotations__})
        cast("Any", kind).__dataclass_fields__ = _Fields(own, kind.__base__)
        return cast("type[Kind]", kind)
    written = {name: value for name, value in vars(kind).items() if name not in OWN_OF_CLASS}
    defaults = {name: _default(value) for name, value in written.items() if isinstance(value, Field)}
    body = {**written, **defaults, "__annotations__": kind.__annotations__, "__dataclass_fields__": _Fields(kind)}
    metaclass: Any = type(msgspec.Struct)
    return cast("type[Kind]", metaclass(kind.__name__, (msgspec.Struct,), body, frozen=True, eq=eq))


def _default(value: Field[Any]) -> Any:
    if value.default_factory is not MISSING:
        return msgspec.field(default_factory=value.default_factory)
    return msgspec.field(default=value.default)
