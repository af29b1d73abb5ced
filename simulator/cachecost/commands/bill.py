"""`cachecost bill`: what sessions cost, by whom and why."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.exit_codes import ExitCode
from cachecost.base.times import iso
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.options import (
    SharedOptions,
    csv_option,
    format_option,
    html_option,
    json_option,
    shared_options,
    write_rows,
)

if TYPE_CHECKING:
    from cachecost.analysis.bill.account import BillAccount, IsCounted
    from cachecost.analysis.bill.timeline import TimelineCall
    from cachecost.conversations.billed_calls import SessionFile
    from cachecost.sessions.reading import SessionFiles
    from cachecost.sessions.store import SessionStore

STORE_VARIABLE = "CACHECOST_STORE"
NO_STORE = "off"
BY = ("session", "project", "day", "week", "month", "model", "agent")
SPAN = re.compile(r"(\d+)([hdwm])")
SPAN_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400, "m": 30 * 86400}


def parse_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A moment in seconds since the epoch: a span before now, or a time in UTC. Raises BadParameter."""
    if value is None:
        return None
    if match := SPAN.fullmatch(value):
        return time.time() - int(match[1]) * SPAN_SECONDS[match[2]]
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"expected a span (30d, 12h, 2w) or a date (2026-03-07); got '{value}'") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.command(cls=SectionedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--since", metavar="WHEN", callback=parse_moment, help="Only calls since then: 30d, 12h, 2w, or a date (UTC)."
)
@click.option("--until", metavar="WHEN", callback=parse_moment, help="Only calls before then.")
@click.option("--by", type=click.Choice(BY), help="What the rows are.  [default: session, the ten most expensive]")
@click.option(
    "--session", "session", metavar="ID", help="Show this session call by call; the beginning of its id is enough."
)
@click.option("--all-calls", is_flag=True, help="With --session: a row for every call; without it, runs are one row.")
@click.option("--project", metavar="TEXT", help="Only sessions whose folder contains this text.")
@format_option
@click.option("--skip", is_flag=True, help="Skip files that cannot be read; without it the exit code is 2.")
@html_option("Also write the bill as an HTML page.")
@csv_option
@json_option
@shared_options
def bill(
    paths: tuple[Path, ...],
    since: float | None,
    until: float | None,
    by: str | None,
    session: str | None,
    all_calls: bool,
    project: str | None,
    format_: str,
    skip: bool,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: SharedOptions,
) -> int:
    """Show what sessions cost, which of it was paid to write cached tokens again, and why.

    Without PATH, the sessions of the agents found on this machine. Dollars are list prices. What was read is
    remembered in the file that CACHECOST_STORE names (off: nothing is).
    """
    from cachecost.analysis.bill.account import account_for
    from cachecost.analysis.bill.call_prices import CallPrices
    from cachecost.analysis.bill.summary import summarize
    from cachecost.views.bill.json_output import bill_object, call_object, csv_rows

    _check_session_options(session, by, all_calls)
    found = _read(paths, format_)
    _report_skipped(found)
    files = [file for file in found.sessions if project is None or project in file.project]
    setup, is_counted = shared.setup, _in_period(since, until)
    key, is_counted = _choose_session(session, files, is_counted)
    account = account_for(files, CallPrices(setup.prices, setup.rules, setup.host), is_counted)
    summary = summarize(account, by or "session")
    calls = _session_calls(account, key)
    write_rows(csv_file, map(call_object, calls) if session else csv_rows(summary))
    if as_json:
        result = bill_object(summary, account.rewrites, found.skipped)
        result |= {"calls": [call_object(one) for one in calls]} if session else {}
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    elif session:
        from cachecost.views.bill.session import print_session
        from cachecost.views.bill.text import list_price_note

        print_session(
            summary, calls, _first_words(calls), [list_price_note(summary.total.cost)], sys.stdout, not all_calls
        )
    else:
        from cachecost.views.bill.text import ROWS_SHOWN, list_price_note, print_bill

        hints = [list_price_note(summary.total.cost)]
        print_bill(summary, account.rewrites, {}, hints, sys.stdout, None if by else ROWS_SHOWN)
    if html is not None:
        _write_page(html, account, _command(paths, session, since, until, html))
    if found.skipped and not skip:
        return ExitCode.INVALID_INPUT
    return ExitCode.NOT_EVALUATED if summary.unpriced else ExitCode.OK


def _check_session_options(session: str | None, by: str | None, all_calls: bool) -> None:
    """Raises UsageError for options that do not go together."""
    if session is not None and by is not None:
        raise click.UsageError("--by: not with --session, which shows one session call by call")
    if session is None and all_calls:
        raise click.UsageError("--all-calls: only with --session")


def _choose_session(session: str | None, files: Sequence[SessionFile], is_counted: IsCounted) -> tuple[str, IsCounted]:
    """The session that --session names, and what counts its calls; "" and what is counted without it."""
    from cachecost.analysis.bill.timeline import only_session, sessions_by_time
    from cachecost.commands.session_choice import choose_session

    if session is None:
        return "", is_counted
    key = choose_session(session, sessions_by_time(files))
    return key, only_session(files, key, is_counted)


def _session_calls(account: BillAccount, key: str) -> Sequence[TimelineCall]:
    from cachecost.analysis.bill.timeline import session_timelines

    return session_timelines(account, [key])[key] if key else ()


def _first_words(calls: Sequence[TimelineCall]) -> Mapping[int, str]:
    """The beginning of the person's message before each call, by its number; read again from the session's files."""
    from cachecost.sessions.first_words import first_words

    lines: dict[str, dict[int, int]] = {}
    for one in calls:
        if "human" in one.call.events:
            lines.setdefault(one.file.path, {})[one.call.line] = one.number
    files = {one.file.path: one.file for one in calls}
    return {
        numbers[line]: words
        for path, numbers in lines.items()
        for line, words in first_words(files[path], numbers).items()
    }


def _write_page(html: Path, account: BillAccount, again: str) -> None:
    from cachecost.views.bill.page import bill_page
    from cachecost.views.html.frame import write_page

    write_page(html, bill_page(account, again))
    print_diagnostic(f"{html} written")


def _command(paths: Sequence[Path], session: str | None, since: float | None, until: float | None, html: Path) -> str:
    """The command that makes the page again: a period in days before now has become a date."""
    times = {"--since": since and iso(since), "--until": until and iso(until), "--session": session}
    options = [word for name, value in times.items() if value for word in (name, str(value))]
    return shlex.join(["cachecost", "bill", *map(str, paths), *options, "--html", str(html)])


def _in_period(since: float | None, until: float | None) -> IsCounted:
    if since is None and until is None:
        return bool
    low, high = since or float("-inf"), float("inf") if until is None else until
    return lambda call: call.start is not None and low <= call.start < high


def _read(paths: Sequence[Path], format_: str) -> SessionFiles:
    """The sessions in these files and folders, or in those of this machine."""
    from cachecost.sessions.reading import SessionReading

    with _open_store() as store:
        return SessionReading(store, format_).read_all(_files(paths))


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    from cachecost.sessions.locations import locations

    if paths:
        for path in paths:
            yield from sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        return
    for location in locations():
        yield from location.find(Path.home(), os.environ)


@contextmanager
def _open_store() -> Iterator[SessionStore | None]:
    """The store; None where there is to be none, or it cannot be used."""
    from cachecost.sessions.store import SessionStore

    named = os.environ.get(STORE_VARIABLE, "")
    if named == NO_STORE:
        yield None
        return
    path = Path(named) if named else _default_store()
    try:
        store = SessionStore(path)
    except (sqlite3.Error, OSError) as error:
        print_diagnostic(f"{path}: not used to remember sessions: {error}")
        yield None
        return
    with store:
        yield store


def _default_store() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "cachecost" / "sessions.sqlite"


def _report_skipped(found: SessionFiles) -> None:
    for fault in found.skipped:
        print_diagnostic(f"{fault}; skipped")
