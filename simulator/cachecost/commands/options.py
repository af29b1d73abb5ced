"""What several commands share: options, LOG arguments, and the progress bar on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, cached_property, wraps
from itertools import accumulate
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import ExitCode, Fault, nearest
from cachecost.base.formatting import count_text
from cachecost.base.times import seconds
from cachecost.commands.catalogue import is_from_file
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import PagePath, SharedOption
from cachecost.conversations.input_files import WATCH, input_path, is_url
from cachecost.conversations.logs import Logs
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of, hosts
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, RuleBook, own_rules
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import AUTO, CALIBRATED, COUNTERS
from cachecost.views.streams import write_utf8

if TYPE_CHECKING:
    from rich.progress import Progress, Task

    from cachecost.sweep.workers import Workers

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
BYTES = "bytes"
MEGABYTE = 1_000_000
Item = TypeVar("Item")
SECONDS_BEFORE_SHOWN = 1.0
SECONDS_BETWEEN_UPDATES = 0.1
CALL = "call"


class NameChoice(click.Choice[str]):
    """One of several names. The error for another value names the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What was expected and what came, without the option, which click names."""
        return f"expected one of {', '.join(self.choices)}; got '{value}'{nearest(str(value), self.choices)}"


def option(names: str, text: str, kind: Any = None, default: Any = None, **more: Any) -> Decorator:
    """click's option; `names` are separated by blanks, and a default is shown unless `show_default` says otherwise."""
    if default is not None:
        more = {"show_default": True, "default": default, **more}
    return click.option(*names.split(" "), type=kind, help=text, **more)


def fold_options(name: str, make: Callable[..., Any], fields: Sequence[str], *options: Decorator) -> Decorator:
    """Add `options` to a command, which gets the values of these `fields` as one argument, `name`. What `make` raises
    comes before the errors of the command."""

    def fold(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_options(*args: Any, **values: Any) -> Any:
            made = make(*(values.pop(field) for field in fields))
            return command(*args, **{name: made}, **values)

        decorated: Callable[..., Any] = with_options
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return fold


skip_option = option("--skip may_skip", "Skip files that cannot be read; without it the exit code is 2.", is_flag=True)


class LogPath(click.Path):
    """A file or folder on a disk, or the URL of one, that exists."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises NotInstalled and InputError for a URL, BadParameter for a path."""
        return input_path(value) if isinstance(value, str) and is_url(value) else super().convert(value, param, ctx)


class CommandLogs(Logs):
    """The logs that a command is given, and whether files that cannot be read may be skipped (--skip)."""

    def __init__(self, paths: Sequence[Path], format_: str, may_skip: bool) -> None:
        super().__init__(paths, format_, print_diagnostic)
        self.may_skip = may_skip

    def exit_code(self, code: int = ExitCode.OK) -> int:
        """The exit code of a command that ended with `code`; says last how many files were skipped."""
        return code_with_skipped(self.skipped, self.may_skip, code)


def logs_argument(metavar: str = "LOG...") -> Decorator:
    """Add the argument `logs`: one or more files or folders."""
    return click.argument("logs", metavar=metavar, nargs=-1, required=True, type=LogPath())


def logs_options(metavar: str = "LOG...") -> Decorator:
    """Add LOG, --format and --skip; the command gets them as `logs`, CommandLogs."""
    fields = ("logs", "format_", "may_skip")
    return fold_options("logs", CommandLogs, fields, logs_argument(metavar), format_option, skip_option)


def scenario_among(paths: Sequence[Path]) -> Path | None:
    """The scenario, where that is the argument. Raises UsageError for one among other paths."""
    scenarios = [path for path in paths if is_yaml(path) and not path.is_dir()]
    if scenarios and len(paths) > 1:
        raise click.UsageError(f"{scenarios[0]}: expected one SCENARIO.yaml alone, or logs; got {len(paths)} paths")
    return scenarios[0] if scenarios else None


def code_with_skipped(skipped: Sequence[Fault], may_skip: bool, code: int) -> int:
    """The exit code of a command that ended with `code` and skipped files, in whole or in part; says how many."""
    if not skipped:
        return code
    files = count_text(len({fault.file for fault in skipped}), "file")
    print_diagnostic(f"{files} skipped{'' if may_skip else ': --skip accepts that'}")
    return code if may_skip else ExitCode.INVALID_INPUT


def amount_text(done: float, total: float | None, unit: str) -> str:
    """`120 of 480 calls`, `1.5 of 3.0 MB`; without a total what is done. `unit` is a noun in the singular or none."""
    if not unit:
        return ""
    if unit == BYTES:
        of = "" if total is None else f" of {total / MEGABYTE:,.1f}"
        return f"{done / MEGABYTE:,.1f}{of} MB"
    return count_text(int(done), unit) if total is None else f"{done:,.0f} of {count_text(int(total), unit)}"


def time_text(left: float | None, elapsed: float | None) -> str:
    """The time left where it is known, else how long it has been."""
    if left is not None:
        return f"{timedelta(seconds=round(left))} left"
    return f"{timedelta(seconds=int(elapsed or 0))} so far"


@cache
def columns() -> tuple[Any, ...]:
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.text import Text

    class AmountColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(amount_text(task.completed, task.total, task.fields["unit"]))

    class TimeColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(time_text(task.time_remaining if task.total else None, task.elapsed))

    return TextColumn("{task.description}", markup=False), BarColumn(), AmountColumn(), TimeColumn()


@dataclass(frozen=True)
class SharedOptions:
    """The options of every simulation as the user gave them, and the setup that they describe."""

    rule: tuple[str, ...] = ()
    rules_file: Path | None = None
    prices: Path | None = None
    as_of: date | None = None
    host: str = AUTO_HOST

    @classmethod
    def checked(cls, *values: Any) -> SharedOptions:
        """The options, after the files of rules and prices were read. Raises InputError, UsageError."""
        shared = cls(*values)
        assert shared.setup
        return shared

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


def parse_seconds(value: str, expected: str, zone: tzinfo = UTC) -> float:
    """A time in seconds since the epoch. Raises BadParameter, which says what was `expected`."""
    try:
        return seconds(value, zone)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"expected {expected}; got '{value}'") from None


def parse_date(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    """The value of a day option. Raises BadParameter."""
    if value is None:
        return None
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        raise click.BadParameter(f"expected a date like 2026-03-07; got '{value}'") from None


A_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

rule_option = option(
    "--rule",
    "Change an assumption about an open rule; `cachecost rules --assumptions` lists them. Repeatable.",
    cls=SharedOption,
    multiple=True,
    metavar="NAME=VALUE",
)
rules_option = option(
    "--rules rules_file", "Rules file (TOML) that overrides the built-in rules.", A_FILE, cls=SharedOption
)
prices_option = option("--prices", "Price file (TOML) that overrides the public prices.", A_FILE, cls=SharedOption)
as_of_option = option(
    "--as-of",
    "Use the rules and prices of this day (YYYY-MM-DD).  [default: the day of each call, else of the rule data]",
    cls=SharedOption,
    metavar="DATE",
    callback=parse_date,
)
host_option = option(
    "--host",
    "Host; in a log, that of calls of which neither the recording nor an address says it. auto takes that of the "
    f"model's maker. One of {', '.join(hosts())}.",
    NameChoice((*hosts(), AUTO_HOST)),
    AUTO_HOST,
    cls=SharedOption,
    metavar="HOST",
)


shared_options = fold_options(
    "shared",
    SharedOptions.checked,
    ("rule", "rules_file", "prices", "as_of", "host"),
    *(rule_option, rules_option, prices_option, as_of_option, host_option),
)
"""Adds --rule, --rules, --prices, --as-of and --host; the command gets them, checked, as `shared`, SharedOptions."""

COUNTERS_HELP = (
    "Source of token counts; auto is ctok for Claude models and native, a maker's own tokenizer, for others, each if "
    "it is installed, else tiktoken."
)
counter_option = option("--tokens", COUNTERS_HELP, NameChoice(tuple(COUNTERS)), AUTO)
"""--tokens of a command that has no bills to count by."""
tokens_option = option(
    "--tokens",
    f"{COUNTERS_HELP} calibrated is calibrated on the bills of the log.  [default: calibrated if it has bills, "
    "else auto]",
    NameChoice((CALIBRATED, *COUNTERS, "count_tokens")),
)
"""--tokens of a command that takes a log; None: by the log's bills, else as `auto`."""


def port_option(default: int) -> Decorator:
    return option("--port", "Port on 127.0.0.1; 0 picks a free one.", click.IntRange(0, 65535), default)


def html_option(text: str) -> Decorator:
    return option("--html", text, PagePath())


format_option = option(
    "--format format_",
    "Format of the log; auto detects it, and an unknown name prints the list.",
    default="auto",
    metavar="FORMAT",
)
set_option = option("--set sets", "Override a value of the scenario; repeatable.", multiple=True, metavar="A.B=VALUE")
content_option = option(
    "--content",
    "What to store. keep: the whole conversation; digest: only digests, sizes, token counts and times.",
    NameChoice(("keep", "digest")),
    "keep",
)
force_option = option("--force", "Overwrite an existing recording that has other content.", is_flag=True)
csv_option = option("--csv csv_file", "Also write the rows of the table as CSV.", PagePath())
full_option = option("--full", "Print the whole table, and what is assumed.", is_flag=True)


def json_option_of(text: str) -> Decorator:
    """Add --json to a command; `text` is its help."""

    def use_utf8(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        if value:
            write_utf8()
        return value

    return option("--json as_json", text, is_flag=True, callback=use_utf8)


json_option = json_option_of("Print one JSON object instead of text.")


def write_rows(path: Path | None, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows as CSV if --csv was given, and say so on stderr."""
    if path is not None:
        from cachecost.views.tables.output import write_csv

        write_csv(path, rows)
        print_diagnostic(f"{path} written")


def write_html(path: Path, page: str) -> None:
    """Write a page, and say so on stderr."""
    from cachecost.base.atomic_files import write_whole

    write_whole(path, page.encode("utf-8"))
    print_diagnostic(f"{path} written")


def print_json(document: Any, indent: int | None = None, ensure_ascii: bool = False) -> None:
    """Print one JSON object to stdout, in one line without `indent`."""
    sys.stdout.write(json.dumps(document, indent=indent, ensure_ascii=ensure_ascii) + "\n")


def option_words(values: Mapping[str, object]) -> list[str]:
    """The options that have a value, as words of a command line."""
    return [word for name, value in values.items() if value for word in (name, str(value))]


@dataclass(frozen=True)
class WorkerOptions:
    """Where to compute: `backend` with a cluster's address, or `jobs` processes (None: the command's default)."""

    backend: str
    scheduler: str | None
    timeout_s: float
    jobs: int | None

    def workers(self, default_jobs: int) -> Workers:
        """Raises UsageError, InputError and NotInstalled."""
        from cachecost.sweep.workers import Workers

        workers = Workers(self.backend, self.jobs or default_jobs, self.scheduler, self.timeout_s)
        workers.check()
        return workers


def workers_options(default: str) -> Decorator:
    """Add the options of where to compute, as `computing`, WorkerOptions; `default` is how many processes there are."""
    backend = option(
        "--backend",
        "Where to compute: loky is processes of this machine, dask is a cluster.",
        NameChoice(["loky", "dask"]),
        "loky",
    )
    scheduler = option("--scheduler", "Address of the cluster, like tcp://host:8786.", metavar="ADDRESS")
    timeout = option(
        "--worker-timeout",
        "How long a cluster without a worker is waited for.",
        click.FloatRange(min=1),
        60.0,
        metavar="SECONDS",
    )
    jobs = option("--jobs", f"Processes on this machine.  [default: {default}]", click.IntRange(min=1), metavar="N")
    fields = ("backend", "scheduler", "worker_timeout", "jobs")
    return fold_options("computing", WorkerOptions, fields, backend, scheduler, timeout, jobs)


def check_name(option: str, name: str, known: Sequence[str]) -> None:
    """Raises UsageError for a name that is not among the known ones, with the nearest."""
    if name not in known:
        raise click.UsageError(f"{option}: expected one of {', '.join(known)}; got '{name}'{nearest(name, known)}")


def scenario_options(path: Path, tokens: str | None, shared: SharedOptions) -> SharedOptions:
    """The shared options that hold for a scenario: those of the command line, as those of the settings file stand in
    the scenario (`scenario_defaults`). Raises UsageError for options that the scenario at `path` sets itself."""
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


class WorkBar:
    """The bar of a command; without `display` it shows nothing. A phase whose end is not known, or that goes on after
    all that was expected is done, shows what is done and for how long: never a full bar."""

    def __init__(self, display: Progress | None = None) -> None:
        self._display = display
        self._timer = Timer(SECONDS_BEFORE_SHOWN, display.start) if display else None
        self._task = display.add_task("working", total=None, unit="") if display else None
        self._done, self._next = 0, 0.0
        self._total: int | None = None

    @property
    def is_shown(self) -> bool:
        return self._display is not None

    def show_later(self) -> None:
        """Show the bar after a second."""
        if self._timer:
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        if self._display and self._timer:
            self._timer.cancel()
            self._timer.join()
            self._display.stop()
            self._display = None

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        """Go on to the next phase, of `total` units (None: nobody knows)."""
        if self._display and self._task is not None:
            self._done, self._total, self._next = 0, total, 0.0
            self._display.tasks[0].total = total or None
            self._display.reset(self._task, description=what, unit=unit)

    def advance(self, done: int) -> None:
        self.set_done(self._done + done)

    def expect(self, left: int) -> None:
        """So many units of the phase are still to come."""
        self.set_done(self._done, total=self._done + left)

    def set_done(self, done: int, what: str | None = None, total: int | None = None) -> None:
        """So many units of the phase are done; `what` and `total` where these have changed."""
        self._done, self._total = done, total or self._total
        now = time.monotonic()
        if self._display and self._task is not None and now >= self._next:
            self._next = now + SECONDS_BETWEEN_UPDATES
            self._display.tasks[0].total = self._total if self._total and done < self._total else None
            self._display.update(self._task, completed=done, description=what)

    def count(self, items: Iterable[Item]) -> Iterable[Item]:
        """The items; each is a unit of the phase."""

        def counted() -> Iterator[Item]:
            for item in items:
                yield item
                self.advance(1)

        return counted() if self._display else items

    @contextmanager
    def reading(self, paths: Sequence[Path], what: str = "reading") -> Iterator[Iterable[Path]]:
        """A phase that ends when the files are read; yields the paths. Unread files count when the next path is
        taken."""
        if self._display is None:
            yield paths
            return
        sizes = list(map(_size, paths))
        if any(sizes):
            self.begin(what, sum(sizes), BYTES)

        def pass_on() -> Iterator[Path]:
            for path, before in zip(paths, accumulate(sizes), strict=True):
                yield path
                self.set_done(before)

        token = WATCH.set(self.advance)
        try:
            yield pass_on()
        finally:
            WATCH.reset(token)
            self.begin("working")

    def replays(self, number: int | None = None) -> ReplaySteps:
        """A phase of `number` replays of about equally many calls (None: nobody knows how many yet)."""
        self.begin("replaying", None, CALL)
        return ReplaySteps(self, number)


class ReplaySteps:
    """Adds up the calls of replays that come one after the other; the first tells how many calls each has."""

    def __init__(self, bar: WorkBar, number: int | None) -> None:
        self._bar, self._number = bar, number
        self._last, self._before, self._ended = ("", 0), 0, 0

    def expect(self, left: int) -> None:
        """So many replays come after those that are done."""
        self._number = self._ended + bool(self._last[1]) + left

    def __call__(self, what: str, calls: int) -> None:
        name, done = self._last
        if done and (what != name or calls <= done):
            self._before += done
            self._ended += 1
        self._last = what, calls
        each = self._before / self._ended if self._ended else None
        total = round(each * self._number) if each and self._number else None
        self._bar.set_done(self._before + calls, f"replaying {what}", total)


@contextmanager
def work_bar() -> Iterator[WorkBar]:
    """The bar of a command. What is printed to stdout while it is there must not go to the same terminal."""
    if not sys.stderr.isatty():
        yield WorkBar()
        return
    from rich.progress import Progress

    from cachecost.views.streams import inert_console

    console = inert_console(sys.stderr)
    display = Progress(*columns(), console=console, transient=True, redirect_stdout=False, refresh_per_second=5)
    bar = WorkBar(display)
    try:
        bar.show_later()
        yield bar
    finally:
        bar.end()


@contextmanager
def reading_bar(paths: Sequence[Path], what: str = "reading") -> Iterator[None]:
    """The bar of a command that does all its work while it reads the files or folders."""
    with work_bar() as bar, bar.reading(paths, what):
        yield


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(map(_size, path.iterdir()))
    return path.stat().st_size if path.is_file() else 0
