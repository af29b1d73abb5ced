"""pydantic models derived from dataclasses: an option's type, default and description are written once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import core_schema, to_jsonable_python

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def derive_model(
    of: type, name: str, types: Mapping[Any, Any] | None = None, only: Collection[str] | None = None
) -> type[BaseModel]:
    """The model of a mapping whose keys are the fields of the dataclass `of`, or those of them in `only`.

    The docstring below a field is its description. `types` replaces the type of a field, by the field's name or by the
    type itself. A name that pydantic uses, such as `schema`, becomes an alias.
    """
    hints, docs, replaced = get_type_hints(of), attribute_docs(of), types or {}
    options: dict[str, Any] = {}
    for option in fields(of):
        if only is None or option.name in only:
            taken = hasattr(BaseModel, option.name)
            kind = replaced.get(option.name, replaced.get(hints[option.name], hints[option.name]))
            options[f"{option.name}_" if taken else option.name] = (
                kind,
                Field(
                    default=... if option.default is MISSING else option.default,
                    alias=option.name if taken else None,
                    description=docs.get(option.name),
                ),
            )
    return create_model(name, __config__=CONFIG, __doc__=cleandoc(of.__doc__ or ""), **options)


def attribute_docs(of: type) -> dict[str, str]:
    """The docstring below each field of a class; none where the source is not at hand."""
    try:
        body = ast.parse(dedent(getsource(of))).body[0]
    except OSError:
        return {}
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: cleandoc(doc.value.value)
        for field, doc in pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str)
    }


def given_options(model: BaseModel) -> dict[str, Any]:
    """The options that are set, by the names of the dataclass's fields."""
    named = {name: field.alias or name for name, field in type(model).model_fields.items()}
    return {option: getattr(model, name) for name, option in named.items() if name in model.model_fields_set}


class DerivedModel:
    """Metadata of an `Annotated` type: the value is written as a mapping of the dataclass's fields.

    `make` turns the options that are set into the value; left out, it is the dataclass. `types` and `only` are those
    of `derive_model`.
    """

    def __init__(
        self,
        of: type,
        name: str,
        types: Mapping[Any, Any] | None = None,
        only: Collection[str] | None = None,
        make: Callable[..., Any] | None = None,
    ) -> None:
        self.model = derive_model(of, name, types, only)
        self._make = make or of

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda model: self._make(**given_options(model)),
            handler.generate_schema(self.model),
            serialization=core_schema.plain_serializer_function_ser_schema(to_jsonable_python),
        )
