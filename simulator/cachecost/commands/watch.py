"""`cachecost watch`: a running session, or a simulated API, as it goes on."""

from __future__ import annotations

import os
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import CannotEvaluate, ExitCode, Fault, InputError
from cachecost.commands.options import SharedOptions, format_option, option, shared_options
from cachecost.commands.output_paths import CheckedCommand

if TYPE_CHECKING:
    from cachecost.commands.watch_loop import Follower


def parse_usd(ctx: click.Context, param: click.Parameter, value: str) -> Decimal:
    """An amount of at least 0. Raises BadParameter."""
    try:
        amount = Decimal(value)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise click.BadParameter(f"expected dollars like 0.25; got '{value}'")
    return amount


@click.command(cls=CheckedCommand)
@click.argument("session", required=False, metavar="[SESSION|PATH|URL]")
@option(
    "--alarm-usd",
    "Alarm at a rewrite, or an expiry, that costs so much.",
    default="0.10",
    metavar="USD",
    callback=parse_usd,
)
@option(
    "--alarm-s",
    "Alarm so long before the cache expires.",
    click.FloatRange(0, 3600),
    60.0,
    show_default="60",
    metavar="SECONDS",
)
@option(
    "--every", "How often to look for changes.", click.FloatRange(0.1, 3600), 1.0, show_default="1", metavar="SECONDS"
)
@option("--once", "Print the present state and end.", is_flag=True)
@format_option
@shared_options
def watch(
    session: str | None,
    alarm_usd: Decimal,
    alarm_s: float,
    every: float,
    once: bool,
    format_: str,
    shared: SharedOptions,
) -> int:
    """Show a running session as it goes on: its calls, until when the cache is warm, the next message, alarms.

    SESSION is the beginning of an id among the sessions of this machine, PATH a session file, a request log or a folder
    (its newest), URL a running `cachecost serve`; without any, the newest session of this machine. q or Ctrl-C ends it.
    Where stdout is no terminal, each call is one line, and alarms go to stderr. Nothing is ever sent to a model.
    """
    from cachecost.commands.watch_loop import WatchProgress, follow, print_once
    from cachecost.conversations.input_files import is_url
    from cachecost.live.watching.server import FileFollower, ServerFollower, is_loopback

    follower: Follower
    if session is None or not is_url(session):
        follower = FileFollower(find_session_file(session), shared.setup, format_)
    elif is_loopback(session):
        follower = ServerFollower(session, shared.setup)
    else:
        raise click.UsageError(
            f"watch reads servers of this machine only, such as http://127.0.0.1:8000; got {session}"
        )
    progress = WatchProgress(follower, alarm_usd, alarm_s, every)
    try:
        if once:
            return ExitCode.OK if print_once(progress, sys.stdout) else ExitCode.NOT_EVALUATED
        follow(progress)
    finally:
        follower.close()
    return ExitCode.OK


def find_session_file(named: str | None) -> Path:
    """The session file that is meant. Raises UsageError, InputError, CannotEvaluate."""
    from cachecost.commands.sessions import choose_session, session_files
    from cachecost.live.watching.server import newest_file, newest_first, session_name

    path = Path(named) if named is not None else None
    if path is not None and path.exists() and not path.is_dir():
        return path
    if named is not None and path is not None and not path.exists():
        if os.sep in named or path.suffix:
            raise InputError([Fault(named, "no such file or folder")])
        files = {session_name(file): file for file in newest_first(session_files([]))}
        return files[choose_session(named, list(files), "SESSION")]
    newest = newest_file(session_files([] if path is None else [path]))
    if newest is None:
        raise CannotEvaluate("no session files found; name one: cachecost watch PATH")
    return newest
