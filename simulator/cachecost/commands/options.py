"""Options that several commands share, and what they are made into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from cachecost.commands.choices import NameChoice
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SharedOption
from cachecost.commands.output_paths import PagePath
from cachecost.commands.project_defaults import is_from_file
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.own_rules import NO_OWN_RULES, own_rules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rulefile import hosts
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import AUTO, CALIBRATED, COUNTERS
from cachecost.views.streams import write_utf8

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class SharedOptions:
    """The options of every simulation as the user gave them, and the setup that they describe."""

    rule: tuple[str, ...] = ()
    rules_file: Path | None = None
    prices: Path | None = None
    as_of: date | None = None
    host: str = AUTO_HOST

    @property
    def one_host(self) -> str:
        """The host where there is no call whose own host it could be."""
        return host_of(None, self.host, "")

    @cached_property
    def assumptions(self) -> dict[str, str]:
        """The assumptions of --rule. Raises UsageError."""
        return parse_assumptions(self.rule)

    @cached_property
    def setup(self) -> ReplaySetup:
        """The rules, prices and host of a replay. Raises InputError, UsageError."""
        own = own_rules(self.rules_file) if self.rules_file else NO_OWN_RULES
        assumptions = assumptions_from({**own.assumptions, **self.assumptions})
        return ReplaySetup(RuleBook(assumptions, self.as_of, own), PriceBook.load(self.prices, self.as_of), self.host)


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
    help="Change an assumption about an open rule; `cachecost rules --assumptions` lists them. Repeatable.",
)
rules_option = click.option(
    "--rules",
    "rules_file",
    cls=SharedOption,
    type=A_FILE,
    help="Rules file (TOML) that overrides the built-in rules.",
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
    type=NameChoice((*hosts(), AUTO_HOST)),
    metavar="HOST",
    default=AUTO_HOST,
    show_default=True,
    help="Host; in a log, that of calls of which neither the recording nor an address says it. auto takes that of the "
    f"model's maker. One of {', '.join(hosts())}.",
)


def shared_options(command: Command) -> Command:
    """Add --rule, --rules, --prices, --as-of and --host; the command gets them, checked, as `shared`."""

    @wraps(command)
    def with_shared(
        *args: Any,
        rule: tuple[str, ...],
        rules_file: Path | None,
        prices: Path | None,
        as_of: date | None,
        host: str,
        **own: Any,
    ) -> Any:
        shared = SharedOptions(rule, rules_file, prices, as_of, host)
        assert shared.setup  # errors in these options come before those of the command
        return command(*args, shared=shared, **own)

    decorated: Any = with_shared
    for option in (host_option, as_of_option, prices_option, rules_option, rule_option):
        decorated = option(decorated)
    return cast("Command", decorated)


COUNTERS_HELP = (
    "Source of token counts; auto is ctok for Claude models and native, a maker's own tokenizer, for others, each if "
    "it is installed, else tiktoken."
)


def counter_option(command: Command) -> Command:
    """Add --tokens to a command that has no bills to count by."""
    choice = NameChoice(tuple(COUNTERS))
    return click.option("--tokens", type=choice, default=AUTO, show_default=True, help=COUNTERS_HELP)(command)


def port_option(default: int) -> Callable[[Command], Command]:
    """Add --port to a command that serves on this machine."""
    words = "Port on 127.0.0.1; 0 picks a free one."
    return click.option("--port", type=click.IntRange(0, 65535), default=default, show_default=True, help=words)


def tokens_option(command: Command) -> Command:
    """Add --tokens to a command that takes a log; None: by the log's bills, else as `auto`."""
    choice = NameChoice((CALIBRATED, *COUNTERS, "count_tokens"))
    default = "calibrated is calibrated on the bills of the log.  [default: calibrated if it has bills, else auto]"
    return click.option("--tokens", type=choice, help=f"{COUNTERS_HELP} {default}")(command)


def html_option(text: str) -> Callable[[Command], Command]:
    """Add --html FILE to a command that also writes a page."""
    return click.option("--html", type=PagePath(), help=text)


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
    type=NameChoice(("keep", "digest")),
    default="keep",
    show_default=True,
    help="What to store. keep: the whole conversation; digest: only digests, sizes, token counts and times.",
)
force_option = click.option("--force", is_flag=True, help="Overwrite an existing recording that has other content.")
csv_option = click.option(
    "--csv",
    "csv_file",
    type=PagePath(),
    help="Also write the rows of the table as CSV.",
)
full_option = click.option("--full", is_flag=True, help="Print the whole table, and what is assumed.")


def _as_json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        write_utf8()
    return value


def json_option_of(text: str) -> Callable[[Command], Command]:
    """Add --json to a command; `text` is its help."""
    return click.option("--json", "as_json", is_flag=True, callback=_as_json, help=text)


json_option = json_option_of("Print one JSON object instead of text.")


def write_rows(path: Path | None, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows as CSV if --csv was given, and say so on stderr."""
    if path is not None:
        from cachecost.views.tables.csv_output import write_csv

        write_csv(path, rows)
        print_diagnostic(f"{path} written")


def workers_options(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of where to compute; `default` says how many processes there are without --jobs."""
    backend = click.option(
        "--backend",
        type=NameChoice(["loky", "dask"]),
        default="loky",
        show_default=True,
        help="Where to compute: loky is processes of this machine, dask is a cluster.",
    )
    scheduler = click.option("--scheduler", metavar="ADDRESS", help="Address of the cluster, like tcp://host:8786.")
    timeout = click.option(
        "--worker-timeout",
        type=click.FloatRange(min=1),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a cluster without a worker is waited for.",
    )
    words = f"Processes on this machine.  [default: {default}]"
    jobs = click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=words)
    return lambda command: backend(scheduler(timeout(jobs(command))))


def check_name(option: str, name: str, known: Sequence[str]) -> None:
    """Raises UsageError for a name that is not among the known ones, with the nearest."""
    if name not in known:
        from cachecost.base.errors import nearest

        raise click.UsageError(f"{option}: expected one of {', '.join(known)}; got '{name}'{nearest(name, known)}")


def scenario_options(path: Path, tokens: str | None, shared: SharedOptions) -> SharedOptions:
    """The shared options that hold for a scenario: those of the command line.

    Those of the settings file stand in the scenario, where it states none (`scenario_defaults`). Raises UsageError for
    options that the scenario at `path` sets itself.
    """
    given = {"tokens": tokens, "prices": shared.prices, "as_of": shared.as_of}
    given["host"] = None if shared.host == AUTO_HOST else shared.host
    if names := [name for name, value in given.items() if value is not None and not is_from_file(name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise click.UsageError(f"{options}: not with a scenario; set it in {path}")
    rule = () if is_from_file("rule") else shared.rule
    return SharedOptions(rule, None if is_from_file("rules_file") else shared.rules_file)


def parse_assumptions(rule: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE … as a mapping. Raises UsageError."""
    assumptions = {}
    for item in rule:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--rule {item}: expected NAME=VALUE")
        assumptions[name] = value
    return assumptions
