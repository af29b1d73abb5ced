"""`cachecost validate`: predicted against billed, call by call."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import Ground, csv_option, ground_options, write_rows
from cachecost.exit_codes import ExitCode

COUNTERS = ("ctok", "tiktoken")


@click.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--tokens",
    type=click.Choice(COUNTERS),
    help="What fills the gaps between billed lengths.  [default: ctok where installed]",
)
@click.option("--unanchored", is_flag=True, help="Use no bill at all for sizes: what a prediction without usage gives.")
@click.option("--readings", is_flag=True, help="Compare the readings of every rule switch: which do the bills support?")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with a residual chart there.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the evidence page: which rules bills show.")
@csv_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@ground_options
def validate(
    logs: tuple[Path, ...],
    tokens: str | None,
    unanchored: bool,
    readings: bool,
    html: Path | None,
    out: Path | None,
    csv_file: Path | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Predict the usage of each call of LOGS and compare it with what was billed. Each file is a cache of its own."""
    from cachecost.analysis.evidence import evidence_of, evidence_of_hosts
    from cachecost.analysis.validation import Validation
    from cachecost.views.fidelity_json import fidelity_object, judgement_row
    from cachecost.views.fidelity_page import write_evidence, write_html

    validation = Validation(logs, base.rules, base.prices, tokens, base.host, not unanchored)
    fidelity = validation.fidelity()
    if readings:
        fidelity = replace(fidelity, readings=list(validation.readings()))
    evidence, claims = evidence_of(fidelity.judgements), evidence_of_hosts(fidelity.judgements)
    if html is not None:
        write_html(fidelity, evidence, claims, html)
    if out is not None:
        again = f"cachecost validate {_shown(logs)}{' --readings' if readings else ''} --out {out}"
        print_diagnostic(f"{write_evidence(fidelity, evidence, claims, out, again)} written")
    write_rows(csv_file, map(judgement_row, fidelity.judgements))
    if as_json:
        sys.stdout.write(json.dumps(fidelity_object(fidelity), indent=2) + "\n")
    else:
        from cachecost.views.fidelity_text import print_fidelity

        print_fidelity(fidelity, sys.stdout)
    return ExitCode.OK if fidelity.judgements else ExitCode.NOT_EVALUATED


def _shown(logs: tuple[Path, ...]) -> str:
    folders = sorted({str(log.parent / f"*{log.suffix}") for log in logs})
    return " ".join(map(str, logs) if len(logs) <= len(folders) else folders)
