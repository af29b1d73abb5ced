"""The account of session files and logs that were found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo

from cachecost.analysis.bill.account import BillAccount, BilledRewrite, IsCounted, account_for
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.sessions.reading import SessionFiles
from cachecost.simulation.setup import ReplaySetup

Completion = Callable[[list[Call]], Sequence[Call]]
"""Gives calls of a log what they lack, such as a bill."""


def prices_under(setup: ReplaySetup) -> CallPrices:
    """The prices of billed calls under a setup."""
    return CallPrices(setup.prices, setup.rules, setup.host)


def account_of_found(
    found: SessionFiles,
    setup: ReplaySetup,
    format_: str = "auto",
    project: str | None = None,
    is_counted: IsCounted = bool,
    warn: Warn = quiet,
    complete: Completion = list,
    zone: tzinfo = UTC,
) -> BillAccount:
    """The account of what was read, of folders that contain `project`. Logs that cannot be read are added to those
    skipped. `complete` gets the calls of all logs before their bills are looked at.
    """
    prices = prices_under(setup)
    files = list(found.sessions)
    known: list[BilledRewrite] = []
    logged = None
    if found.logs:
        from cachecost.analysis.bill.explanation import bills_of_calls
        from cachecost.conversations.logs import Logs, read_logs

        logs = Logs(found.logs, format_, warn, may_skip_all=True)
        bills = bills_of_calls(complete(list(read_logs(logs))), setup, prices, logs.name)
        found.skipped += logs.skipped
        files, known, logged = [*files, *bills.files], bills.rewrites, bills.logged
    files = [file for file in files if project is None or project in file.project]
    account = account_for(files, prices, is_counted, known, zone)
    account.logged = logged
    return account
