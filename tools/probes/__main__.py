"""`python -m tools.probes`: small probes against the real API that test the open rules, within a budget.

The price of each probe is printed first. The key is read from ANTHROPIC_API_KEY. What the probes find is written to a
dated rules file that every command of cachecost accepts with --rules.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from secrets import token_hex

import click

from cachecost.base.errors import ExitCode, exit_code
from cachecost.base.extras import require
from cachecost.commands.diagnostics import exit_code as outcome_of
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.live import BASE_URL, KEY, NO_KEY, confirm_spending, parse_url, parse_usd
from cachecost.commands.options import A_FILE
from cachecost.commands.output_paths import RecordingPath
from cachecost.live.clock import ScaledClock
from cachecost.live.driver.budget import CallPricing, DollarBudget
from cachecost.live.driver.sending import RetryPolicy, sender_to
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, RuleBook, own_rules
from tools.probes import PricedProbe, ProbeFinding, plan, select_probes, summary, verify, write

NONCE_BYTES = 4


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--model", required=True, metavar="MODEL", help="Model to probe.")
@click.option(
    "--max-usd", required=True, metavar="X", callback=parse_usd, help="Spending limit in dollars; never exceeded."
)
@click.option("--probe", "names", multiple=True, metavar="NAME", help="Send only this probe; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent and what it costs, and exit. Needs no key.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation before the first call.")
@click.option("--base-url", envvar=BASE_URL, callback=parse_url, metavar="URL", help="URL of the API.")
@click.option("--retries", type=click.IntRange(0, 20), default=4, show_default=True, help="Retries per call.")
@click.option("--rules", "rules_file", type=A_FILE, help="Rules file that overrides the built-in rules.")
@click.option("--prices", type=A_FILE, help="Price file (TOML) that overrides the public prices.")
@click.option("--out", type=RecordingPath(), help="Rules file to write.  [default: rules-MODEL-DATE.toml]")
def main(
    model: str,
    max_usd: Decimal,
    names: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    base_url: str | None,
    retries: int,
    rules_file: Path | None,
    prices: Path | None,
    out: Path | None,
) -> int:
    """Send small probes that settle open rules to the real API. Run it in a checkout of cachecost.

    The key is read from ANTHROPIC_API_KEY. The price of each probe is printed first, and what they find is written to
    a dated rules file for --rules.
    """
    require("tools.probes", "anthropic", "httpx2")
    day = datetime.now(UTC).date()
    book = PriceBook.load(prices, day)
    rules = RuleBook(as_of=day, own=own_rules(rules_file) if rules_file else NO_OWN_RULES)
    planned = plan(model, book, rules, select_probes(names), day=day)
    for priced in planned:
        click.echo(priced.announcement)
    click.echo(f"{summary(planned)}; the budget is ${max_usd}")
    if dry_run:
        return ExitCode.OK
    if not os.environ.get(KEY):
        raise click.ClickException(NO_KEY)
    confirm_spending(max_usd, yes)
    run = ProbeSession(model, planned, book, max_usd, base_url, retries)
    return run.verify_rules(out or Path(f"rules-{model}-{day}.toml"), day)


@dataclass(frozen=True, slots=True)
class ProbeSession:
    """The probes of one model, with the budget and the address they are sent with."""

    model: str
    planned: Sequence[PricedProbe]
    book: PriceBook
    limit: Decimal
    base_url: str | None
    retries: int

    def verify_rules(self, out: Path, day: date) -> int:
        """Send the probes, print each finding as it comes, and write the rules file. Exit code 3 if any was not run."""
        findings: list[ProbeFinding] = []
        try:
            asyncio.run(self._send(findings))
        finally:
            if findings:
                write(findings, out, day)
                print_diagnostic(f"{out} written; use it with --rules {out}")
        spent = sum((finding.dollars for finding in findings), Decimal(0))
        settled = sum(finding.value is not None for finding in findings)
        sys.stdout.write(f"{len(findings)} questions asked, {settled} settled, ${spent:.4f} billed\n")
        is_incomplete = any(finding.explanation.startswith(("not run", "stopped")) for finding in findings)
        return exit_code(not_evaluated=is_incomplete)

    async def _send(self, findings: list[ProbeFinding]) -> None:
        """Findings are added to the list as they come, so that an interruption keeps them."""
        clock, nonce = ScaledClock(), token_hex(NONCE_BYTES)
        pricing, budget = CallPricing(self.book), DollarBudget(self.limit)
        retries = RetryPolicy(self.retries, nonce)
        async with sender_to(os.environ[KEY], self.base_url, pricing, budget, clock, retries) as sender:
            await verify(sender, self.model, clock, self.planned, nonce, say=click.echo, keep=findings.append)


if __name__ == "__main__":
    sys.exit(outcome_of(lambda: main.main(prog_name="python -m tools.probes", standalone_mode=False)))
