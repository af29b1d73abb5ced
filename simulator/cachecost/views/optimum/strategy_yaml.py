"""A rule as a strategy in a scenario's YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from cachecost.analysis.optimum.online_rule import OnlineRule
from cachecost.strategies.changes.keepalive import KeepAlive
from cachecost.strategies.placements import NAMES, SHORTHANDS, Primitive

NAME = "optimized"
ALWAYS = ("every_s", "times")
"""Options that are written even where they are the defaults."""


def strategy_yaml(rule: OnlineRule, comments: Sequence[str] = ()) -> str:
    """The text of a strategy file, which is also an item of `strategies:` in a scenario. `comments` come first."""
    placement = rule.placement
    lines = [*(f"# {comment}".rstrip() for comment in comments), f"name: {NAME}"]
    listed = [f"  - {_item(_name(one), _options(one))}" for one in placement.primitives]
    lines += ["breakpoints:", *listed] if listed else ["breakpoints: []"]
    lines.append(f"ttl: {placement.ttl}")
    if rule.keep_alive is not None:
        lines += ["changes:", f"  - {_item('keep_alive', _options(rule.keep_alive))}"]
    return "\n".join(lines) + "\n"


def _name(primitive: Primitive) -> str:
    """Its name in a scenario: the shorthand, if that stands for its options."""
    bare = type(primitive)(**{name: value for name, value in _given(primitive) if name != "ttl"})
    return next((name for name, one in SHORTHANDS.items() if one == bare), NAMES[type(primitive)])


def _options(one: Primitive | KeepAlive) -> dict[str, Any]:
    """The options that are not the defaults, without those that a shorthand stands for."""
    is_short = isinstance(one, Primitive) and _name(one) in SHORTHANDS
    return {name: value for name, value in _given(one) if not is_short or name == "ttl"}


def _given(one: Primitive | KeepAlive) -> Iterator[tuple[str, Any]]:
    for option in fields(one):
        if (value := getattr(one, option.name)) != option.default or option.name in ALWAYS:
            yield option.name, value


def _item(name: str, options: dict[str, Any]) -> str:
    if not options:
        return name
    return f"{name}: {{{', '.join(f'{option}: {_scalar(value)}' for option, value in options.items())}}}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
