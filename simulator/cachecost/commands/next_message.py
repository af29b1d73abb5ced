"""`cachecost next`: what the next message of a session costs."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import ExitCode
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.sessions import read_session_files
from cachecost.tokens.factory import CALIBRATED, COUNTERS

if TYPE_CHECKING:
    from cachecost.analysis.next_message.choices import NextSession


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float:
    """A moment in seconds since the epoch; now where none is named. Raises BadParameter."""
    return time.time() if value is None else options.parse_seconds(value, "a time like 2026-03-07T14:30 (UTC)")


@click.command("next", cls=CheckedCommand)
@click.argument("session", required=False, metavar="[SESSION|PATH]")
@options.option("--tokens", "Length of the message in tokens.", click.IntRange(0, 10**8), metavar="N")
@options.option("--message", "The message itself: a text, or JSON with role and content.", options.A_FILE)
@options.option(
    "--output", "Also price an answer of N tokens.", click.IntRange(0, 10**8), 0, show_default=False, metavar="N"
)
@options.option("--at", "When it is sent (UTC).  [default: now]", metavar="TIME", callback=parse_time)
@options.option("--model models", "Also with this model; repeatable.", multiple=True, metavar="MODEL")
@options.option("--tools", "Also with tools of this size added.", click.IntRange(0, 10**8), metavar="TOKENS")
@options.option(
    "--counter",
    f"{options.COUNTERS_HELP} calibrated is calibrated on the bills of the log.  [default: calibrated, else auto]",
    options.NameChoice((CALIBRATED, *COUNTERS)),
)
@options.format_option
@options.json_option
@options.shared_options
@no_garbage_collection()
def next_(
    session: str | None,
    tokens: int | None,
    message: Path | None,
    output: int,
    at: float,
    models: tuple[str, ...],
    tools: int | None,
    counter: str | None,
    format_: str,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Show what the next message of a session costs, until when its cache is warm, and what a change would do.

    SESSION is the beginning of an id among the sessions of this machine, PATH a session file, a request log or a
    folder, whose latest session is meant; without either, the latest session of this machine. A message is as long as
    those of the session typically are. cachecost never sends anything itself.
    """
    from cachecost.analysis.next_message.choices import NextRequest, count_message, parse_content
    from cachecost.base.errors import CannotEvaluate
    from cachecost.base.limits import read_whole
    from cachecost.views.next.json_output import next_object, print_next

    if tokens is not None and message is not None:
        raise click.UsageError("--tokens: not with --message, which has its own length")
    found = _find_session(session, counter, format_, shared)
    if found is None:
        raise CannotEvaluate("no call of a main thread with a bill was found")
    content, length = None, tokens
    if message:
        content = parse_content(read_whole(message).decode("utf-8", "replace"), str(message))
        length = count_message(content, shared.setup, found.state, counter)
    asked = NextRequest(at, length, content, output, models, tools)
    choice, state = found.choose(asked), found.state
    new = state.typical_new_tokens if length is None else length
    if as_json:
        made = next_object(choice, state, at, new, found.is_simulated)
        options.print_json(made)
    else:
        source = ", prices its first call only, and takes the cached prompt's length from the last bill."
        if found.is_simulated:
            source = " and prices its first call only, simulated from the requests of the log."
        print_next(choice, state, at, new, source, local_time, sys.stdout)
    return ExitCode.NOT_EVALUATED if choice.message.cost is None else ExitCode.OK


def local_time(at: float) -> str:
    """A time of the day as this machine shows it, with the date where it is another day."""
    moment, today = datetime.fromtimestamp(at).astimezone(), datetime.now().astimezone()
    return f"{moment:%H:%M}" if moment.date() == today.date() else f"{moment:%Y-%m-%d %H:%M}"


def _find_session(
    named: str | None, counter: str | None, format_: str, shared: options.SharedOptions
) -> NextSession | None:
    """The session that is named, or the latest one. Raises UsageError, CannotEvaluate."""
    from cachecost.analysis.bill.found_sessions import account_of_found
    from cachecost.analysis.bill.timeline import sessions_by_time
    from cachecost.analysis.next_message.choices import next_session
    from cachecost.commands.sessions import choose_session
    from cachecost.conversations.input_files import input_path, is_url
    from cachecost.conversations.logs import Logs
    from cachecost.simulation.workload import read_workload

    is_path = named is not None and (is_url(named) or Path(named).exists())
    paths = (input_path(named),) if named is not None and is_path else ()
    with options.work_bar() as bar:
        found = read_session_files(paths, format_, bar, command="next")
        with bar.reading(found.logs):
            account = account_of_found(found, shared.setup, format_)
            sessions = sessions_by_time(account)
            if named is not None and not is_path:
                key = choose_session(named, sessions, "SESSION")
            elif not sessions:
                return None
            else:
                key = sessions[0]
            workload = read_workload(Logs(found.logs, format_), shared.setup, counter) if found.logs else None
            return next_session(account, key, workload)
