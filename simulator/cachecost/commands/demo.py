"""`cachecost demo`: the bill of a bundled session, and the verdict of a bundled comparison, for a first minute."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from cachecost.api.demo import bundled_folder
from cachecost.base.errors import ExitCode
from cachecost.commands.options import work_bar

SESSION = Path("scenarios/recordings/transcripts/entireio-cli-74_af160f6f80-fdb03ddf.jsonl")
SCENARIO = Path("scenarios/answer-inquiry.yaml")
RESULT = Path("reports/answer-inquiry/result.json")
MORE = "  more: "
PROPOSED = "answer_inquiry, forced"
"""What RFD 033 proposes: its strategies' names begin so."""


@click.command()
def demo() -> int:
    """Show the bill of a demo session with the change that pays, and a comparison of designs.

    Both come with cachecost: a session of Claude Code, and RFD 033's question how a tool should put a question to the
    agent, replayed on the session of its author. Nothing is sent, and nothing is written.
    """
    from cachecost.views.bill.text import wrap_line
    from cachecost.views.streams import report_console
    from cachecost.views.tables.table import PIPE_WIDTH

    folder = bundled_folder()
    console = report_console(sys.stdout, PIPE_WIDTH)
    for line in [*_bill_lines(folder / SESSION), "", *_verdict_lines(folder)]:
        indent = " " * (len(line) - len(line.lstrip()))
        wraps = line and not line.startswith(MORE)  # a command is copied whole
        for part in wrap_line(line.strip(), console.width, indent, f"{indent}  ") if wraps else [line]:
            console.print(part, markup=False, highlight=False, soft_wrap=True)
    return ExitCode.OK


def _bill_lines(path: Path) -> Iterator[str]:
    from cachecost.analysis.bill.advice import best_advice
    from cachecost.analysis.bill.found_sessions import account_of_found
    from cachecost.analysis.bill.summary import summarize
    from cachecost.base.formatting import dollars, percent
    from cachecost.providers.prices import PriceBook
    from cachecost.providers.rules import RuleBook
    from cachecost.sessions.reading import SessionReading
    from cachecost.simulation.setup import ReplaySetup
    from cachecost.views.bill.json_output import how_words
    from cachecost.views.bill.text import headline
    from cachecost.views.bill.words import cause_name

    account = account_of_found(SessionReading(None).read_all([path]), ReplaySetup(RuleBook(), PriceBook()))
    summary = summarize(account)
    total = summary.total
    yield "What did a session cost, and why? A demo session of Claude Code:"
    yield f"  {headline(summary).rpartition(' · ')[0]}"
    causes = ", ".join(f"{cause_name(one.cause)} {one.times} ×" for one in total.ranked_causes)
    yield f"  {dollars(total.rewritten)} ({percent(total.rewritten / total.cost)}) was spent re-caching: {causes}"
    for one in best_advice(account, 1):
        yield f"  {dollars(one.saved)} ({percent(one.saved / total.cost)}) less: {one.change}"
        yield f"    → {how_words(one)}"
    yield f"{MORE}cachecost bill {_path_from_here(path)}"


def _verdict_lines(folder: Path) -> Iterator[str]:
    from cachecost.base.formatting import change_text, dollar_column

    found = _comparison(folder)
    rows = {row["name"]: row for row in found["strategies"]}
    proposed = next((name for name in rows if name.startswith(PROPOSED)), found["compare_to"])
    remarks = {proposed: "as RFD 033", found["best"]: "tied for the cheapest" if found["tied"] else "cheapest"}
    names = list(dict.fromkeys([found["compare_to"], *remarks]))
    asked, costs = (
        dollar_column([Decimal(rows[name][key]) for name in names]) for key in ("cost_per_inquiry_usd", "cost_usd")
    )
    widths = [max(map(len, column)) for column in (names, asked, costs)]
    yield "What would another design cost? A tool's questions to the agent (RFD 033):"
    for cells in zip(names, asked, costs, strict=True):
        change = rows[cells[0]]["vs_first"]
        compared = [change_text(Decimal(change)) if change else "", remarks.get(cells[0], "")]
        name, question, cost = cells[0].ljust(widths[0]), cells[1].rjust(widths[1]), cells[2].rjust(widths[2])
        line = f"  {name}  {question} each  {cost} in all  {', '.join(filter(None, compared))}"
        yield line.rstrip()
    yield f"{MORE}cachecost run {_path_from_here(folder / SCENARIO)}"


def _comparison(folder: Path) -> Mapping[str, Any]:
    """The object of `run --json` for the scenario: the committed one if this version wrote it for it, else computed,
    without the variants and assumptions, which nothing here shows."""
    from cachecost.analysis.comparison.variant_run import VariantRun, versions_of
    from cachecost.scenario import load
    from cachecost.simulation.workload import scenario_setup

    scenario, source = load(folder / SCENARIO), (folder / SCENARIO).parent
    committed: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        committed = found if isinstance(found, dict) else {}
    if committed.get("versions") == versions_of(scenario.host, scenario_setup(scenario, source, ()).prices):
        strategies = [row["name"] for row in committed["strategies"]]
        if (committed["question"], strategies) == (scenario.question, [spec.name for spec in scenario.strategies]):
            return committed
    from cachecost.ledger.results import RunResult
    from cachecost.views.run.report import run_object

    with work_bar() as bar:
        main = VariantRun("", scenario, source)
        comparison = main.comparison(bar.replays(len(scenario.strategies)))
    return run_object(RunResult(scenario.name, scenario.question, main.about(), "", [comparison], []))


def _path_from_here(path: Path) -> str:
    near = os.path.relpath(path)
    return shlex.quote(str(path) if near.startswith(os.pardir) else near)
