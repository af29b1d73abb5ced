"""Options that several commands share, and what they are made into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from cachecost.base.structs import value
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SharedOption
from cachecost.providers.assumptions import switches_from
from cachecost.providers.own_rules import NO_OWN_RULES, own_rules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook

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


@value
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


@value
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


def parse_date(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    """The value of a day option. Raises BadParameter."""
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        raise click.BadParameter(f"expected a date like 2026-03-07; got '{value}'") from None


A_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

rule_option = click.option(
    "--rule",
    cls=SharedOption,
    multiple=True,
    metavar="NAME=VALUE",
    help="Change an assumption about an open rule; `cachecost rules --switches` lists them. Repeatable.",
)
rules_option = click.option(
    "--rules",
    "rules_file",
    cls=SharedOption,
    type=A_FILE,
    help="Rules file that overrides the built-in rules, as written by `cachecost live --verify-rules`.",
)
prices_option = click.option(
    "--prices",
    cls=SharedOption,
    type=A_FILE,
    help="Price file (TOML) that overrides the public prices.",
)
as_of_option = click.option(
    "--as-of",
    cls=SharedOption,
    metavar="DATE",
    callback=parse_date,
    help="Use the rules and prices of this day (YYYY-MM-DD).  [default: the day of each call, else of the rule data]",
)
host_option = click.option(
    "--host",
    cls=SharedOption,
    type=click.Choice(HOSTS),
    metavar="HOST",
    default="anthropic",
    show_default=True,
    help=f"Host; in a log, that of calls that name none. One of {', '.join(HOSTS)}.",
)


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
    for option in (host_option, as_of_option, prices_option, rules_option, rule_option):
        grounded = option(grounded)
    return cast("Command", grounded)


COUNTERS = ("anchored", "auto", "tiktoken", "bytes", "ctok", "count_tokens")
COUNTED = "Source of token counts; auto is ctok for Claude models if it is installed, else tiktoken."


def port_option(default: int) -> Callable[[Command], Command]:
    """Add --port to a command that serves on this machine."""
    words = "Port on 127.0.0.1; 0 picks a free one."
    return click.option("--port", type=click.IntRange(0, 65535), default=default, show_default=True, help=words)


def tokens_option(command: Command) -> Command:
    """Add --tokens to a command that takes a log; None: by the log's bills, else as `auto`."""
    text = f"{COUNTED} anchored is calibrated on the bills of the log.  [default: anchored if it has bills, else auto]"
    return click.option("--tokens", type=click.Choice(COUNTERS), help=text)(command)


format_option = click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    default="auto",
    show_default=True,
    help="Format of the log; auto detects it, and an unknown name prints the list.",
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="A.B=VALUE", help="Override a value of the scenario; repeatable."
)
content_option = click.option(
    "--content",
    type=click.Choice(("keep", "digest")),
    default="keep",
    show_default=True,
    help="What to store. keep: the whole conversation; digest: only digests, sizes, token counts and times.",
)
force_option = click.option("--force", is_flag=True, help="Overwrite an existing recording that has other content.")
csv_option = click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the rows of the table as CSV.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


def write_rows(path: Path | None, rows: Iterable[Mapping[str, Any]]) -> None:
    """The rows as CSV where that was asked for, and words on stderr that they were written."""
    if path is not None:
        from cachecost.views.tables.csv_output import write_csv

        write_csv(path, rows)
        print_diagnostic(f"{path} written")


def check_scenario(path: Path, tokens: str | None, base: Ground) -> None:
    """Raises UsageError for options that the scenario at `path` says itself."""
    asked = base.asked
    given = {"--tokens": tokens, "--prices": asked.prices, "--as-of": asked.as_of}
    given["--host"] = None if asked.host == "anthropic" else asked.host
    if named := [name for name, value in given.items() if value is not None]:
        raise click.UsageError(f"{', '.join(named)}: not with a scenario; set it in {path}")


def switch_pairs(rule: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE … as a mapping. Raises UsageError."""
    pairs = {}
    for item in rule:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--rule {item}: expected NAME=VALUE")
        pairs[name] = value
    return pairs
