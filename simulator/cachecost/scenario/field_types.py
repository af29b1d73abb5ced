"""Types of the values in a scenario file: how each is checked, and its JSON schema."""

from __future__ import annotations

import re
import shlex
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, PlainValidator, WithJsonSchema
from typing_extensions import TypeAliasType

from cachecost.base.limits import MOST_TOKENS, is_amount
from cachecost.base.schema_errors import show_value
from cachecost.conversations.distributions import SCHEMA as DISTRIBUTION_SCHEMA
from cachecost.conversations.distributions import Distribution, parse_distribution
from cachecost.ledger.results import TOKEN_CLASSES
from cachecost.strategies.derived_models import CONFIG

SHIPPED = "shipped"
TOKEN_SOURCES = Literal["calibrated", "tiktoken", "bytes", "ctok", "native", "count_tokens"]
HUNDRED = Decimal(100)
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
PRICE = re.compile(rf"(?:{'|'.join(TOKEN_CLASSES)})(?: [-+] (?:{'|'.join(TOKEN_CLASSES)}))*")


def _day(value: Any) -> date | None:
    if value is None or value == SHIPPED or isinstance(value, date):
        return None if value == SHIPPED else value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"expected a day like 2026-03-07, or {SHIPPED}; got {show_value(value)}") from None


def _folder_name(value: Any) -> str:
    if isinstance(value, str) and FOLDER_NAME.fullmatch(value):
        return value
    raise ValueError(f"expected letters, digits, '-', '_' and '.' (it names a folder); got {show_value(value)}")


def _dollars(value: Any) -> Decimal:
    if is_amount(value):
        return Decimal(str(value))
    raise ValueError(f"expected dollars, a number from 0; got {show_value(value)}")


def _share(value: Any) -> Decimal:
    """`5%` as 0.05. A bare number is a fault: 5 could mean 5 % or 500 %."""
    match = PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match:
        return Decimal(match[1]) / HUNDRED
    raise ValueError(f"expected a percentage like 5%; got {show_value(value)}")


def _cache_hit_rate(value: Any) -> Decimal:
    share = _share(value)
    if share > 1:
        raise ValueError(f"expected at most 100%; got {show_value(value)}")
    return share


def _price(value: Any) -> str:
    if isinstance(value, str) and PRICE.fullmatch(value):
        return value
    classes = ", ".join(TOKEN_CLASSES)
    raise ValueError(f"expected prices of {classes}, joined by ' - ' or ' + '; got {show_value(value)}")


def _command(value: Any) -> tuple[str, ...]:
    """The words of a command: of a text as a POSIX shell splits it."""
    words = _split(value) if isinstance(value, str) else value
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words) and words[0]:
        return tuple(words)
    raise ValueError(f"expected a command, as text or as a list of words; got {show_value(value)}")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quote or an escape that does not end
        raise ValueError(f"expected a command as a shell splits it; got {show_value(text)}: {error}") from None


Day = Annotated[
    date | None,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"const": SHIPPED}, {"type": "string", "format": "date"}, {"type": "null"}]}),
]
FolderName = Annotated[
    str, BeforeValidator(_folder_name), WithJsonSchema({"type": "string", "pattern": f"^{FOLDER_NAME.pattern}$"})
]
Dollars = Annotated[Decimal, BeforeValidator(_dollars), WithJsonSchema({"type": "number", "minimum": 0})]
Share = Annotated[
    Decimal, BeforeValidator(_share), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
HitRate = Annotated[
    Decimal, BeforeValidator(_cache_hit_rate), WithJsonSchema({"type": "string", "pattern": f"^{PERCENT.pattern}$"})
]
PriceSum = Annotated[str, BeforeValidator(_price), WithJsonSchema({"type": "string", "pattern": f"^{PRICE.pattern}$"})]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Command = Annotated[
    tuple[str, ...],
    PlainValidator(_command),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Spread = TypeAliasType(
    "Spread", Annotated[Distribution, PlainValidator(parse_distribution), WithJsonSchema(DISTRIBUTION_SCHEMA)]
)
RULES = "assumptions of the rulebook"
Rules = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "title": RULES})]


class Strict(BaseModel):
    """A mapping of a file: unknown keys are errors, and no value is converted."""

    model_config = CONFIG


def exactly_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        known = f"{', '.join(names[:-1])} or {names[-1]}"
        none = "neither" if len(names) == 2 else "none"
        raise ValueError(f"expected {known}; got {' and '.join(given) or none}")
