"""Every dollar of a bill is necessary or rewritten, and is in one row, one cause and one period."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.random_bills import START, random_files
from tests.conversations.random_transcripts import RandomTranscript

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.summary import RESULTS, ROWS_BY, BillRow, summarize
from cachecost.conversations.input_files import BilledCall, SessionFile, token_counts
from cachecost.conversations.readers.claude_code.steps import read_sessions
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from slow_cases import examples

SEEDS = st.integers(0, 10**9)
ZERO = Decimal(0)


@cache
def prices() -> CallPrices:
    return CallPrices(PriceBook.load(), RuleBook())


def paid_beyond_reading(call: BilledCall) -> Decimal:
    """USD of a call's prompt beyond what reading it would cost."""
    found = prices().prices(call)
    if found is None:
        return ZERO
    uncached, _, five, hour, _ = call.tokens
    parts = ((uncached, found.input), (five, found.write_5m), (hour, found.write_1h))
    return sum((count * (price - found.read) for count, price in parts), ZERO) / 10**6


def check(account: BillAccount, by: str) -> None:
    """All that must hold of any account, with its rows by `by`."""
    for rewrite in account.rewrites:
        call, before = rewrite.call, rewrite.before
        assert 0 < rewrite.tokens <= call.written + call.tokens[0]
        assert ZERO <= (rewrite.cost or ZERO) <= paid_beyond_reading(call)
        assert (rewrite.cost is None) == (prices().prices(call) is None)
        assert before is None or call.read + rewrite.tokens <= before.cached
        assert not call.is_summed
    assert len({id(one.call) for one in account.rewrites}) == len(account.rewrites)
    counted = {id(call) for _, call in account.calls()}
    assert all(id(one.call) in counted for one in account.rewrites)
    summary = summarize(account, by)
    check_total(summary.total)
    assert sum((one.cost or ZERO for one in account.rewrites), ZERO) == summary.total.rewritten
    check_sum(summary.rows, summary.total, by in RESULTS)


def check_total(row: BillRow) -> None:
    assert row.necessary + row.rewritten == row.cost
    assert row.necessary >= 0
    assert sum((one.cost for one in row.causes.values()), ZERO) == row.rewritten
    assert len({one.cause for one in row.ranked_causes}) == len(row.causes)


def check_sum(rows: Iterable[BillRow], total: BillRow, is_of_results: bool = False) -> None:
    """Results of several tools may be in the prompt of one call; all else is in one row."""
    rows = list(rows)
    for row in rows:
        check_total(row)
    assert sum((row.cost for row in rows), ZERO) == total.cost
    assert sum((row.rewritten for row in rows), ZERO) == total.rewritten
    assert sum((row.saved_by_caching for row in rows), ZERO) == total.saved_by_caching
    assert sum((row.usage for row in rows), Usage()) == total.usage
    assert is_of_results or sum(row.calls for row in rows) == total.calls
    assert all(min(token_counts(row.usage)) >= 0 for row in rows)
    for cause, found in total.causes.items():
        parts = [row.causes[cause] for row in rows if cause in row.causes]
        assert is_of_results or sum(one.times for one in parts) == found.times
        assert sum(one.tokens for one in parts) == found.tokens and all(one.tokens >= 0 for one in parts)


def plain_cost(files: Iterable[SessionFile]) -> tuple[int, Decimal]:
    """(calls, USD): each id once, with its largest bill, and each call without an id."""
    once: dict[str, BilledCall] = {}
    nameless: list[BilledCall] = []
    for call in (call for file in files for call in file.calls):
        if not call.id:
            nameless.append(call)
        elif call.id not in once or sum(call.tokens) > sum(once[call.id].tokens):
            once[call.id] = call
    calls = [*nameless, *once.values()]
    return len(calls), sum((plain_call_cost(call) for call in calls), ZERO)


def plain_call_cost(call: BilledCall) -> Decimal:
    own = [(call.model, call.tokens)] if any(call.tokens[:4]) or call.extra else []  # without input it is no bill
    passes = [*own, *((model or call.model, tokens) for model, tokens in call.extra)]
    total = ZERO
    for model, tokens in passes:
        found = prices().prices_of(call, model, sum(tokens[:4]))
        if found is not None:
            each = (found.input, found.read, found.write_5m, found.write_1h, found.output)
            total += sum((count * price for count, price in zip(tokens, each, strict=True)), ZERO) / 10**6
    return total


@settings(max_examples=examples(1000))
@given(SEEDS)
def test_every_dollar_is_in_one_place(seed: int) -> None:
    files = random_files(Random(seed))
    account = account_for(files, prices())
    check(account, ROWS_BY[seed % len(ROWS_BY)])
    total = summarize(account).total
    assert (total.calls, total.cost) == plain_cost(files)


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_every_dollar_of_a_transcript_is_in_one_place(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    path = tmp_path_factory.getbasetemp() / "transcript.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in RandomTranscript(random).fill(14, damage=True).lines))
    for by in ROWS_BY:
        check(account_for(read_sessions(path)[0], prices()), by)


@settings(max_examples=examples(100))
@given(SEEDS)
def test_the_order_of_files_changes_nothing(seed: int) -> None:
    random = Random(seed)
    files = random_files(random)
    first = account_for(files, prices())
    second = account_for(random.sample(files, len(files)), prices())
    assert [(one.file.path, one.call, one.cause, one.tokens) for one in first.rewrites] == [
        (one.file.path, one.call, one.cause, one.tokens) for one in second.rewrites
    ]
    assert (first.copies, first.warm_calls, first.warm_tokens) == (second.copies, second.warm_calls, second.warm_tokens)
    assert summarize(first).total.cost == summarize(second).total.cost


@settings(max_examples=examples(100))
@given(SEEDS, st.lists(st.integers(-1, 100_000), max_size=3))
def test_periods_partition_the_bill(seed: int, cuts: list[int]) -> None:
    files = random_files(Random(seed), are_timed=True)
    edges = [float("-inf"), *(START + cut for cut in sorted(cuts)), float("inf")]
    whole = account_for(files, prices())
    total = summarize(whole).total
    parts = [
        account_for(files, prices(), lambda call, low=low, high=high: low <= (call.start or 0) < high)
        for low, high in pairwise(edges)
    ]
    sums = [summarize(part).total for part in parts]
    assert sum((one.cost for one in sums), ZERO) == total.cost
    assert sum((one.rewritten for one in sums), ZERO) == total.rewritten
    assert sum(one.calls for one in sums) == total.calls
    assert sum(part.warm_tokens for part in parts) == whole.warm_tokens
    assert sorted(id(one.call) for part in parts for one in part.rewrites) == sorted(
        id(one.call) for one in whole.rewrites
    )


def test_a_copy_of_a_first_call_is_no_other_call() -> None:
    """A resumed session's file begins with the first call of the other: it did not write the prefix at its side."""

    def file(name: str, output: int) -> SessionFile:
        call = BilledCall(
            1, 1, "claude-opus-4-5", (3, 0, 20_000, 0, output), START, session="s", id="m", answered=START
        )
        call.answered = START + 5
        later = BilledCall(2, 2, "claude-opus-4-5", (3, 20_000, 10, 0, 9), START + 9, None, 1, session="s", id=name)
        return SessionFile(name, "claude-code", "shop", [call, later])

    other = BilledCall(1, 1, "claude-opus-4-5", (3, 18_000, 10, 0, 9), START + 20, session="t", id="n")
    files = [file("a", 5), file("b", 7), SessionFile("c", "claude-code", "shop", [other])]
    account = account_for(files, prices())
    assert account.copies == 1
    assert account.rewrites == []


def test_a_pass_without_a_price_is_said() -> None:
    call = BilledCall(1, 1, "claude-opus-4-5", (3, 0, 9, 0, 9), START, extra=(("nobody-2", (1, 0, 0, 0, 1)),))
    summary = summarize(account_for([SessionFile("a", "claude-code", calls=[call])], prices()))
    assert summary.unpriced == {"unknown model 'nobody-2' on host anthropic": 1}
    assert summary.total.calls == 1
    assert summary.total.cost > 0
