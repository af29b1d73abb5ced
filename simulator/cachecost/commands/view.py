"""`cachecost view`: a page on this machine to look around sessions."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

import click

from cachecost.base.exit_codes import ExitCode
from cachecost.base.extras import require
from cachecost.base.formatting import count_text
from cachecost.base.times import iso
from cachecost.commands.bill import parse_moment
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.log_arguments import LogPath
from cachecost.commands.memory import no_garbage_collection
from cachecost.commands.options import SharedOptions, format_option, port_option, shared_options
from cachecost.commands.session_input import read_session_files
from cachecost.commands.work_bar import work_bar
from cachecost.conversations.input_files import input_path

if TYPE_CHECKING:
    from cachecost.analysis.viewing.listing import SessionListing
    from cachecost.conversations.billed_calls import BilledCall
    from cachecost.live.viewer.sessions_source import SessionsSource

TOKEN_BYTES = 16
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@dataclass(frozen=True, slots=True)
class _ViewOptions:
    """What to show, as the user asked."""

    paths: tuple[Path, ...]
    format_: str
    since: float | None
    project: str | None
    session: str | None
    shared: SharedOptions

    @property
    def command(self) -> str:
        """The command line that shows the same: a period in days before now has become a date."""
        since = None if self.since is None else iso(self.since)
        named = {"--since": since, "--project": self.project, "--session": self.session}
        words = [word for name, value in named.items() if value for word in (name, value)]
        return shlex.join(["cachecost", "view", *map(str, self.paths), *words, *self.replay_options])

    @property
    def replay_options(self) -> list[str]:
        """The options that change a replay, as typed."""
        shared = self.shared
        named: list[tuple[str, object]] = [
            ("--format", None if self.format_ == "auto" else self.format_),
            ("--host", None if shared.host == "anthropic" else shared.host),
            ("--as-of", shared.as_of),
            ("--prices", shared.prices),
            ("--rules", shared.rules_file),
            *(("--rule", rule) for rule in shared.rule),
        ]
        return [word for name, value in named if value is not None for word in (name, str(value))]


@click.command(cls=SectionedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=LogPath())
@click.option(
    "--since", metavar="WHEN", callback=parse_moment, help="Only calls since then: 30d, 12h, 2w, or a date (UTC)."
)
@click.option("--project", metavar="TEXT", help="Only sessions whose folder contains this text.")
@click.option("--session", "session", metavar="ID", help="Open at this session; the beginning of its id is enough.")
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page of the session as one HTML file, and start no server.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@port_option(0)
@format_option
@shared_options
def view(
    paths: tuple[Path, ...],
    since: float | None,
    project: str | None,
    session: str | None,
    save: Path | None,
    no_browser: bool,
    port: int,
    format_: str,
    shared: SharedOptions,
) -> int:
    """Look around sessions in the browser: each call's prompt, what was written again and why, and what if.

    PATH is a file, a folder, or the URL of one (s3://, gs://, az://, https://); without it, the sessions of the
    agents found on this machine. The page is on this machine only and loads nothing from the network. Ctrl-C stops it.
    """
    require("cachecost view", "starlette", "uvicorn")
    options = _ViewOptions(paths, format_, since, project, session, shared)
    listing = _listing(options)
    if not listing.keys:
        return ExitCode.INVALID_INPUT if listing.skipped else ExitCode.OK
    source, opened = _source(listing, options), _choose(listing, session)
    if save is not None:
        _save(source, opened, save)
    else:
        _serve(source, opened, port, not no_browser)
    return ExitCode.OK


def _source(listing: SessionListing, options: _ViewOptions) -> SessionsSource:
    from cachecost.analysis.viewing.replay import CallReading
    from cachecost.live.viewer.sessions_source import SessionsSource

    reading = CallReading(options.format_)
    shown = _ShownWork()
    given = options.replay_options
    return SessionsSource(
        listing, options.shared.setup, reading, command=options.command, options_given=given, watch=shown.watch
    )


def _listing(options: _ViewOptions) -> SessionListing:
    """The sessions that were found, with what could not be read."""
    from cachecost.analysis.bill.found_sessions import account_of_found
    from cachecost.analysis.viewing.listing import SessionListing
    from cachecost.analysis.viewing.logged_sessions import LoggedSessions

    setup, since = options.shared.setup, options.since
    logged = LoggedSessions(setup)
    is_counted = bool if since is None else partial(_is_since, since)
    with no_garbage_collection(), work_bar() as bar:
        found = read_session_files(options.paths, options.format_, bar, command="view")
        with bar.reading(found.logs):
            account = account_of_found(
                found, setup, options.format_, options.project, is_counted, print_diagnostic, logged.complete
            )
    for why, number in sorted(logged.unknown.items()):
        print_diagnostic(f"{count_text(number, 'call')} without a bill left out: {why}")
    if (found.sessions or found.logs or found.skipped) and not any(account.calls()):
        print_diagnostic("no sessions to show: no call has a bill or can be simulated")
    return SessionListing(account, logged, found.skipped, options.format_)


def _is_since(since: float, call: BilledCall) -> bool:
    return call.start is not None and call.start >= since


@dataclass(slots=True)
class _ShownWork:
    """Shows what the page waits for; of what is done at once only the first."""

    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def watch(self, what: str, files: Sequence[str]) -> Iterator[None]:
        """A bar on a terminal, for what takes over a second."""
        if not self._lock.acquire(blocking=False):
            yield
            return
        try:
            with work_bar() as bar, bar.reading(list(map(input_path, files)), what):
                if not files:
                    bar.begin(what)
                yield
        finally:
            self._lock.release()


def _choose(listing: SessionListing, named: str | None) -> str | None:
    """The id of the session named by the beginning of its id. Raises UsageError."""
    from cachecost.analysis.viewing.listing import session_id
    from cachecost.commands.session_choice import choose_session

    return None if named is None else session_id(choose_session(named, listing.keys_by_time()))


def _save(source: SessionsSource, opened: str | None, path: Path) -> None:
    """Write the page of a session: of the one that is named, or the only one. Raises UsageError."""
    from cachecost.live.viewer.saved_page import SavedPage
    from cachecost.live.viewer.static_files import read_static_files
    from cachecost.views.html.frame import write_page

    if opened is None and len(source.listing.keys) > 1:
        raise click.UsageError(f"--save: there are {len(source.listing.keys):,} sessions; name one with --session ID")
    page = SavedPage(source, read_static_files()).of_session(opened or _only(source.listing))
    write_page(path, page)
    print_diagnostic(f"{path} written")


def _only(listing: SessionListing) -> str:
    from cachecost.analysis.viewing.listing import session_id

    return session_id(listing.keys[0])


def _serve(source: SessionsSource, opened: str | None, port: int, opens_browser: bool) -> None:
    """Serve until stopped. Raises UsageError for a port that is taken."""
    from cachecost.live.loopback import PortTaken, address_of, listen
    from cachecost.live.viewer.app import viewer_app
    from cachecost.live.viewer.serving import serve_page
    from cachecost.live.viewer.static_files import read_static_files

    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        taken = listen(port)
    except PortTaken as error:
        raise click.UsageError(str(error)) from None
    with taken:
        address = f"{address_of(taken)}/{token}/" + (f"#/session/{opened}" if opened else "")
        app = viewer_app(source, read_static_files(), token, taken.getsockname()[1], print_diagnostic)
        serve_page(app, taken, lambda: _greet(address, opens_browser))


def _greet(address: str, opens_browser: bool) -> None:
    """Say where the page is, and open it where there is a display."""
    print_diagnostic(f"{address}  (Ctrl-C stops it)")
    if opens_browser and _has_display():
        Thread(target=_open_browser, args=(address,), daemon=True).start()


def _has_display() -> bool:
    """Whether a browser could show a window; those in a terminal would take the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in DISPLAYS)


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
