"""`cachecost view`: a page on this machine to look around sessions."""

from __future__ import annotations

from pathlib import Path

import click

from cachecost.base.errors import ExitCode
from cachecost.base.extras import require
from cachecost.commands.bill import parse_moment
from cachecost.commands.options import LogPath, SharedOptions, format_option, port_option, shared_options, write_html
from cachecost.commands.output_paths import PagePath, SectionedCommand
from cachecost.commands.view_sources import (
    ViewOptions,
    comparison_source,
    find_sessions,
    report_folder,
    report_source,
    serve_source,
    sessions_source,
)


@click.command(cls=SectionedCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=LogPath())
@click.option(
    "--since", metavar="WHEN", callback=parse_moment, help="Only calls since then: 30d, 12h, 2w, or a date (UTC)."
)
@click.option("--project", metavar="TEXT", help="Only sessions whose folder contains this text.")
@click.option("--session", "session", metavar="ID", help="Open at this session; the beginning of its id is enough.")
@click.option("--save", type=PagePath(), help="Write the page of the session as one HTML file, and start no server.")
@click.option("--beside", is_flag=True, help="Compare two recordings, call by call: PATH is given twice.")
@click.option("--against", metavar="REV", help="Compare a report with itself as of this git revision.")
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
    beside: bool,
    against: str | None,
    no_browser: bool,
    port: int,
    format_: str,
    shared: SharedOptions,
) -> int:
    """Look around sessions in the browser: each call's prompt, what was written again and why, and what if.

    PATH is a file, a folder, or the URL of one (s3://, gs://, az://, https://); without it, the sessions of the
    agents found on this machine. PATH may also be a report of `run` (reports/NAME): then its strategies are shown. The
    page is on this machine only and loads nothing from the network. Ctrl-C stops it.
    """
    require("cachecost view", "starlette", "uvicorn")
    options = ViewOptions(paths, format_, since, project, session, beside, against, shared)
    folder = None if beside else report_folder(paths)
    if folder is None and not beside and against is None:
        return _view_sessions(options, save, port, not no_browser)
    if save or session:
        raise click.UsageError("--save, --session: for sessions only")
    source = comparison_source(options) if beside else report_source(folder, options)
    serve_source(source, "", port, not no_browser)
    return ExitCode.OK


def _view_sessions(options: ViewOptions, save: Path | None, port: int, opens_browser: bool) -> ExitCode:
    listing = find_sessions(options, options.paths)
    if not listing.keys:
        return ExitCode.INVALID_INPUT if listing.skipped else ExitCode.OK
    from cachecost.analysis.viewing.listing import session_id
    from cachecost.commands.session_choice import choose_session

    source, opened = sessions_source(listing, options), None
    if options.session is not None:
        opened = session_id(choose_session(options.session, listing.keys_by_time()))
    if save is None:
        serve_source(source, f"#/session/{opened}" if opened else "", port, opens_browser)
        return ExitCode.OK
    from cachecost.live.viewer.saved_page import SavedPage, read_static_files

    if opened is None and len(listing.keys) > 1:
        raise click.UsageError(f"--save: there are {len(listing.keys):,} sessions; name one with --session ID")
    write_html(save, SavedPage(source, read_static_files()).of_session(opened or session_id(listing.keys[0])))
    return ExitCode.OK
