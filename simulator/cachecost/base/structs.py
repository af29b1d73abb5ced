"""`@value`: a frozen struct of msgspec's, for objects that are created by the ten thousand.

Such classes are written like dataclasses (a default that is made anew each time is `msgspec.field(default_factory=…)`),
and `replace`, `fields` and `asdict` of dataclasses take them; but they cost nothing at start-up, where a dataclass
compiles half a millisecond of code, and an object is created in half the time.
"""

from __future__ import annotations

from dataclasses import Field, field, make_dataclass
from functools import cache
from typing import Any, TypeVar, cast, dataclass_transform

import msgspec

Kind = TypeVar("Kind")
_replace: Any = msgspec.structs.replace
astuple: Any = msgspec.structs.astuple
"""The values of a struct, in the order of its fields."""
OWN_OF_CLASS = ("__dict__", "__weakref__")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
def value(kind: type[Kind]) -> type[Kind]:
    """A struct that equals another with equal fields."""
    return _struct(kind, eq=True)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(msgspec.field,))
def identity_struct(kind: type[Kind]) -> type[Kind]:
    """A struct that equals only itself."""
    return _struct(kind, eq=False)


def replace(struct: Kind, /, **changes: object) -> Kind:
    """As that of dataclasses and several times as fast, for structs only."""
    changed: Kind = _replace(struct, **changes)
    return changed


class _DataclassFields:
    """`__dataclass_fields__` of a struct, made on first use."""

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        return _fields(owner)


@cache
def _fields(kind: Any) -> dict[str, Field[Any]]:
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = len(names) - len(defaults)
    factories = [getattr(default, "factory", None) for default in defaults]
    optional = [
        field(default_factory=factory) if factory else field(default=default)
        for default, factory in zip(defaults, factories, strict=True)
    ]
    written = [*names[:required], *((name, Any, one) for name, one in zip(names[required:], optional, strict=True))]
    made: Any = make_dataclass(kind.__name__, written)
    return dict(made.__dataclass_fields__)


def _struct(kind: type[Kind], eq: bool) -> type[Kind]:
    if isinstance(kind, type(msgspec.Struct)):  # it inherits from a value
        return cast("type[Kind]", kind)
    body = {name: member for name, member in vars(kind).items() if name not in OWN_OF_CLASS}
    body |= {"__annotations__": kind.__annotations__, "__dataclass_fields__": _DataclassFields()}
    metaclass: Any = type(msgspec.Struct)
    made: type[Kind] = metaclass(kind.__name__, (msgspec.Struct,), body, frozen=True, eq=eq)
    return made
