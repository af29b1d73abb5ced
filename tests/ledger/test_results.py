"""What a ledger and a comparison say of their rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cachecost.base.structs import replace
from cachecost.ledger.results import Comparison, Evidence, Ledger, is_thin, most_of
from cachecost.ledger.rows import REFUSED, WARM_START, CallRow, CallSize, warm_reads
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage
from views.fake_results import comparison, cost_of, ledger, refused, row

FIVE = Usage(input_tokens=10, read=1000, write_5m=200, output_tokens=50, tool_uses=(("web_search", 2),))
HOUR = Usage(input_tokens=20, read=2000, write_1h=300, output_tokens=70, tool_uses=(("web_search", 1),))
ROWS = [row("s", 1, FIVE), row("s", 2, HOUR)]


def test_a_ledger_adds_up_its_rows() -> None:
    made = Ledger("s", ROWS)
    assert made.usage == Usage(30, 3000, 200, 300, 120, (("web_search", 3),))
    assert made.cost == cost_of(FIVE) + cost_of(HOUR)
    assert sum(made.cost_by_layer.values()) == made.cost.total - made.cost.output
    assert made.cost_by_layer[Layer.TOOLS] == ROWS[0].cost_by_layer[Layer.TOOLS] + ROWS[1].cost_by_layer[Layer.TOOLS]


def test_the_most_it_may_cost_is_that_of_the_calls_whose_hits_are_not_certain() -> None:
    certain, unsure = ROWS[0], replace(ROWS[1], cost_if_missed=Decimal(7))
    assert Ledger("s", ROWS).most is None
    assert Ledger("s", [certain, unsure]).most == most_of([certain, unsure]) == certain.cost.total + 7


def test_a_question_costs_all_its_calls_together() -> None:
    asked = [replace(one, inquiry=1) for one in ROWS]
    other = replace(row("s", 3, FIVE), inquiry=2)
    made = Ledger("s", [*asked, other, row("s", 4, HOUR)])
    assert made.per_inquiry() == (2 * cost_of(FIVE).total + cost_of(HOUR).total) / 2
    assert Ledger("s", ROWS).per_inquiry() is None
    assert Ledger("s", [replace(asked[0], is_priced=False)]).per_inquiry() is None


def test_refused_calls_are_counted() -> None:
    made = Ledger("s", [*ROWS, refused("s", 3, "too long")])
    assert (made.errors, made.rows[-1].error_type) == (1, REFUSED)


CHEAP, DEAR = ledger("cheap", 0.1), ledger("dear", 0.9)


@pytest.mark.parametrize(
    ("ledgers", "best"),
    [
        ([DEAR, CHEAP], "cheap"),
        ([DEAR, replace(CHEAP, ranked=False)], "dear"),
        ([DEAR, replace(CHEAP, assumes="a=b")], "dear"),
        ([DEAR, replace(CHEAP, assumes="a=b", ranked=True)], "cheap"),
        ([DEAR, replace(CHEAP, leaves_out="old turns")], "dear"),
        ([DEAR, replace(CHEAP, rows=[*CHEAP.rows, refused("cheap", 99, "no")])], "dear"),
        ([replace(CHEAP, ranked=False)], "cheap"),  # there is no other
        ([replace(CHEAP, strategy="first"), CHEAP], "first"),  # of equals the earlier
    ],
)
def test_the_best_is_the_cheapest_that_is_compared_and_was_not_refused(ledgers: list[Ledger], best: str) -> None:
    assert comparison(ledgers).best.strategy == best


def test_without_prices_strategies_are_ranked_by_the_tokens_to_compute() -> None:
    free = [replace(one, rows=[replace(made, is_priced=False) for made in one.rows]) for one in (DEAR, CHEAP)]
    made = comparison(free)
    assert made.best.strategy == "cheap"
    assert made.effort(free[1]) == sum(one.usage.input_tokens + one.usage.write_5m for one in free[1].rows)


def test_a_strategy_that_sends_less_is_apart() -> None:
    def sized(made: Ledger, messages: int) -> Ledger:
        return replace(made, sizes=[CallSize(messages, 100)] * len(made.rows))

    made: Comparison = comparison([sized(DEAR, 5_000), sized(CHEAP, 4_000)])
    assert made.apart == frozenset({"cheap"})
    assert (made.less["cheap"].tokens, made.less["cheap"].compared_tokens) == (4_000, 5_000)
    assert not comparison([sized(DEAR, 5_000), sized(CHEAP, 4_500)]).apart


@pytest.mark.parametrize(("calls", "clients", "thin"), [(4, 2, True), (5, 2, False), (5, 1, True)])
def test_few_calls_or_one_client_are_thin_evidence(calls: int, clients: int, thin: bool) -> None:
    assert is_thin(calls, clients) is thin
    names = tuple(f"client {number}" for number in range(clients))
    assert Evidence("9", "", calls, (), ("m",), names).standing.endswith("(thin)") is thin


@pytest.mark.parametrize(
    ("seen", "contradicted", "standing"),
    [
        (0, (), "documented only"),
        (0, ("call 1",), "contradicted by 1 call"),
        (9, ("call 1", "call 2"), "contradicted by 2 calls; seen 9 times, 1 model, 2 clients"),
    ],
)
def test_what_is_known_of_a_rule(seen: int, contradicted: tuple[str, ...], standing: str) -> None:
    assert Evidence("9", "", seen, contradicted, ("m",), ("a", "b")).standing == standing


def test_warm_starts_are_counted_with_what_they_read() -> None:
    rows: list[CallRow] = [replace(ROWS[0], cause=WARM_START), ROWS[1]]
    assert warm_reads(rows) == (1, 1000)
    assert warm_reads(rows).sentence == (
        "Warm start: 1 call reads 1,000 tokens cached before the recording began"
        " (--rule warm_start=cold counts them as written)."
    )
    assert warm_reads(ROWS[1:]).sentence == ""
