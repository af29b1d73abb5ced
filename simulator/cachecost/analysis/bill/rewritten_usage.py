"""An account of the same calls with other usage: what changes before it leave for the next one to save."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.conversations.billed_calls import BilledCall

Tokens = tuple[int, int, int, int, int]


def with_usage(account: BillAccount, changed: Mapping[int, Tokens]) -> BillAccount:
    """The account with the tokens of some calls changed, by the `id()` of the call."""
    original: dict[int, BilledCall] = {}
    files = []
    for file in account.files:
        calls = [
            msgspec.structs.replace(call, tokens=changed[id(call)]) if id(call) in changed else call
            for call in file.calls
        ]
        original.update((id(new), old) for new, old in zip(calls, file.calls, strict=True))
        files.append(msgspec.structs.replace(file, calls=calls))
    return account_for(
        files, account.prices, lambda call: account.is_counted(original.get(id(call), call)), (), account.zone
    )
