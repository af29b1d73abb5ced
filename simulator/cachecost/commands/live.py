"""`cachecost live`: a scenario's strategies sent to the real API within a budget, billed against predicted."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from cachecost.base.errors import ExitCode, exit_code
from cachecost.base.extras import require
from cachecost.base.structs import replace
from cachecost.commands import options
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import CheckedCommand, RecordingPath
from cachecost.commands.workloads import load_with_strategies

if TYPE_CHECKING:
    from cachecost.live.driver.budget import AnsweredCall, DollarBudget
    from cachecost.live.driver.planning import LiveCall, LiveOptions, Plan

JOURNAL = "journal.jsonl"
KEY, BASE_URL = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NO_KEY = (
    f"{KEY} is not set; nothing was sent. To try it for free, start `cachecost serve` and pass "
    f"--base-url http://127.0.0.1:8787 with any {KEY}, or use --dry-run, which needs no key"
)


def parse_usd(ctx: click.Context, param: click.Parameter, value: str) -> Decimal:
    """Dollars above 0. Raises BadParameter."""
    try:
        amount = Decimal(value.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount <= 0:
        raise click.BadParameter(f"expected dollars above 0, like 0.50; got '{value}'")
    return amount


def parse_url(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The URL of the API: keys are sent only over TLS or within this machine. Raises BadParameter."""
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.BadParameter("expected a URL like https://api.anthropic.com or http://127.0.0.1:8787")
    if parts.username is not None or parts.password is not None:
        raise click.BadParameter(f"expected no user or password in it: the key comes from {KEY}")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise click.BadParameter(f"expected https, as the key would be sent in the clear to {parts.hostname}")
    return value


@click.command(cls=CheckedCommand)
@click.argument("scenario", type=click.Path(path_type=Path))
@options.option(
    "--max-usd", "Spending limit in dollars; never exceeded.", required=True, metavar="X", callback=parse_usd
)
@options.set_option
@options.option(
    "--strategy only", "Send only this strategy; repeatable.  [default: all]", multiple=True, metavar="NAME"
)
@options.option("--dry-run", "Show what would be sent and what it costs, and exit. Needs no key.", is_flag=True)
@options.option("--yes", "Do not ask for confirmation before the first call.", is_flag=True)
@options.option(
    "--base-url",
    f"URL of the API.  [default: {BASE_URL} if set, else the public API]",
    envvar=BASE_URL,
    callback=parse_url,
    metavar="URL",
)
@options.option("--max-output output", "Limit of output tokens per answer.", click.IntRange(1), 16)
@options.option("--pace", "Factor for the pauses between calls.", click.FloatRange(0, 100, min_open=True), 1.0)
@options.option("--parallel", "Strategies to run at once.", click.IntRange(1), 1)
@options.option("--retries", "Retries per call.", click.IntRange(0, 20), 4)
@options.option("--timeout", "Seconds without a byte after which a call has failed.", click.FloatRange(1), 300.0)
@options.option("--beta betas", "Value for the anthropic-beta header; repeatable.", multiple=True, metavar="NAME")
@options.option("--out", "Folder for the files.  [default: live-NAME-DATE]", RecordingPath())
@options.option("--resume", "Journal of the interrupted run to continue.", options.A_FILE)
@options.json_option
@options.rule_option
@options.prices_option
def live(scenario: Path, **values: Any) -> int:
    """Send the strategies of SCENARIO.yaml to the real API, and compare predicted with billed usage.

    The key is read from ANTHROPIC_API_KEY. An interrupted run is continued with --resume; calls that were answered are
    not sent and paid again.
    """
    require("cachecost live", "anthropic", "httpx2")
    if not values["dry_run"] and not os.environ.get(KEY):
        raise click.ClickException(NO_KEY)
    from cachecost.live.driver.planning import plan as make_plan
    from cachecost.live.driver.run import plan_json, plan_sentences, print_plan
    from cachecost.live.driver.sending import read_journal

    rules = options.parse_assumptions(values["rule"])
    sets = [*values["sets"], *(f"rules.{name}={value}" for name, value in rules.items())]
    loaded = load_with_strategies(scenario, sets, "live sends what strategies plan")
    known = [spec.name for spec in loaded.strategies]
    for name in values["only"]:
        options.check_name("--strategy", name, known)
    run, now = "00000000" if values["dry_run"] else token_hex(4), time.time()
    if values["resume"] is not None:
        journal = read_journal(values["resume"])
        run, now = journal.run, journal.at
    plan = make_plan(loaded, scenario.parent, run, now, _plan_options(values), values["prices"])
    if plan.faults:
        faults = "\n".join(plan.faults)
        raise click.ClickException(f"nothing was sent; these calls cannot be sent:\n{faults}")
    parallel, is_dry = values["parallel"], values["dry_run"]
    if not values["as_json"]:
        print_plan(plan, values["max_usd"], parallel)
    elif is_dry:
        options.print_json(plan_json(plan, values["max_usd"], parallel), indent=2, ensure_ascii=True)
    for sentence in plan_sentences(plan, values["max_usd"], values["pace"], values["output"]):
        print_diagnostic(sentence)
    if is_dry:
        return ExitCode.OK
    confirm_spending(values["max_usd"], values["yes"])
    return _send(plan, values)


def confirm_spending(max_usd: Decimal, yes: bool) -> None:
    """Ask before the first call, unless `yes`. Raises Abort, or UsageError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("stdin is not a terminal; nothing was sent. Add --yes to confirm")
    click.confirm(f"Spend up to ${max_usd}?", abort=True, err=True)


def _plan_options(values: dict[str, Any]) -> LiveOptions:
    from cachecost.live.driver.planning import LiveOptions

    return LiveOptions(values["output"], values["pace"], values["only"])


def _send(plan: Plan, values: dict[str, Any]) -> int:
    """Run to the end and print the result; after an interruption, print how to continue."""
    import asyncio

    from cachecost.analysis.fidelity.validation import Validation
    from cachecost.live.clock import ScaledClock
    from cachecost.live.driver.run import RECORDING, LiveRun, drive, driven_json, print_driven, sentences
    from cachecost.live.driver.sending import Journal
    from cachecost.views.fidelity.text import fidelity_object, print_fidelity

    limits = [values[name] for name in ("base_url", "parallel", "retries", "betas", "timeout")]
    job = LiveRun(plan, os.environ[KEY], values["max_usd"], ScaledClock(), *limits)
    day = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = values["out"] or Path(f"live-{plan.scenario.name}-{day}")
    path = values["resume"] or folder / JOURNAL
    if values["resume"] is None and path.exists():
        raise click.UsageError(f"{folder} contains a run already; continue it with --resume {path}")
    if not path.exists() and (recording := folder / RECORDING).exists():
        raise click.UsageError(f"{recording} exists already and is of no run here; choose another --out")
    with Journal(path, plan.run, plan.digest, plan.scenario.name, asdict(_plan_options(values)), plan.at) as journal:
        try:
            driven = asyncio.run(drive(job, journal, _print_call))
        except KeyboardInterrupt:
            print_diagnostic(f"answers so far are kept; continue with --resume {journal.path}")
            raise
    fidelity = None
    if any(outcome.calls for outcome in driven.outcomes):
        setup = replace(driven.plan.terms.each_on_its_day(), counters={})
        fidelity = Validation([driven.recording], setup).fidelity()
    if values["as_json"]:
        document = {**driven_json(driven), "validate": fidelity_object(fidelity) if fidelity else None}
        options.print_json(document, indent=2, ensure_ascii=True)
    else:
        print_driven(driven)
        if fidelity:
            click.echo(f"\ncachecost validate {driven.recording}")
            print_fidelity(fidelity, sys.stdout)
    for sentence in sentences(driven):
        print_diagnostic(sentence)
    ended = driven.ended
    return exit_code(not_evaluated=ended.why or ended.failed or ended.undone)


def _print_call(step: LiveCall, sent: AnsweredCall, budget: DollarBudget) -> None:
    from cachecost.base.formatting import dollars

    usage = sent.usage
    print_diagnostic(
        f"{step.label}  read {usage.read:,}  written {usage.write:,}  uncached {usage.input_tokens:,}  "
        f"{dollars(budget.spent_usd)} of {dollars(budget.limit)}"
    )
    if sent.doubt:
        print_diagnostic(f"{step.label}: {sent.doubt}")
