"""`cachecost whatif`: what other ways to send a recording would have cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import Ground, csv_option, ground_options, tokens_option, write_rows
from cachecost.commands.progress import progress_bar, reading_bar
from cachecost.exit_codes import ExitCode


@click.command()
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "format_", default="auto", show_default=True, help="What the recording is.")
@click.option("--jointly", metavar="A,B,…", help="Replay these promises together too, by their names in the table.")
@click.option(
    "--action",
    "actions",
    multiple=True,
    metavar="ACTION",
    help="What switching now costs: model=MODEL, effort=low, tool_choice=any, tools+=NAME, tools-=NAME, format=json.",
)
@click.option("--at", type=int, metavar="CALL", help="Switch after this call, from 1.  [default: the last]")
@click.option("--readings", is_flag=True, help="Ask under other readings of the open rules, however long LOG is.")
@tokens_option
@csv_option
@click.option("--json", "as_json", is_flag=True, help="One object.")
@ground_options
def whatif(
    log: Path,
    format_: str,
    jointly: str | None,
    actions: tuple[str, ...],
    at: int | None,
    readings: bool,
    tokens: str | None,
    csv_file: Path | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Price other ways to send LOG: lifetimes, pings, marks, models, hosts, batches, compaction, alone and jointly.

    Each is replayed beside LOG as it was sent, and only the difference is believed; "not supported by the data" is an
    answer.
    """
    from cachecost.analysis.whatif.study import what_if
    from cachecost.traffic import recorded
    from cachecost.views.whatif_json import whatif_object
    from cachecost.views.whatif_text import print_whatif

    with reading_bar("reading", [log]):
        traffic = recorded(log, base.rules, base.prices, base.host, tokens, format_, print_diagnostic)
    names = [name.strip() for name in (jointly or "").split(",") if name.strip()]
    with progress_bar("replaying") as progress:
        told = what_if(traffic, names, actions, at, readings or None, progress)
    as_object = whatif_object(told)
    write_rows(csv_file, as_object["promises"])
    if as_json:
        sys.stdout.write(json.dumps(as_object, ensure_ascii=False) + "\n")
    else:
        print_whatif(told, sys.stdout)
    return ExitCode.OK
