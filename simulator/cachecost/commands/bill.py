"""`cachecost bill`: what sessions cost, by whom and why."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.errors import ExitCode
from cachecost.base.times import LOCAL, find_zone, iso, seconds
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.options import (
    LogPath,
    NameChoice,
    SharedOptions,
    code_with_skipped,
    csv_option,
    format_option,
    html_option,
    json_option,
    shared_options,
    skip_option,
    work_bar,
    workers_options,
    write_rows,
)
from cachecost.commands.output_paths import SectionedCommand
from cachecost.commands.session_choice import no_match_words
from cachecost.commands.session_input import read_session_files

if TYPE_CHECKING:
    from cachecost.analysis.bill.account import BillAccount, IsCounted
    from cachecost.analysis.bill.advice import Advice
    from cachecost.analysis.bill.summary import BillSummary
    from cachecost.analysis.bill.timeline import TimelineCall
    from cachecost.sessions.reading import SessionFiles
    from cachecost.sweep.workers import Workers

BY = ("session", "project", "day", "week", "month", "model", "agent")
SPAN = re.compile(r"(\d{1,6})([hdw])")
SPAN_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def parse_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A moment in seconds since the epoch: a span before now, or a time in the zone of --timezone, else UTC.

    Raises BadParameter.
    """
    if value is None:
        return None
    if match := SPAN.fullmatch(value):
        return time.time() - int(match[1]) * SPAN_SECONDS[match[2]]
    try:
        return seconds(value, ctx.params.get("zone") or UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"expected a span (30d, 12h, 2w) or a date (2026-03-07); got '{value}'") from None


def parse_zone(ctx: click.Context, param: click.Parameter, value: str) -> tzinfo:
    """A time zone by name. Raises BadParameter."""
    try:
        return find_zone(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; names are like Europe/Berlin, UTC, local") from None


@click.command(cls=SectionedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=LogPath())
@click.option("--since", metavar="WHEN", callback=parse_moment, help="Only calls since then: 30d, 12h, 2w, or a date.")
@click.option("--until", metavar="WHEN", callback=parse_moment, help="Only calls before then.")
@click.option("--by", type=NameChoice(BY), help="What the rows are.  [default: session, the ten most expensive]")
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
@format_option
@workers_options("one")
@click.option(
    "--apply",
    "applies",
    metavar="NAME",
    is_flag=False,
    flag_value="",
    help="Write this advised setting into Claude Code's settings file; the name may be left out if one is advised.",
)
@click.option("--yes", "is_confirmed", is_flag=True, help="With --apply: do not ask.")
@skip_option
@html_option("Also write the bill as an HTML page.")
@csv_option
@json_option
@shared_options
@no_garbage_collection()
def bill(
    paths: tuple[Path, ...],
    since: float | None,
    until: float | None,
    by: str | None,
    session: str | None,
    all_calls: bool,
    project: str | None,
    zone: tzinfo,
    output: str,
    format_: str,
    backend: str,
    scheduler: str | None,
    worker_timeout: float,
    jobs: int | None,
    applies: str | None,
    is_confirmed: bool,
    may_skip: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: SharedOptions,
) -> int:
    """Show what sessions cost, which of it was spent re-caching cached content, and why.

    PATH is a file, a folder, or the URL of one (s3://, gs://, az://, https://); without it, the sessions of the
    agents found on this machine. Dollars are list prices. What was read is remembered in the folder that
    CACHECOST_CACHE names (off: nothing is, nor with --jobs or --backend).
    """
    from cachecost.commands.session_choice import session_options

    if since is not None and until is not None and since >= until:
        raise click.UsageError("--since must be before --until")
    by, all_calls = session_options(session, by, all_calls)
    with work_bar() as bar:
        found = read_session_files(
            paths, format_, bar, _workers(paths, backend, scheduler, jobs, worker_timeout), "bill"
        )
        with bar.reading(found.logs):
            account = _account(found, shared, format_, project, since, until, zone)
        filters = {"--project": project, "--since": since, "--until": until}
        if not any(account.calls()) and (said := no_match_words(found.sessions, filters)):
            print_diagnostic(said)
        shown = _ShownBill.of(account, found, by, session, output == "estimated")
    write_rows(csv_file, shown.csv_rows())
    if as_json:
        sys.stdout.write(json.dumps(shown.as_object(), ensure_ascii=False) + "\n")
    else:
        shown.print_text(not all_calls)
    if html is not None:
        shown.write_page(html, _command(paths, session, project, since, until, html))
    if applies is not None:
        from cachecost.commands.project_files import apply_advice

        apply_advice(choose_settings(shown.advice, applies), is_confirmed)
    code = ExitCode.NOT_EVALUATED if shown.summary.unpriced else ExitCode.OK
    return code_with_skipped(found.skipped, may_skip, code)


def _workers(
    paths: Sequence[Path], backend: str, scheduler: str | None, jobs: int | None, worker_timeout: float
) -> Workers | None:
    """Who shares the reading; None: nobody. Raises UsageError, InputError and NotInstalled."""
    if (backend, scheduler, jobs) == ("loky", None, None):
        return None
    from cachecost.conversations.input_files import is_url
    from cachecost.sweep.workers import Workers

    if backend != "loky" and not (paths and all(path.is_absolute() or is_url(path) for path in paths)):
        raise click.UsageError(f"--backend {backend}: name absolute paths or URLs, which all its workers can read")
    workers = Workers(backend, jobs or 1, scheduler, worker_timeout)
    workers.check()
    return workers


@dataclass(frozen=True, slots=True)
class _ShownBill:
    """What the command shows: the account, or that of one session with its `calls`; rows by `by`, if named."""

    account: BillAccount
    found: SessionFiles
    summary: BillSummary
    advice: Sequence[Advice]
    by: str | None
    session: str | None
    calls: Sequence[TimelineCall]

    @classmethod
    def of(
        cls, account: BillAccount, found: SessionFiles, by: str | None, session: str | None, estimates_output: bool
    ) -> _ShownBill:
        """Raises UsageError for a session that is not among them."""
        from cachecost.analysis.bill.advice import best_advice
        from cachecost.analysis.bill.summary import summarize
        from cachecost.commands.session_choice import choose_account

        account, calls = (account, ()) if session is None else choose_account(account, session)
        summary = replace(summarize(account, by or "session"), estimates_output=estimates_output)
        return cls(account, found, summary, best_advice(account), by, session, calls)

    @property
    def together(self) -> Decimal:
        """USD that all changes shown would have saved together."""
        from cachecost.analysis.bill.advice import saved_together

        return saved_together(self.account, self.advice)

    def csv_rows(self) -> Iterator[dict[str, Any]]:
        from cachecost.views.bill.json_output import call_object, csv_rows

        return map(call_object, self.calls) if self.session else csv_rows(self.summary)

    def as_object(self) -> dict[str, Any]:
        """The object of --json."""
        from cachecost.base.formatting import exact
        from cachecost.views.bill.json_output import advice_object, bill_object, call_object

        made = bill_object(self.summary, self.account.rewrites, self.found.skipped)
        made["advice"] = list(map(advice_object, self.advice))
        made["advice_together_usd"] = exact(self.together)
        return made | ({"calls": [call_object(one) for one in self.calls]} if self.session else {})

    def print_text(self, folds: bool) -> None:
        """Print to stdout; nothing where nothing was found."""
        from cachecost.commands.session_choice import find_first_words
        from cachecost.views.bill.json_output import advice_lines
        from cachecost.views.bill.text import ROWS_SHOWN, list_price_note, print_bill, print_session

        hints = [list_price_note(self.summary.total)]
        if self.session:
            print_session(self.summary, self.calls, find_first_words(self.calls), hints, sys.stdout, folds)
        elif self.found.sessions or self.found.logs:
            hints = [*advice_lines(self.advice, self.together), *hints]
            most = None if self.by else ROWS_SHOWN
            print_bill(self.summary, self.account.rewrites, hints, sys.stdout, most)

    def write_page(self, path: Path, again: str) -> None:
        """Write the HTML page; `again` is the command that makes it."""
        from cachecost.views.bill.page import bill_page
        from cachecost.views.html.frame import write_page

        write_page(path, bill_page(self.account, again, self.advice, self.summary.estimates_output))
        print_diagnostic(f"{path} written")


def _account(
    found: SessionFiles,
    shared: SharedOptions,
    format_: str,
    project: str | None,
    since: float | None,
    until: float | None,
    zone: tzinfo,
) -> BillAccount:
    from cachecost.analysis.bill.found_sessions import account_of_found

    in_period = _in_period(since, until)
    account = account_of_found(found, shared.setup, format_, project, in_period, print_diagnostic, zone=zone)
    if since is not None or until is not None:
        from cachecost.base.formatting import count_text

        untimed = sum(call.start is None for file in account.files for call in file.calls)
        if untimed:
            print_diagnostic(f"{count_text(untimed, 'call')} without a time left out: in no period")
    return account


def choose_settings(advice: Sequence[Advice], name: str) -> list[Advice]:
    """The advised setting of this name, by its key or variable; "": the only one. Raises UsageError."""
    settings = [one for one in advice if one.setting]
    found = [one for one in settings if not name or name in (one.setting.key, one.setting.variable)]  # type: ignore[union-attr]
    if len(found) > 1 or (name and not found):
        names = ", ".join(one.name for one in settings) or "none"
        raise click.UsageError(f"--apply: expected one of the settings that are advised ({names}); got '{name}'")
    return found


def _command(
    paths: Sequence[Path],
    session: str | None,
    project: str | None,
    since: float | None,
    until: float | None,
    html: Path,
) -> str:
    """The command that makes the page again: a period in days before now has become a date."""
    named = {
        "--project": project,
        "--since": since and iso(since),
        "--until": until and iso(until),
        "--session": session,
    }
    options = [word for name, value in named.items() if value for word in (name, str(value))]
    return shlex.join(["cachecost", "bill", *map(str, paths), *options, "--html", str(html)])


def _in_period(since: float | None, until: float | None) -> IsCounted:
    if since is None and until is None:
        return bool
    low, high = float("-inf") if since is None else since, float("inf") if until is None else until
    return lambda call: call.start is not None and low <= call.start < high
