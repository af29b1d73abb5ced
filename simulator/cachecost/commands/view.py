"""`cachecost view`: a page on this machine to look around sessions, two recordings or the report of a run."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import ExitCode, Fault, InputError
from cachecost.base.extras import require
from cachecost.base.formatting import count_text
from cachecost.base.times import iso
from cachecost.commands import options
from cachecost.commands.bill import parse_moment
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, PagePath
from cachecost.commands.sessions import choose_session, read_session_files
from cachecost.conversations.input_files import input_path
from cachecost.providers.hosts import AUTO_HOST
from cachecost.views.run.files import CALLS, RESULT

if TYPE_CHECKING:
    from socket import socket

    from cachecost.analysis.bill.account import IsCounted
    from cachecost.analysis.viewing.listing import SessionListing
    from cachecost.live.viewer.sessions_source import ComparisonSource
    from cachecost.live.viewer.source import PageSource, ReportSource

TOKEN_BYTES = 16
REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}"><title>cachecost view</title></head>
<body><a href="{0}">cachecost view</a></body></html>
"""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What to show, as the user asked."""

    paths: tuple[Path, ...]
    format_: str
    since: float | None
    project: str | None
    session: str | None
    beside: bool
    against: str | None
    shared: options.SharedOptions

    @property
    def is_counted(self) -> IsCounted:
        since = self.since
        return bool if since is None else lambda call: call.start is not None and call.start >= since

    @property
    def command(self) -> str:
        """The command line that shows the same: a period in days before now has become a date."""
        since = None if self.since is None else iso(self.since)
        named = {"--since": since, "--project": self.project, "--session": self.session, "--against": self.against}
        words = [*options.option_words(named), *(["--beside"] if self.beside else [])]
        return shlex.join(["cachecost", "view", *map(str, self.paths), *words, *self.replay_options])

    @property
    def replay_options(self) -> list[str]:
        """The options that change a replay, as typed."""
        shared = self.shared
        named: dict[str, object] = {
            "--format": None if self.format_ == "auto" else self.format_,
            "--host": None if shared.host == AUTO_HOST else shared.host,
            "--as-of": shared.as_of,
            "--prices": shared.prices,
            "--rules": shared.rules_file,
        }
        return [*options.option_words(named), *(word for rule in shared.rule for word in ("--rule", rule))]


@click.command(cls=CheckedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=options.LogPath())
@options.option(
    "--since", "Only calls since then: 30d, 12h, 2w, or a date (UTC).", metavar="WHEN", callback=parse_moment
)
@options.option("--project", "Only sessions whose folder contains this text.", metavar="TEXT")
@options.option("--session session", "Open at this session; the beginning of its id is enough.", metavar="ID")
@options.option("--save", "Write the page of the session as one HTML file, and start no server.", PagePath())
@options.option("--beside", "Compare two recordings, call by call: PATH is given twice.", is_flag=True)
@options.option("--against", "Compare a report with itself as of this git revision.", metavar="REV")
@options.option("--no-browser", "Do not open a browser.", is_flag=True)
@options.port_option(0)
@options.format_option
@options.shared_options
@options.fold_options(
    "shown", ViewOptions, ("paths", "format_", "since", "project", "session", "beside", "against", "shared")
)
def view(shown: ViewOptions, save: Path | None, no_browser: bool, port: int) -> int:
    """Browse sessions: each call's prompt, what was written again and why; try what-ifs.

    PATH is a file, a folder, or the URL of one (s3://, gs://, az://, https://); without it, the sessions of the
    agents found on this machine. PATH may also be a report of `run` (reports/NAME): then its strategies are shown. The
    page is on this machine only and loads nothing from the network. Ctrl-C stops it.
    """
    require("cachecost view", "starlette", "uvicorn")
    folder = None if shown.beside else report_folder(shown.paths)
    if folder is None and not shown.beside and shown.against is None:
        return _view_sessions(shown, save, port, not no_browser)
    if save or shown.session:
        raise click.UsageError("--save, --session: for sessions only")
    source = comparison_source(shown) if shown.beside else report_source(folder, shown)
    serve_source(source, "", port, not no_browser)
    return ExitCode.OK


def _view_sessions(shown: ViewOptions, save: Path | None, port: int, opens_browser: bool) -> ExitCode:
    listing = find_sessions(shown, shown.paths)
    if not listing.keys:
        return ExitCode.INVALID_INPUT if listing.skipped else ExitCode.OK
    from cachecost.analysis.bill.timeline import sessions_by_time
    from cachecost.analysis.viewing.listing import CallReading, session_id
    from cachecost.live.viewer.sessions_source import SessionsSource

    source = SessionsSource(
        listing,
        shown.shared.setup,
        CallReading(shown.format_),
        command=shown.command,
        options_given=shown.replay_options,
        watch=watch_work(Lock()),
    )
    opened = None
    if shown.session is not None:
        opened = session_id(choose_session(shown.session, sessions_by_time(listing.account)))
    if save is None:
        serve_source(source, f"#/session/{opened}" if opened else "", port, opens_browser)
        return ExitCode.OK
    from cachecost.live.viewer.app import SavedPage, read_static_files

    if opened is None and len(listing.keys) > 1:
        raise click.UsageError(f"--save: there are {len(listing.keys):,} sessions; name one with --session ID")
    options.write_html(save, SavedPage(source, read_static_files()).of_session(opened or session_id(listing.keys[0])))
    return ExitCode.OK


def find_sessions(shown: ViewOptions, paths: Sequence[Path]) -> SessionListing:
    from cachecost.analysis.bill.found_sessions import account_of_found
    from cachecost.analysis.viewing.listing import LoggedSessions, SessionListing

    setup = shown.shared.setup
    logged = LoggedSessions(setup)
    with no_garbage_collection(), options.work_bar() as bar:
        found = read_session_files(paths, shown.format_, bar, command="view")
        with bar.reading(found.logs):
            account = account_of_found(
                found, setup, shown.format_, shown.project, shown.is_counted, print_diagnostic, logged.complete
            )
    for why, number in sorted(logged.unknown.items()):
        print_diagnostic(f"{count_text(number, 'call')} without a bill left out: {why}")
    if (found.sessions or found.logs or found.skipped) and not any(account.calls()):
        print_diagnostic("no sessions to show: no call has a bill or can be simulated; try cachecost view PATH")
    return SessionListing(account, logged, found.skipped, shown.format_)


def watch_work(lock: Lock) -> Callable[[str, Sequence[str]], AbstractContextManager[None]]:
    """Shows what the page waits for: a bar on a terminal, for what takes over a second; of what is done at once only
    the first, which holds the `lock`."""

    @contextmanager
    def watch(what: str, files: Sequence[str]) -> Iterator[None]:
        if not lock.acquire(blocking=False):
            yield
            return
        try:
            with options.work_bar() as bar, bar.reading(list(map(input_path, files)), what):
                if not files:
                    bar.begin(what)
                yield
        finally:
            lock.release()

    return watch


def comparison_source(shown: ViewOptions) -> ComparisonSource:
    """Two recordings. Raises UsageError where there are not two, InputError where one has no calls to show."""
    from cachecost.analysis.viewing.listing import CallReading
    from cachecost.live.viewer.sessions_source import ComparisonSource

    if len(shown.paths) != 2:
        raise click.UsageError(f"--beside: expected two recordings; got {len(shown.paths):,}")
    left, right = (find_sessions(shown, [path]) for path in shown.paths)
    for path, listing in zip(shown.paths, (left, right), strict=True):
        if not listing.keys:
            raise InputError([Fault(str(path), "no calls to show")])
    first, second = shown.paths
    titles = (str(first), str(second)) if first.stem == second.stem else (first.stem, second.stem)
    return ComparisonSource(titles, (left, right), CallReading(shown.format_), shown.command)


def report_folder(paths: Sequence[Path]) -> Path | None:
    """The folder of the report that is named: itself, or its result.json; None where sessions are."""
    if len(paths) != 1 or not isinstance(paths[0], Path):
        return None
    path = paths[0]
    folder = path.parent if path.name == RESULT else path
    return folder if (folder / RESULT).is_file() and path in (folder, folder / RESULT) else None


def report_source(folder: Path | None, shown: ViewOptions) -> ReportSource:
    """The report of a folder, beside it that of another revision. Raises UsageError, InputError."""
    from cachecost.live.viewer.source import ReportSource
    from cachecost.views.viewer.sessions import parse_report

    if folder is None:
        raise click.UsageError(f"--against: expected the report of a run, a folder with {RESULT}")
    texts = []
    for name in (RESULT, CALLS):
        try:
            texts.append((folder / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError([Fault(str(folder / name), f"cannot be read: {error}")]) from None
    report, other = parse_report(str(folder), *texts), None
    if shown.against is not None:
        texts = [_read_revision(folder, name, shown.against) for name in (RESULT, CALLS)]
        other = parse_report(f"{folder} at {shown.against}", *texts)
    return ReportSource(report, shown.command, other, shown.against or "")


def _read_revision(folder: Path, name: str, revision: str) -> str:
    """A file of a git revision. Raises InputError."""
    command = ["git", "-C", str(folder), "show", "--end-of-options", f"{revision}:./{name}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault("--against", f"git cannot be asked for {folder / name}: {error}")]) from None
    why = next(iter(done.stderr.decode("utf-8", "replace").strip().splitlines()), "git failed")
    raise InputError([Fault("--against", f"{folder / name} is not in {revision}: {why}")])


def new_token() -> str:
    """What the addresses of a page begin with, so that nobody finds them by chance."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def listen_at(port: int) -> socket:
    """A socket on this machine. Raises UsageError for a port that is taken."""
    from cachecost.live.loopback import PortTaken, listen

    try:
        return listen(port)
    except PortTaken as error:
        raise click.UsageError(str(error)) from None


def serve_source(source: PageSource, opened: str, port: int, opens_browser: bool) -> None:
    """Serve a page until stopped; it opens at `opened` ("": where it begins). Raises UsageError for a port that is
    taken."""
    from cachecost.live.loopback import address_of
    from cachecost.live.viewer.app import read_static_files, serve_page, viewer_app

    token = new_token()
    with listen_at(port) as taken:
        address = f"{address_of(taken)}/{token}/{opened}"
        app = viewer_app(source, read_static_files(), token, taken.getsockname()[1], print_diagnostic)
        displays = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        has_display = sys.platform in ("darwin", "win32") or displays
        with redirect_file(address) if opens_browser and has_display else nullcontext() as path:

            def greet() -> None:
                import webbrowser

                print_diagnostic(f"{address}  (Ctrl-C stops it)")
                if path is not None:
                    Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()

            serve_page(app, taken, greet)


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """A file that leads a browser to `address`, and that only this user can read: command lines, which everyone on the
    machine can list, then have no token."""
    with TemporaryDirectory(prefix="cachecost-view-") as folder:
        path = Path(folder) / "open.html"
        path.write_text(REDIRECT.format(escape(address, quote=True)), encoding="utf-8")
        path.chmod(0o600)
        yield path
