"""The keywords that public functions share: stated once, named in the signature and the help of each function.

Type checkers read them from `**options: Unpack[…]`; `named_keywords` shows the same to `help()` and completion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypedDict, TypeVar, cast, get_args

from cachecost.base.errors import nearest
from cachecost.providers.hosts import AUTO_HOST

Counter = Literal["calibrated", "auto", "tiktoken", "bytes", "ctok", "native"]
COUNTERS: tuple[Counter, ...] = get_args(Counter)


class RuleOptions(TypedDict, total=False):
    """Keywords of every function that evaluates calls."""

    as_of: date | str | None
    host: str
    rules: Mapping[str, object] | None
    prices: str | Path | None


class CountOptions(RuleOptions, total=False):
    """Those of functions that count tokens."""

    tokens: Counter | None


class ModelOptions(CountOptions, total=False):
    """Those of functions that can send calls to another model."""

    model: str | None


DEFAULTS = {"host": AUTO_HOST}
"""The default of every other is None."""
MEANINGS = {
    "as_of": 'the day whose rules and prices hold, a date or "2026-03-07" (None: the day of each call of a log, else '
    "that of the shipped data)",
    "host": "the host of calls that name none",
    "rules": "assumptions by name (`cachecost rules --assumptions`)",
    "prices": "a price file of your own",
    "tokens": "the token counter: calibrated (on the bills), auto, tiktoken, bytes, ctok or native (None: calibrated "
    "where there are bills, else auto)",
    "model": "the model of all calls (None: that of the recording)",
}
Function = TypeVar("Function", bound=Callable[..., Any])


def named_keywords(options: type[Any] = dict) -> Callable[[Function], Function]:
    """Show the keywords of a function's `**options`, a TypedDict, by name, and refuse others with the nearest name."""

    def decorate(function: Function) -> Function:
        whole = signature(function)
        own = [each for each in whole.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=kind.__forward_arg__)
            for name, kind in getattr(options, "__annotations__", {}).items()
        ]
        names = [each.name for each in (*own, *shared) if each.kind is not Parameter.VAR_POSITIONAL]

        @wraps(function)
        def named(*given: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names:
                    words = f"{function.__name__}() got an unexpected keyword argument '{name}'"
                    raise TypeError(words + nearest(name, names))
            return function(*given, **keywords)

        shown: Any = named
        shown.__signature__ = whole.replace(parameters=[*own, *shared])
        meanings = "; ".join(f"`{each.name}`, {MEANINGS[each.name]}" for each in shared)
        keywords = fill(f"Keywords: {meanings}.", 116) if meanings else ""
        shown.__doc__ = f"{getdoc(function)}\n\n{keywords}".strip()
        return cast("Function", shown)

    return decorate
