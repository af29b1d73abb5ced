"""Options that stand on every command, and what they are made into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.switches import switches_from

Command = TypeVar("Command", bound=Callable[..., Any])
HOSTS = (
    "anthropic",
    "bedrock",
    "google-cloud",
    "foundry",
    "openrouter",
    "openai",
    "gemini",
    "deepseek",
    "xai",
    "mistral",
    "qwen",
    "vllm",
    "sglang",
)


@dataclass(frozen=True, slots=True)
class Ground:
    """What every simulation stands on: rules, prices and the host of calls that name none."""

    rules: RuleBook
    prices: PriceBook
    host: str


def ground_options(command: Command) -> Command:
    """Add --rule, --prices, --as-of and --host."""
    for option in (
        click.option("--host", type=click.Choice(HOSTS), default="anthropic", help="Host of calls that name none."),
        click.option("--as-of", metavar="DATE", callback=_date, help="Rules and prices of that day (YYYY-MM-DD)."),
        click.option(
            "--prices",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Own prices over public ones.",
        ),
        click.option(
            "--rule", "rule", multiple=True, metavar="NAME=VALUE", help="A rule switch (see: rules --switches)."
        ),
    ):
        command = option(command)
    return command


def ground(rule: tuple[str, ...], prices: Path | None, as_of: date | None, host: str) -> Ground:
    """The rules and prices that the options ask for. Raises InputError."""
    return Ground(RuleBook(switches_from(switch_pairs(rule)), as_of), PriceBook.load(prices, as_of), host)


def switch_pairs(rule: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE … as a mapping. Raises UsageError."""
    pairs = {}
    for item in rule:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--rule {item}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _date(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        raise click.BadParameter(f"expected a date like 2026-03-07; got '{value}'") from None
