"""`cachecost recording`: recordings compared, put together, cut, split, and the schema of their lines."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import force_option
from cachecost.exit_codes import ExitCode

a_recording = click.Path(path_type=Path, exists=True, dir_okay=False)
out_option = click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="A .jsonl file.")
format_option = click.option("--format", "format_", default="auto", show_default=True, help="What the files are.")


@click.group()
def recording() -> None:
    """Compare recordings, put them together, cut and split them."""


@recording.command()
@click.argument("a", type=a_recording)
@click.argument("b", type=a_recording)
@format_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def diff(a: Path, b: Path, format_: str, as_json: bool) -> int:
    """What differs between A and B, call by call; exit code 0 if nothing does, 1 if anything.

    Calls are matched by what was sent. Names, sources and licences of the recordings are not compared.
    """
    from cachecost.conversations.editing.diffing import diff_files
    from cachecost.views.recording_diff import diff_lines, diff_object

    found = diff_files(a, b, format_, print_diagnostic)
    if as_json:
        click.echo(json.dumps(diff_object(found), indent=2, ensure_ascii=False))
    else:
        for note in found.notes:
            print_diagnostic(f"A is {a}, B is {b}: {note}")
        for line in diff_lines(found):
            click.echo(line)
    return ExitCode.OK if found.is_equal else ExitCode.CHECK_FAILED


@recording.command()
@click.argument("logs", nargs=-1, required=True, type=a_recording)
@out_option
@force_option
@format_option
def concat(logs: tuple[Path, ...], out: Path, force: bool, format_: str) -> None:
    """Write the calls of LOGS as one recording, in the order of their times, or as given where any has none.

    Their calls then share one cache.
    """
    from cachecost.conversations.editing import cutting

    written = cutting.concat(logs, out, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} calls of {len(logs)} recordings")


def _ranges(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from cachecost.conversations.editing.cutting import ranges

    try:
        return () if value is None else ranges(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from cachecost.conversations.times import seconds

    try:
        return None if value is None else seconds(value)
    except ValueError:
        raise click.BadParameter(f"expected an ISO 8601 time like 2026-03-07T10:00:00Z; got '{value}'") from None


@recording.command()
@click.argument("log", type=a_recording)
@out_option
@click.option("--calls", metavar="10-20", callback=_ranges, help="Calls by number, from 1: 10-20, 7, 10-, 1-3,7.")
@click.option("--from", "start", metavar="TIME", callback=_time, help="Calls at this time or later (ISO 8601).")
@click.option("--to", "end", metavar="TIME", callback=_time, help="Calls before this time.")
@click.option("--session", metavar="NAME", help="Calls that the log says are of this conversation.")
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
    """Write the calls of LOG for which all wishes hold. Of a conversation, what was said before the cut is not sent."""
    from cachecost.conversations.editing import cutting

    wish = cutting.Cut(calls, start, end, session)
    if wish == cutting.Cut():
        raise click.UsageError("expected one of --calls, --from, --to and --session: else the cut is the whole")
    written = cutting.cut(log, out, wish, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} of {written.of} calls")


@recording.command()
@click.argument("log", type=a_recording)
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="A folder that is not there yet.")
def split(log: Path, out: Path) -> None:
    """Write the calls of a request log as one file a session, however large it is: one line at a time.

    For `sweep --grid "conversation.recording='DIR/*.jsonl'"`. What one session reads that another one wrote is lost.
    """
    from cachecost.conversations.editing import splitting
    from cachecost.numbers import counted

    click.echo(f"{out}  {counted(splitting.split(log, out, print_diagnostic), 'session')}")


@recording.command()
def schema() -> None:
    """The JSON Schema of a line of a recording."""
    click.echo((files("cachecost.conversations") / "recording.schema.json").read_text("utf-8"), nl=False)
