"""`cachecost bill`: what sessions cost, by whom and why."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import ExitCode
from cachecost.base.formatting import count_text, inert
from cachecost.base.structs import replace
from cachecost.base.times import LOCAL, find_zone, iso, zone_name
from cachecost.commands import options
from cachecost.commands.catalogue import is_from_file
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.sessions import choose_session, read_session_files

if TYPE_CHECKING:
    from cachecost.analysis.bill.account import BillAccount, IsCounted
    from cachecost.analysis.bill.advice import Advice
    from cachecost.analysis.bill.summary import BillSummary
    from cachecost.analysis.bill.timeline import TimelineCall
    from cachecost.sessions.reading import SessionFiles
    from cachecost.simulation.setup import ReplaySetup
    from cachecost.sweep.workers import Workers

BY = (
    *("session", "project", "branch", "pr", "day", "week", "month", "model", "version", "agent"),
    *("server", "skill", "tool"),
)
SPAN = re.compile(r"(\d{1,6})([hdw])")
PROJECTS_NAMED = 8
SPAN_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def parse_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A moment in seconds since the epoch: a span before now, or a time in the zone of --timezone, else UTC.

    Raises BadParameter.
    """
    if value is None:
        return None
    if match := SPAN.fullmatch(value):
        return time.time() - int(match[1]) * SPAN_SECONDS[match[2]]
    expected = "a span (30d, 12h, 2w) or a date (2026-03-07)"
    return options.parse_seconds(value, expected, ctx.params.get("zone") or UTC)


def parse_zone(ctx: click.Context, param: click.Parameter, value: str) -> tzinfo:
    """A time zone by name. Raises BadParameter."""
    try:
        return find_zone(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; names are like Europe/Berlin, UTC, local") from None


@dataclass(frozen=True, slots=True)
class CallFilters:
    """Which calls count. Times are in seconds since the epoch; days begin in `zone`."""

    project: str | None
    since: float | None
    until: float | None
    zone: tzinfo

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise click.UsageError("--since must be before --until")

    def account(self, found: SessionFiles, format_: str, setup: ReplaySetup) -> BillAccount:
        """The account of these calls; how many have no time, and that none is left, go to stderr."""
        from cachecost.analysis.bill.found_sessions import account_of_found

        since, until = self.since, self.until
        low, high = float("-inf") if since is None else since, float("inf") if until is None else until
        is_all = since is None and until is None
        is_counted: IsCounted = bool if is_all else lambda call: call.start is not None and low <= call.start < high
        account = account_of_found(found, setup, format_, self.project, is_counted, print_diagnostic, zone=self.zone)
        untimed = 0 if is_all else sum(call.start is None for file in account.files for call in file.calls)
        if untimed:
            print_diagnostic(f"{count_text(untimed, 'call')} without a time left out: in no period")
        times = {"--since": since, "--until": until}
        filters = [f"{name} {iso(at)[:19]}Z" for name, at in times.items() if at is not None]
        filters = [*([] if self.project is None else [f"--project {self.project}"]), *filters]
        if filters and found.sessions and not any(account.calls()):
            from cachecost.views.bill.words import project_names

            starts = [call.start for file in found.sessions for call in file.calls if call.start is not None]
            edges = [datetime.fromtimestamp(at(starts), self.zone) for at in (min, max)] if starts else []
            days = " to ".join(f"{edge:%Y-%m-%d}" for edge in edges)
            names = sorted(filter(None, project_names(file.project for file in found.sessions).values()))
            more = " …" if len(names) > PROJECTS_NAMED else ""
            projects = f"projects {', '.join(names[:PROJECTS_NAMED])}{more}" if names else ""
            there = ", ".join(filter(None, (count_text(len(found.sessions), "session file"), days, projects)))
            print_diagnostic(inert(f"no call matches {' '.join(filters)}; found: {there}"))
        return account

    def command(self, paths: Sequence[Path], session: str | None, html: Path) -> str:
        """The command that makes a page again: a period in days before now has become a date."""
        period = {"--since": self.since and iso(self.since), "--until": self.until and iso(self.until)}
        zone = None if self.zone == find_zone(LOCAL) else zone_name(self.zone)
        named = {"--project": self.project, **period, "--session": session, "--timezone": zone, "--html": html}
        words = options.option_words(named)
        return shlex.join(["cachecost", "bill", *map(str, paths), *words])


@click.command(cls=CheckedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=options.LogPath())
@click.option("--since", metavar="WHEN", callback=parse_moment, help="Only calls since then: 30d, 12h, 2w, or a date.")
@click.option("--until", metavar="WHEN", callback=parse_moment, help="Only calls before then.")
@click.option(
    "--by", type=options.NameChoice(BY), help="What the rows are.  [default: session, the ten most expensive]"
)
@click.option(
    "--session", "session", metavar="ID", help="Show this session call by call; the beginning of its id is enough."
)
@click.option("--all-calls", is_flag=True, help="With --session: a row for every call; without it, runs are one row.")
@click.option("--project", metavar="TEXT", help="Only sessions whose folder contains this text.")
@click.option(
    "--timezone",
    "zone",
    metavar="ZONE",
    default=LOCAL,
    show_default=True,
    is_eager=True,
    callback=parse_zone,
    help="The zone of days, times and dates: a name like Europe/Berlin, UTC, or local.",
)
@click.option(
    "--output",
    "output",
    type=click.Choice(("estimated", "recorded")),
    default="estimated",
    show_default=True,
    help="Output that the client did not record: estimated apart from the bill, or left out.",
)
@options.format_option
@options.workers_options("one")
@click.option(
    "--apply",
    "applies",
    metavar="NAME",
    is_flag=False,
    flag_value="",
    help="Write this advised setting into Claude Code's settings file; the name may be left out if one is advised.",
)
@click.option("--yes", "is_confirmed", is_flag=True, help="With --apply: do not ask.")
@options.skip_option
@options.html_option("Also write the bill as an HTML page.")
@options.csv_option
@options.json_option
@options.shared_options
@options.fold_options("filters", CallFilters, ("project", "since", "until", "zone"))
@no_garbage_collection()
def bill(
    paths: tuple[Path, ...],
    filters: CallFilters,
    by: str | None,
    session: str | None,
    all_calls: bool,
    output: str,
    format_: str,
    computing: options.WorkerOptions,
    applies: str | None,
    is_confirmed: bool,
    may_skip: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Show what sessions cost, which of it was spent re-caching cached content, and why.

    PATH is a file, a folder, or the URL of one (s3://, gs://, az://, https://); without it, the sessions of the
    agents found on this machine. Dollars are list prices. What was read is remembered in the folder that
    CACHECOST_STORE names (off: nothing is, nor with --jobs or --backend).
    """
    from cachecost.analysis.bill.advice import best_advice
    from cachecost.analysis.bill.summary import summarize
    from cachecost.analysis.bill.timeline import session_account, session_timelines, sessions_by_time
    from cachecost.views.bill.json_output import bill_object, call_object, csv_rows

    # options of the settings file that do not go with --session give way
    by = None if session is not None and is_from_file("by") else by
    all_calls = all_calls and not (session is None and is_from_file("all_calls"))
    if session is not None and by is not None:
        raise click.UsageError("--by: not with --session, which shows one session call by call")
    if session is None and all_calls:
        raise click.UsageError("--all-calls: only with --session")
    with options.work_bar() as bar:
        found = read_session_files(paths, format_, bar, _choose_workers(paths, computing), "bill")
        with bar.reading(found.logs):
            account = filters.account(found, format_, shared.setup)
        key = None if session is None else choose_session(session, sessions_by_time(account))
        account = account if key is None else session_account(account, key)
        calls = None if key is None else session_timelines(account, [key])[key]
        summary = replace(summarize(account, by or "session"), estimates_output=output == "estimated")
        advice = best_advice(account)
    options.write_rows(csv_file, csv_rows(summary) if calls is None else map(call_object, calls))
    if as_json:
        options.print_json(bill_object(account, summary, advice, found.skipped, calls))
    elif calls is not None or found.sessions or found.logs:
        _print_bill(account, summary, advice, calls, is_short=by is None, all_calls=all_calls)
    if html is not None:
        from cachecost.views.bill.page import bill_page

        again = filters.command(paths, session, html)
        options.write_html(html, bill_page(account, again, advice, summary.estimates_output))
    if applies is not None:
        from cachecost.commands.project_files import apply_advice

        apply_advice(choose_settings(advice, applies), is_confirmed)
    code = ExitCode.NOT_EVALUATED if summary.unpriced else ExitCode.OK
    return options.code_with_skipped(found.skipped, may_skip, code)


def _choose_workers(paths: Sequence[Path], computing: options.WorkerOptions) -> Workers | None:
    """Who shares the reading; None: nobody. Raises UsageError, InputError and NotInstalled."""
    from cachecost.conversations.input_files import is_url

    backend = computing.backend
    if (backend, computing.scheduler, computing.jobs) == ("loky", None, None):
        return None
    if backend != "loky" and not (paths and all(path.is_absolute() or is_url(path) for path in paths)):
        raise click.UsageError(f"--backend {backend}: name absolute paths or URLs, which all its workers can read")
    return computing.workers(1)


def _print_bill(
    account: BillAccount,
    summary: BillSummary,
    advice: Sequence[Advice],
    calls: Sequence[TimelineCall] | None,
    is_short: bool,
    all_calls: bool,
) -> None:
    """Print the bill, or the calls of the one session that is shown."""
    from cachecost.analysis.bill.account import session_key
    from cachecost.analysis.bill.advice import saved_together
    from cachecost.sessions.locations import first_message, first_words
    from cachecost.views.bill.json_output import advice_lines
    from cachecost.views.bill.text import ROWS_SHOWN, list_price_note, print_bill, print_session

    hints = [list_price_note(summary.total)]
    if calls is not None:
        # the beginning of the person's message before each call, read again from the session's files
        lines: dict[str, dict[int, int]] = {}
        for one in calls:
            if "human" in one.call.events:
                lines.setdefault(one.file.path, {})[one.call.line] = one.number
        files = {one.file.path: one.file for one in calls}
        words_by_call = {
            numbers[line]: words
            for path, numbers in lines.items()
            for line, words in first_words(files[path], numbers).items()
        }
        print_session(summary, calls, words_by_call, hints, sys.stdout, not all_calls)
        return
    hints = [*advice_lines(advice, saved_together(account, advice)), *hints]
    most = ROWS_SHOWN if is_short else None
    untitled = {row.key: row for row in summary.rows[:most] if not row.title} if summary.by == "session" else {}
    for file in account.files if untitled else ():
        first = next((call for call in file.calls if not call.agent), None)
        if first and (row := untitled.get(session_key(file, first))):
            row.title = row.title or first_message(file)
    print_bill(summary, account.rewrites, hints, sys.stdout, most)


def choose_settings(advice: Sequence[Advice], name: str) -> list[Advice]:
    """The advised setting of this name, by its key or variable; "": the only one. Raises UsageError."""
    settings = [one for one in advice if one.setting]
    found = [one for one in settings if not name or name in (one.setting.key, one.setting.variable)]  # type: ignore[union-attr]
    if len(found) > 1 or (name and not found):
        names = ", ".join(one.name for one in settings) or "none"
        raise click.UsageError(f"--apply: expected one of the settings that are advised ({names}); got '{name}'")
    return found
