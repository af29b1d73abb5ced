"""`cachecost import`: logs of any known format to recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from cachecost.base.errors import ExitCode, exit_code
from cachecost.commands import options
from cachecost.commands.diagnostics import no_garbage_collection, print_diagnostic
from cachecost.commands.output_paths import RecordingPath, SectionedCommand

if TYPE_CHECKING:
    from cachecost.conversations.importing import ImportReport


@click.command("import", cls=SectionedCommand)
@options.logs_argument()
@click.option("-o", "--out", required=True, type=RecordingPath(), help="Recording to write (.jsonl), or a folder.")
@options.content_option
@click.option(
    "--round-sizes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="With --content digest: round sizes and token counts up to multiples of N.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --content digest: file with the key of the digests.  [default: a key derived from the log]",
)
@options.format_option
@click.option("--source", help="Where the recording comes from, for its header.  [default: as in the log]")
@click.option("--licence", help="Licence of the recording, for its header.  [default: as in the log]")
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
    from cachecost.base.formatting import count_text, exact
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
        _print_report(report)
    if report.refused and not report.imported:
        return ExitCode.INVALID_INPUT
    skipped = [*report.refused, *report.skipped]
    return options.code_with_skipped(skipped, may_skip, exit_code(not_evaluated=report.unpriced_calls))


def _print_report(report: ImportReport) -> None:
    from cachecost.base.formatting import dollars, tokens

    for one in report.imported:
        asked = f", {one.inquiries} inquiries" if one.inquiries else ""
        held = f"{one.calls} calls in {one.conversations} conversations{asked}"
        click.echo(f"{one.recording}  {held}  ({one.format}: {one.reason})")
    billed = report.billed_usage
    if billed.total_input:
        parts = f"{tokens(billed.read)} read, {tokens(billed.write)} written, {tokens(billed.input_tokens)} uncached"
        click.echo(f"billed {dollars(report.billed_usd)}: {parts}, {tokens(billed.output_tokens)} output")
    if refused := len({fault.file for fault in report.refused}):
        click.echo(f"{refused} of {max(report.files, refused)} refused (see above)")
