"""`cachecost optimize`: the cheapest legal marks, lifetimes and pings for these calls, and the floor under them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cachecost.base.exit_codes import ExitCode
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.help import SectionedCommand
from cachecost.commands.options import (
    Ground,
    check_scenario,
    csv_option,
    format_option,
    ground_options,
    json_option,
    tokens_option,
    write_rows,
)
from cachecost.commands.progress import progress_bar, reading_bar
from cachecost.tokens.factory import ANCHORED, counter_name

if TYPE_CHECKING:
    from cachecost.conversations.calls import Call
    from cachecost.replay.setup import Terms

SCENARIOS = (".yaml", ".yml")


@click.command(cls=SectionedCommand)
@click.argument("path", metavar="LOG|SCENARIO", type=click.Path(path_type=Path, exists=True))
@format_option
@click.option(
    "--pings/--no-pings", default=True, show_default=True, help="Allow extra calls: keep-alives and pre-warming."
)
@tokens_option
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the result as an HTML page.")
@csv_option
@json_option
@ground_options
def optimize(
    path: Path,
    format_: str,
    pings: bool,
    tokens: str | None,
    html: Path | None,
    csv_file: Path | None,
    as_json: bool,
    base: Ground,
) -> int:
    """Find the cheapest legal marks, TTLs, keep-alives and pre-warming for the calls of LOG or SCENARIO.yaml.

    The calls of a log are taken as they were sent, without their marks; those of a scenario as its first strategy sends
    them.
    """
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.views.optimum.json_output import optimum_object
    from cachecost.views.optimum.text import print_optimum

    if path.suffix in SCENARIOS:
        check_scenario(path, tokens, base)
        first, calls, terms = _of_scenario(path, base)
    else:
        first, calls, terms = _of_log(path, format_, tokens, base)
    with progress_bar(path.name) as progress:
        found = optimum_of(calls, terms, pings, progress, first)
    if html is not None:
        from cachecost.views.html.frame import write_page
        from cachecost.views.optimum.page import optimum_page

        write_page(html, optimum_page(str(path), found, f"cachecost optimize {path} --html {html}"))
        print_diagnostic(f"{html} written")
    told = optimum_object(found)
    write_rows(csv_file, ({"strategy": name, "cost_usd": cost} for name, cost in told["strategies"].items()))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
        sys.stdout.buffer.flush()
    else:
        print_optimum(found, str(path), sys.stdout)
    return ExitCode.OK


def _of_log(path: Path, format_: str, tokens: str | None, base: Ground) -> tuple[str, Sequence[Call], Terms]:
    """The recorded calls; a recording that holds none is a conversation, planned without marks."""
    from cachecost.conversations.sessions import read_talks
    from cachecost.replay.setup import Terms
    from cachecost.replay.simulation import AS_RECORDED

    with reading_bar("reading", [path]):
        talks, recorded = read_talks(path, format_, print_diagnostic)
    has_bills = any(call.billed for call in recorded)
    counter = counter_name(tokens, has_bills)
    bills = recorded if tokens in (None, ANCHORED) else []
    terms = Terms(
        None, base.rules.as_of, base.prices, base.host, counter, base.readings, bills=bills, own=base.rules.own
    )
    if recorded:
        return AS_RECORDED, recorded, terms
    from cachecost.replay.workload import of_strategy

    return "none", of_strategy("none", talks, terms).calls, terms


def _of_scenario(path: Path, base: Ground) -> tuple[str, Sequence[Call], Terms]:
    """The calls that the scenario's first strategy makes, and the scenario's own terms."""
    from cachecost.replay.workload import of_strategy, terms_of
    from cachecost.scenario import load, talks_of

    scenario = load(path, [])
    talks, bills = talks_of(scenario, path.parent, print_diagnostic)
    terms = terms_of(scenario, path.parent, bills, base.readings, base.rules.own)
    first = next(spec for spec in scenario.strategies if spec.name == scenario.first)
    return first.name, of_strategy(first, talks, terms).calls, terms
