"""`cachecost recording`: concatenate, cut and split recordings, and print their schema."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import force_option, format_option, reading_bar
from cachecost.commands.output_paths import CheckedGroup, RecordingPath

a_recording = click.Path(path_type=Path, exists=True, dir_okay=False)
out_option = click.option("-o", "--out", required=True, type=RecordingPath(), help="Recording to write (.jsonl).")


@click.group(cls=CheckedGroup)
def recording() -> None:
    """Concatenate, cut and split recordings."""


@recording.command()
@click.argument("logs", nargs=-1, required=True, type=a_recording)
@out_option
@force_option
@format_option
def concat(logs: tuple[Path, ...], out: Path, force: bool, format_: str) -> None:
    """Write the calls of LOGS as one recording, so that they share one cache.

    The calls are ordered by time, or as given if any of them has no time.
    """
    from cachecost.conversations.editing import cutting

    with reading_bar(logs):
        written = cutting.concat(logs, out, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} calls of {len(logs)} recordings")


def parse_calls(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from cachecost.conversations.editing.cutting import parse_ranges

    try:
        return () if value is None else parse_ranges(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from cachecost.base.times import seconds

    try:
        return None if value is None else seconds(value)
    except ValueError:
        raise click.BadParameter(f"expected an ISO 8601 time like 2026-03-07T10:00:00Z; got '{value}'") from None


@recording.command()
@click.argument("log", type=a_recording)
@out_option
@click.option("--calls", metavar="10-20", callback=parse_calls, help="Calls by number, from 1: 10-20, 7, 10- or 1-3,7.")
@click.option("--from", "start", metavar="TIME", callback=parse_time, help="Calls at this time or later (ISO 8601).")
@click.option("--to", "end", metavar="TIME", callback=parse_time, help="Calls before this time.")
@click.option("--session", metavar="NAME", help="Calls of this session, as named in the log.")
@force_option
@format_option
def cut(
    log: Path,
    out: Path,
    calls: Any,
    start: float | None,
    end: float | None,
    session: str | None,
    force: bool,
    format_: str,
) -> None:
    """Write the calls of LOG that match all filters.

    In a conversation, messages before the cut are not sent.
    """
    from cachecost.conversations.editing import cutting

    selection = cutting.CallSelection(calls, start, end, session)
    if selection == cutting.CallSelection():
        raise click.UsageError("expected at least one of --calls, --from, --to and --session")
    with reading_bar([log]):
        written = cutting.cut(log, out, selection, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} of {written.of} calls")


@recording.command()
@click.argument("log", type=a_recording)
@click.option("-o", "--out", required=True, type=RecordingPath(), help="Folder to create.")
def split(log: Path, out: Path) -> None:
    """Write the calls of a request log to one file per session.

    The log is read line by line, so it may be of any size. Cache reads across sessions are lost. To sweep over the
    files: `cachecost sweep SCENARIO --grid "conversation.recording='DIR/*.jsonl'"`.
    """
    from cachecost.base.formatting import count_text
    from cachecost.conversations.editing import cutting as splitting

    with reading_bar([log]):
        sessions = splitting.split(log, out, print_diagnostic)
    click.echo(f"{out}  {count_text(sessions, 'session')}")


@recording.command()
def schema() -> None:
    """Print the JSON Schema of a line of a recording."""
    click.echo((files("cachecost.conversations") / "recording.schema.json").read_text("utf-8"), nl=False)
