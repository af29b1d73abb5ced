"""`cachecost live --verify-rules`: small probes against the real API that test the open rules."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from cachecost.base.exit_codes import exit_code
from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.live.probes import ProbeFinding

SEED_BYTES = 4


class RuleVerification:
    """One run of the probes on one model, within a budget."""

    def __init__(self, model: str, names: Sequence[str], limit: Decimal, prices: Path | None, out: Path | None) -> None:
        from cachecost.live import probes
        from cachecost.providers.prices import PriceBook
        from cachecost.providers.rules import RuleBook

        self.model = model
        self.limit = limit
        self.day: date = datetime.now(UTC).date()
        self.out = out or Path(f"rules-{model}-{self.day}.toml")
        self.book = PriceBook.load(prices, self.day)
        self.planned = probes.plan(
            model, self.book, RuleBook(as_of=self.day), probes.select_probes(names), day=self.day
        )

    def show(self) -> None:
        """Print the highest cost of each probe, before anything is sent."""
        from cachecost.live import probes

        for priced in self.planned:
            click.echo(priced.announcement)
        click.echo(f"{probes.summary(self.planned)}; the budget is ${self.limit}")

    def run(self, key: str, base_url: str | None, retries: int) -> int:
        """Send the probes, print each finding as it comes, and write the rules file. Exit code 3 if any was not run."""
        from cachecost.live import probes

        findings: list[ProbeFinding] = []
        try:
            asyncio.run(_verify(self, os.environ[key], base_url, retries, findings))
        finally:
            if findings:
                probes.write(findings, self.out, self.day)
                print_diagnostic(f"{self.out} written; use it with --rules {self.out}")
        spent = sum((finding.dollars for finding in findings), Decimal(0))
        sys.stdout.write(f"{len(findings)} questions asked, {_count_settled(findings)} settled, ${spent:.4f} billed\n")
        is_incomplete = any(finding.explanation.startswith(("not run", "stopped")) for finding in findings)
        return exit_code(not_evaluated=is_incomplete)


def _count_settled(findings: Sequence[ProbeFinding]) -> int:
    return sum(finding.value is not None for finding in findings)


async def _verify(
    run: RuleVerification, key: str, base_url: str | None, retries: int, findings: list[ProbeFinding]
) -> None:
    """Findings are added to the list as they come, so that an interruption keeps them."""
    from cachecost.live import probes
    from cachecost.live.clock import ScaledClock
    from cachecost.live.driver.money import CallPricing, DollarBudget
    from cachecost.live.driver.retries import RetryPolicy
    from cachecost.live.driver.sender import sender_to

    clock, nonce = ScaledClock(), token_hex(SEED_BYTES)
    pricing, budget = CallPricing(run.book), DollarBudget(run.limit)
    async with sender_to(key, base_url, pricing, budget, clock, RetryPolicy(retries, nonce)) as sender:
        await probes.verify(sender, run.model, clock, run.planned, nonce, say=click.echo, keep=findings.append)
