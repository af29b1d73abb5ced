"""Options that stand on every command, and what they are made into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.facts import fact
from cachecost.providers.own_rules import NO_OWN_RULES, own_rules
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
    "minimax",
    "vllm",
    "sglang",
)


@fact
class Ground:
    """What every simulation stands on: rules, prices and the host of calls that name none.

    `asked` are the options as they were given.
    """

    rules: RuleBook
    prices: PriceBook
    host: str
    asked: Asked

    @property
    def readings(self) -> dict[str, str]:
        """The readings that were asked for by --rule."""
        return switch_pairs(self.asked.rule)

    def reading(self, name: str, value: object) -> Ground:
        """The same, under another reading of a switch. Raises InputError."""
        return replace(self.asked, rule=(*self.asked.rule, f"{name}={value}")).ground()

    def on(self, day: date) -> Ground:
        """The same, by the rules and prices of `day`."""
        return replace(self.asked, as_of=day).ground()


@fact
class Asked:
    """The options that stand on every command."""

    rule: tuple[str, ...] = ()
    rules_file: Path | None = None
    prices: Path | None = None
    as_of: date | None = None
    host: str = "anthropic"

    def ground(self) -> Ground:
        """The rules and prices that the options ask for. Raises InputError."""
        own = own_rules(self.rules_file) if self.rules_file else NO_OWN_RULES
        switches = switches_from({**own.switches, **switch_pairs(self.rule)})
        return Ground(RuleBook(switches, self.as_of, own), PriceBook.load(self.prices, self.as_of), self.host, self)


def ground_options(command: Command) -> Command:
    """Add --rule, --rules, --prices, --as-of and --host; the command gets what they come to as `base`."""

    @wraps(command)
    def on_ground(
        *args: Any,
        rule: tuple[str, ...],
        rules_file: Path | None,
        prices: Path | None,
        as_of: date | None,
        host: str,
        **told: Any,
    ) -> Any:
        return command(*args, base=Asked(rule, rules_file, prices, as_of, host).ground(), **told)

    grounded: Any = on_ground
    for option in (
        click.option("--host", type=click.Choice(HOSTS), default="anthropic", help="The host where a call names none."),
        click.option("--as-of", metavar="DATE", callback=_date, help="Rules and prices of that day (YYYY-MM-DD)."),
        click.option(
            "--prices",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Own prices over public ones.",
        ),
        click.option(
            "--rules",
            "rules_file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="Own rules over the shipped ones, as live --verify-rules writes them.",
        ),
        click.option(
            "--rule", "rule", multiple=True, metavar="NAME=VALUE", help="A rule switch (see: rules --switches)."
        ),
    ):
        grounded = option(grounded)
    return cast("Command", grounded)


COUNTERS = ("anchored", "auto", "tiktoken", "bytes", "ctok", "count_tokens")
COUNTED = "Where token counts come from; auto: ctok for Claude's models where it is installed, else tiktoken."


def tokens_option(command: Command) -> Command:
    """Add --tokens to a command that takes a log; None: by the log's bills, else as `auto`."""
    words = f"{COUNTED}  [default: anchored where the log has bills, else auto]"
    return click.option("--tokens", type=click.Choice(COUNTERS), help=words)(command)


force_option = click.option("--force", is_flag=True, help="Overwrite a recording that is there with other content.")
csv_option = click.option(
    "--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows of the table there, too."
)


def write_rows(path: Path | None, rows: Iterable[Mapping[str, Any]]) -> None:
    """The rows as CSV where that was asked for, and words on stderr that they were written."""
    if path is not None:
        from cachecost.views.csv_rows import write_csv

        write_csv(path, rows)
        print_diagnostic(f"{path} written")


def check_scenario(path: Path, tokens: str | None, base: Ground) -> None:
    """Raises UsageError for options that the scenario at `path` says itself."""
    asked = base.asked
    given = {"--tokens": tokens, "--prices": asked.prices, "--as-of": asked.as_of}
    given["--host"] = None if asked.host == "anthropic" else asked.host
    if named := [name for name, value in given.items() if value is not None]:
        raise click.UsageError(f"{', '.join(named)}: {path} is a scenario and says so itself; change it there")


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
