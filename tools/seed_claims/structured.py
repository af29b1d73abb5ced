"""The Structured Response Refactor: one finishing tool that shows its schema."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tools.seed_claims.claim import Claim, Document, share, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario

TWO, ONE = "two steps", "one step"
SCHEMA, REQUESTS = 400, 1000
"""Tokens of a schema (assumed), and requests that read it."""


def document() -> Document:
    own = claim_scenario("structured")
    claims = [_first_try(own), *_errors(own), _loop(own), _many_schemas(own), _schema_size(own), _sums()]
    source = (
        "alchemiststudiosDOTai/tinyagent-rust, 2025-10-20; it counts neither calls nor dollars. Ten turns "
        "on Sonnet 4.5, "
        "sizes assumed."
    )
    left_out = "which checks, prompts and lines were removed, and what its one test run printed"
    return Document("Structured Response Refactor", source, claims, left_out)


def _turns(own: ClaimScenario) -> int:
    return own.rows(ONE)[-1].turn


def _first_try(own: ClaimScenario) -> Claim:
    two, one = own.cost(TWO), own.cost(ONE)
    calls = (len(own.rows(TWO)), len(own.rows(ONE)))
    return Claim(
        "structured.first-try",
        "One pass succeeds on the first try, where two steps need a follow-up.",
        f"without any error {calls[1]} calls instead of {calls[0]}, {usd(one)} instead of {usd(two)}: "
        f"{share(1 - one / two, 0)} less; {usd((two - one) / _turns(own))} a turn",
        own.how,
        "right, as long as the first try is right",
        {"two": two, "one": one, "two_calls": calls[0], "one_calls": calls[1]},
    )


def _errors(own: ClaimScenario) -> Iterator[Claim]:
    confused, misfit = "two steps, one in ten confused", "one step, one in ten does not fit"
    per_confusion, per_misfit = (
        (own.cost(name) - own.cost(base)) / (len(own.rows(name)) - len(own.rows(base)))
        for name, base in ((confused, TWO), (misfit, ONE))
    )
    yield Claim(
        "structured.confusion",
        "Two finishing tools confuse the model; one does not.",
        f"a wrong call costs {usd(per_confusion)} in two steps, a JSON that does not fit {usd(per_misfit)} "
        "in one: each is "
        "one more call",
        own.how,
        "right under a condition (the rates): it gives none, one in ten is assumed",
        {"per_confusion": per_confusion, "per_misfit": per_misfit},
    )
    half, turns = own.cost("one step, half do not fit"), _turns(own)
    failures = len(own.rows("one step, half do not fit")) - len(own.rows(ONE))
    edge = (own.cost(TWO) - own.cost(ONE)) / ((half - own.cost(ONE)) / failures) / turns
    yield Claim(
        "structured.break-even",
        "With the schema in sight an answer fits at once.",
        f"one pass costs as much as two steps without errors at {edge:.2f} failures a turn: "
        f"{share(edge / (1 + edge), 0)} of its answers do not fit",
        own.how,
        "right under a condition: fewer fail than that; with the schema in sight they should",
        {"failures": edge, "rate": edge / (1 + edge)},
    )


def _loop(own: ClaimScenario) -> Claim:
    never, two = own.cost("never done, up to ten calls"), own.cost(TWO)
    calls = len(own.rows("never done, up to ten calls"))
    return Claim(
        "structured.loop",
        "Before, errors could repeat until the cap of ten calls.",
        f"{calls} calls and {usd(never)} for nothing: {never / own.cost(ONE):.1f} times one pass",
        own.how,
        "right where it happens",
        {"never": never, "calls": calls, "times_two": never / two},
    )


def _many_schemas(own: ClaimScenario) -> Claim:
    four, one, two = (own.cost(name) for name in ("one step, four schemas in turn", ONE, TWO))
    return Claim(
        "structured.schemas",
        "The schema belongs in the tool's definition.",
        f"with four schemas in turn the tools change each turn: {usd(four)}, {share(four / one - 1, 0)} "
        "more than one schema "
        f"and {share(four / two - 1, 0)} more than two steps",
        own.how,
        "right under a condition: one schema in a conversation",
        {"four": four},
    )


def _schema_size(own: ClaimScenario) -> Claim:
    read: Decimal = REQUESTS * own.usd(read=SCHEMA)
    write = own.usd(write_5m=SCHEMA)
    return Claim(
        "structured.schema-size",
        "Showing the schema is worth its tokens.",
        f"{SCHEMA} tokens (assumed) cost {usd(write)} once and {usd(read)} per {REQUESTS:,} requests that read them",
        "400 tokens × the price",
        "right: one failed call less pays for hundreds of requests",
        {"read_1000": read, "write": write},
    )


def _sums() -> Claim:
    days, budget, travelers = (250, 200, 270), 720, 2
    return Claim(
        "structured.sums",
        "In its example three days of $250, $200 and $270 make a budget of $720, $360 a person.",
        f"${sum(days)} and ${sum(days) // travelers}",
        "the sum",
        "right" if sum(days) == budget else "wrong",
        {"sum": sum(days), "each": sum(days) // travelers},
    )
