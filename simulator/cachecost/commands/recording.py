"""`cachecost import` makes recordings of logs; `cachecost recording` concatenates, cuts and splits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

import click

from cachecost.base.errors import ExitCode, exit_code
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, CheckedGroup, RecordingPath

out_option = options.option("-o --out", "Recording to write (.jsonl).", RecordingPath(), required=True)


@click.command("import", cls=CheckedCommand)
@options.logs_argument()
@options.option("-o --out", "Recording to write (.jsonl), or a folder.", RecordingPath(), required=True)
@options.content_option
@options.option(
    "--round-sizes",
    "With --content digest: round sizes and token counts up to multiples of N.",
    click.IntRange(1),
    1,
    metavar="N",
)
@options.option(
    "--key",
    "With --content digest: file with the key of the digests.  [default: a key derived from the log]",
    options.A_FILE,
)
@options.format_option
@options.option("--source", "Where the recording comes from, for its header.  [default: as in the log]")
@options.option("--licence", "Licence of the recording, for its header.  [default: as in the log]")
@options.skip_option
@options.force_option
@options.json_option
@options.shared_options
def import_(
    logs: tuple[Path, ...],
    out: Path,
    content: str,
    round_sizes: int,
    key: Path | None,
    format_: str,
    source: str | None,
    licence: str | None,
    may_skip: bool,
    force: bool,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Convert logs of any known format to recordings.

    LOG is a file, a folder, or the URL of one (s3://, gs://, az://, https://). Of several files, those that cannot
    be read are named on stderr and the others are imported; the exit code is then 2 unless --skip is given. An
    existing recording with other content is kept unless --force is given.
    """
    from cachecost.base.formatting import count_text, dollars, exact, tokens
    from cachecost.conversations.importing import ImportOptions, import_files
    from cachecost.tokens.tokenizers import count_content

    if content == "keep" and (key or round_sizes > 1):
        raise click.UsageError("--key and --round-sizes are for --content digest")
    stores, prices, host = cast("Literal['keep', 'digest']", content), shared.setup.prices, shared.host
    import_options = ImportOptions(
        stores, count_content, format_, source, licence, print_diagnostic, prices, host, round_sizes, key, force
    )
    with options.reading_bar(logs, "importing"), no_garbage_collection():
        report = import_files(logs, out, import_options)
    for fault in report.refused:
        print_diagnostic(str(fault))
    for why, number in sorted(report.unpriced_calls.items()):
        print_diagnostic(f"{count_text(number, 'call')} not in the billed dollars: {why}")
    if as_json:
        options.print_json({**report.json(), "billed_cost_usd": exact(report.billed_usd)}, indent=2, ensure_ascii=True)
    else:
        for one in report.imported:
            asked = f", {one.inquiries} inquiries" if one.inquiries else ""
            held = f"{one.calls} calls in {one.conversations} conversations{asked}"
            click.echo(f"{one.recording}  {held}  ({one.format}: {one.reason})")
        billed = report.billed_usage
        if billed.total_input:
            read, written, uncached = tokens(billed.read), tokens(billed.write), tokens(billed.input_tokens)
            parts = f"{read} read, {written} written, {uncached} uncached, {tokens(billed.output_tokens)} output"
            click.echo(f"billed {dollars(report.billed_usd)}: {parts}")
        if refused := len({fault.file for fault in report.refused}):
            click.echo(f"{refused} of {max(report.files, refused)} refused (see above)")
    if report.refused and not report.imported:
        return ExitCode.INVALID_INPUT
    skipped = [*report.refused, *report.skipped]
    return options.code_with_skipped(skipped, may_skip, exit_code(not_evaluated=report.unpriced_calls))


@click.group(cls=CheckedGroup)
def recording() -> None:
    """Concatenate, cut and split recordings."""


@recording.command()
@click.argument("logs", nargs=-1, required=True, type=options.A_FILE)
@out_option
@options.force_option
@options.format_option
def concat(logs: tuple[Path, ...], out: Path, force: bool, format_: str) -> None:
    """Write the calls of LOGS as one recording, so that they share one cache.

    The calls are ordered by time, or as given if any of them has no time.
    """
    from cachecost.conversations.editing import cutting

    with options.reading_bar(logs):
        written = cutting.concat(logs, out, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} calls of {len(logs)} recordings")


def parse_calls(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from cachecost.conversations.editing.cutting import parse_ranges

    try:
        return () if value is None else parse_ranges(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    return None if value is None else options.parse_seconds(value, "an ISO 8601 time like 2026-03-07T10:00:00Z")


@recording.command()
@click.argument("log", type=options.A_FILE)
@out_option
@options.option("--calls", "Calls by number, from 1: 10-20, 7, 10- or 1-3,7.", metavar="10-20", callback=parse_calls)
@options.option("--from start", "Calls at this time or later (ISO 8601).", metavar="TIME", callback=parse_time)
@options.option("--to end", "Calls before this time.", metavar="TIME", callback=parse_time)
@options.option("--session", "Calls of this session, as named in the log.", metavar="NAME")
@options.force_option
@options.format_option
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
    with options.reading_bar([log]):
        written = cutting.cut(log, out, selection, format_, print_diagnostic, overwrite=force)
    click.echo(f"{out}  {written.calls} of {written.of} calls")


@recording.command()
@click.argument("log", type=options.A_FILE)
@options.option("-o --out", "Folder to create.", RecordingPath(), required=True)
def split(log: Path, out: Path) -> None:
    """Write the calls of a request log to one file per session.

    The log is read line by line, so it may be of any size. Cache reads across sessions are lost. To sweep over the
    files: `cachecost sweep SCENARIO --grid "conversation.recording='DIR/*.jsonl'"`.
    """
    from cachecost.base.formatting import count_text
    from cachecost.conversations.editing import cutting as splitting

    with options.reading_bar([log]):
        sessions = splitting.split(log, out, print_diagnostic)
    click.echo(f"{out}  {count_text(sessions, 'session')}")


@recording.command()
def schema() -> None:
    """Print the JSON Schema of a line of a recording."""
    from importlib.resources import files

    click.echo((files("cachecost.conversations") / "recording.schema.json").read_text("utf-8"), nl=False)
