"""Writes a plan as files that can be used: a request log, a strategy, code for a client, and a README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.analysis.optimum.online_rule import cheapest_rule
from cachecost.analysis.optimum.optimum import Optimum, simulated_rows
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.base.atomic_files import open_whole, remove_file, write_text
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import dollars
from cachecost.conversations.calls import Call
from cachecost.conversations.logs import Logs, read_logs
from cachecost.conversations.model import Conversation, encode_record
from cachecost.providers.usage import ZERO
from cachecost.scenario.models import load_strategy
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import Workload, recorded_workload
from cachecost.views.optimum.client_code import (
    MARK,
    PlanFacts,
    breakpoint_lines,
    client_code,
    plan_readme,
    request_lines,
    rule_words,
    strategy_yaml,
)

REQUESTS, BREAKPOINTS, README = "requests.jsonl", "breakpoints.jsonl", "README.md"
STRATEGY, CLIENT = "strategy.yaml", "client.py"
OWN_FILES = (REQUESTS, BREAKPOINTS, STRATEGY, CLIENT, README)


@dataclass(frozen=True, slots=True)
class PlanSource:
    """What is planned: calls, the conversations that they belong to (none: they cannot be planned again), a setup.

    `setup` is that of a replay, without bills; `tokens` what --tokens says there. `arguments` and `options` are the
    paths and the options of such a replay as on a command line.
    """

    workload: Workload
    conversations: Sequence[Conversation]
    setup: ReplaySetup
    tokens: str | None
    arguments: str
    options: str

    def replay_requests(self, path: Path) -> Decimal:
        """USD of a request log, as `cachecost replay FILE` has it."""
        calls = list(read_logs(Logs([path])))
        workload = recorded_workload(str(path), calls, self.setup.with_recorded(calls, self.tokens))
        return sum((row.cost.total for row in workload.simulation().rows(calls)), ZERO)

    def replay_strategy(self, path: Path) -> Decimal | None:
        """USD of a strategy, as `cachecost replay LOG --strategy FILE` has it; None where not all can be planned."""
        if not any(conversation.model for conversation in self.conversations):
            return None
        recorded = [call for call in self.workload.calls if isinstance(call, Call)]
        setup = self.setup.with_recorded(recorded, self.tokens)
        alike = replace(setup, starts_warm=True, may_lack_prices=True, counts_answers=False)
        rows = replay_strategy(load_strategy(path), self.conversations, alike).rows
        return None if any(row.error for row in rows) else sum((row.cost.total for row in rows), ZERO)


def check_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Raises InputError where a plan cannot be written: over an input, or among files of somebody else's."""
    targets = {(folder / name).resolve() for name in OWN_FILES}
    if taken := next((path for path in inputs if path.resolve() in targets), None):
        raise InputError([Fault(str(taken), "is the input: expected another folder for --emit")])
    if folder.exists() and not folder.is_dir():
        raise InputError([Fault(str(folder), "expected a folder for --emit; got a file")])
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        words = (
            "expected a new or an empty folder, or one that --emit wrote; it has other files, which stay as they are"
        )
        raise InputError([Fault(str(folder), words)])


def _is_ours(folder: Path) -> bool:
    try:
        with (folder / README).open(encoding="utf-8") as stream:
            return stream.readline().rstrip() == MARK
    except (OSError, UnicodeDecodeError):
        return False


def write_plan(folder: Path, optimum: Optimum, source: PlanSource) -> list[str]:
    """Write the files, each whole or not at all, the README last; what to tell the user about them.

    Raises InputError where the folder cannot be written.
    """
    rule = cheapest_rule(_evaluator(source.workload), optimum.presets, optimum.with_pings)
    missing = _write_requests(folder, optimum, source)
    about = [f"{rule_words(rule.rule)}.", f"Replayed on {source.arguments}: {dollars(rule.usd)}."]
    write_text(folder / STRATEGY, strategy_yaml(rule.rule, [*about, "An item of `strategies:` in a scenario."]))
    write_text(folder / CLIENT, client_code(rule.rule))
    requests_usd = None if missing else source.replay_requests(folder / REQUESTS)
    strategy_usd = source.replay_strategy(folder / STRATEGY)
    facts = PlanFacts(optimum, rule, source.arguments, source.options, folder, requests_usd, strategy_usd, missing)
    write_text(folder / README, plan_readme(facts))
    log = BREAKPOINTS if missing else REQUESTS
    words = [
        f"{folder} written: {log} ({dollars(optimum.usd)}), {STRATEGY} and {CLIENT} ({dollars(rule.usd)}), {README}"
    ]
    return [*words, *([f"no {REQUESTS}: {missing}"] if missing else [])]


def _evaluator(workload: Workload) -> PlanEvaluator:
    return PlanEvaluator.of(workload.calls, workload.setup)


def _write_requests(folder: Path, optimum: Optimum, source: PlanSource) -> str:
    """Write the request log, or the breakpoints alone where content is missing; why it is, else ""."""
    outputs = [row.usage.output_tokens for row in simulated_rows(source.workload.setup, optimum.plan)]
    try:
        _write_lines(folder / REQUESTS, request_lines(optimum.plan, source.workload.calls, outputs))
    except CannotEvaluate as error:
        _write_lines(folder / BREAKPOINTS, breakpoint_lines(optimum.plan))
        remove_file(folder / REQUESTS)
        return str(error)
    remove_file(folder / BREAKPOINTS)
    return ""


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write JSON Lines, whole or not at all. Raises CannotWrite."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError([Fault(str(path.parent), f"cannot be made: {error.strerror}")]) from None
    with open_whole(path) as stream:
        stream.writelines(map(encode_record, lines))
