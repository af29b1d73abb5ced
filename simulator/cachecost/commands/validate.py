"""`cachecost validate`: predicted against billed, call by call."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cachecost.base.atomic_files import write_whole
from cachecost.base.errors import InputError, exit_code
from cachecost.base.structs import replace
from cachecost.commands import options
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, OutputPath
from cachecost.tokens.factory import TEXT_COUNTERS


@click.command(cls=CheckedCommand)
@options.logs_options()
@options.option(
    "--tokens",
    "Token counter for text between two billed lengths.  [default: ctok if installed, else tiktoken]",
    options.NameChoice(TEXT_COUNTERS),
)
@options.option(
    "--uncalibrated", "Do not calibrate token counts on the bills, as in a prediction without them.", is_flag=True
)
@options.option("--assumptions", "Compare the assumptions about open rules: which do the bills support?", is_flag=True)
@options.html_option("Also write an HTML page with a residual chart.")
@options.option(
    "--out", "Folder for a page that shows which rules the bills support.  [default: not written]", OutputPath()
)
@options.csv_option
@options.json_option
@options.shared_options
def validate(
    logs: options.CommandLogs,
    tokens: str | None,
    uncalibrated: bool,
    assumptions: bool,
    html: Path | None,
    out: Path | None,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Compare the predicted usage of each call of LOG with its billed usage.

    LOG is a file, or a folder of files. Each file is a cache of its own; a call that several files hold counts once.
    The exit code is 3 if no call can be compared.
    """
    from cachecost.analysis.fidelity.judging import evidence_of, evidence_of_hosts
    from cachecost.analysis.fidelity.validation import Validation
    from cachecost.views.fidelity.text import fidelity_object, judgement_row

    validation = Validation([one.path for one in logs.files()], shared.setup, tokens, not uncalibrated, logs.format_)
    with options.work_bar() as bar:
        with bar.reading([*validation.logs]):
            fidelity = validation.fidelity()
        bar.begin("comparing assumptions")
        support = list(validation.readings()) if assumptions and not (fidelity.faults and logs.single) else []
    if fidelity.faults and logs.single:
        raise InputError(fidelity.faults)
    logs.skip(InputError(fidelity.faults))
    if assumptions:
        fidelity = replace(fidelity, readings=support)
    if out is not None:
        fidelity = replace(fidelity, estimates=validation.estimates())
    evidence, claims = evidence_of(fidelity.judgements), evidence_of_hosts(fidelity.judgements)
    if html is not None:
        from cachecost.views.fidelity.page import fidelity_page

        write_whole(html, fidelity_page(fidelity, evidence, claims).encode("utf-8"))
    if out is not None:
        from cachecost.views.fidelity.page import write_evidence

        folders = sorted({str(log if log.is_dir() else log.parent / f"*{log.suffix}") for log in logs.paths})
        named = " ".join(map(str, logs.paths) if len(logs.paths) <= len(folders) else folders)
        again = f"cachecost validate {named}{' --assumptions' if assumptions else ''} --out {out}"
        print_diagnostic(f"{write_evidence(fidelity, evidence, claims, out, again)} written")
    options.write_rows(csv_file, map(judgement_row, fidelity.judgements))
    if as_json:
        options.print_json(fidelity_object(fidelity), indent=2, ensure_ascii=True)
    else:
        from cachecost.views.fidelity.text import print_fidelity

        print_fidelity(fidelity, sys.stdout)
    return logs.exit_code(exit_code(not_evaluated=not fidelity.judgements))
