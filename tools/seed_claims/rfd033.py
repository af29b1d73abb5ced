"""RFD 033: questions through an always-present tool."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from cachecost.analysis.optimum.latency import published_prefill
from tools.seed_claims.claim import Claim, Document, Figure, off_by, rounded, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario, total_cost

CONTEXT, QUESTIONS = 95_000, 3
CLAIMED_TOOL, DEFINITION = (50, 100), 142
"""Tokens of the tool: as RFD 033 estimates them, and of its definition (566 bytes of compact JSON, by tiktoken)."""
RETRY_RATE, REQUESTS = Decimal("0.05"), 1000
OPENAI = ("host=openai", "model=gpt-5.2")
TABLE = "95,000 tokens × the price"


def document() -> Document:
    asking, session = claim_scenario("rfd033"), claim_scenario("rfd033-session")
    claims = [*_motivation(asking), *_questions(asking), _elsewhere(), *_tool(session), *_retries(asking), _latency()]
    source = "dcdpr/jp, 2026-03-07, superseded by RFD 034. Opus 4.6 at $5 per million tokens, 5-minute TTL."
    return Document("RFD 033: questions through an always-present tool", source, claims)


def _motivation(asking: ClaimScenario) -> Iterator[Claim]:
    write, read = asking.usd(write_5m=CONTEXT), asking.usd(read=CONTEXT)
    for key, says, claimed, exact in (
        ("write", "Writing the whole context costs $0.59.", Decimal("0.59"), write),
        ("read", "Reading it costs $0.05.", Decimal("0.05"), read),
        ("waste", "A question wastes about $0.55.", Decimal("0.55"), write - read),
        ("three", "Three questions waste about $1.65 a turn.", Decimal("1.65"), QUESTIONS * (write - read)),
    ):
        verdict = rounded(claimed, exact)
        if key == "three":
            verdict += "; multiplied after rounding"
        yield Claim(f"033.{key}", says, f"${exact.normalize():f}", TABLE, verdict, {"usd": exact})
    yield _real_waste(asking)


def _real_waste(asking: ClaimScenario) -> Claim:
    """Without its tools the request is shorter than the main thread's: less is written than the text says."""
    none, same, ideal = (
        total_cost(asking.ledger(name).inquiries)
        for name in (
            "structured output, no tools",
            "structured output, same tools",
            "forced, as 033 describes itself",
        )
    )
    written = asking.ledger("structured output, no tools").inquiries[0].usage.write_5m
    exactly = (
        f"{tokens(written)} tokens are written a question, as the 21,000 of the tools are not sent: three waste "
        f"{usd(none - ideal)} (with the tools sent, which are read, {usd(same - ideal)})"
    )
    figures: dict[str, Figure] = {"written": written, "waste_no_tools": none - ideal, "waste_same_tools": same - ideal}
    verdict = f"wrong where tools are left out: {off_by(Decimal('1.65'), none - ideal)}"
    says = "Each question rewrites all 95,000 tokens."
    return Claim("033.waste-simulated", says, exactly, asking.how, verdict, figures)


def _questions(asking: ClaimScenario) -> Iterator[Claim]:
    forced, told, auto = (
        asking.ledger(name).inquiries for name in ("forced", "forced, as 033 describes itself", "suggested")
    )
    rewritten = forced[0].usage.write_5m
    yield Claim(
        "033.only-the-question",
        "With the tool forced, only the new question misses.",
        f"{tokens(rewritten)} tokens are written, {tokens(told[0].usage.write_5m)} if a forced choice invalidated "
        f"nothing: {usd(forced[0].cost.total)} a question, not {usd(told[0].cost.total)}",
        asking.how,
        "wrong: by its own table a forced choice invalidates the messages",
        {"written": rewritten, "claimed_written": told[0].usage.write_5m, "usd": forced[0].cost.total},
    )
    yield Claim(
        "033.suggested",
        "A forced `tool_choice` makes the model answer.",
        f"suggested in the question's words and not forced, {usd(auto[0].cost.total)} a question: "
        f"{share(1 - auto[0].cost.total / forced[0].cost.total, 0)} less",
        asking.how,
        f"wrong on cost: forcing multiplies it by {forced[0].cost.total / auto[0].cost.total:.1f}",
        {"usd": auto[0].cost.total},
    )


def _elsewhere() -> Claim:
    openai = claim_scenario("rfd033", *OPENAI)
    structured, forced = (
        openai.ledger(name).inquiries[0].cost.total for name in ("structured output, same tools", "forced")
    )
    return Claim(
        "033.elsewhere",
        "Structured output costs the cache on other providers, too.",
        f"on GPT-5.2 a question costs {usd(structured)} through structured output, {usd(forced)} through a forced tool",
        openai.how,
        "right, and there a forced tool costs nothing besides",
        {"structured": structured, "forced": forced},
    )


def _tool(session: ClaimScenario) -> Iterator[Claim]:
    read, write = (REQUESTS * session.usd(read=DEFINITION), session.usd(write_5m=DEFINITION))
    calls = len(session.rows("with the tool"))
    more = session.cost("with the tool") - session.cost("without the tool")
    low, high = CLAIMED_TOOL
    yield Claim(
        "033.tool-size",
        f"The tool adds {low} to {high} tokens to every request.",
        f"{DEFINITION} tokens: its definition is 566 bytes of JSON (tiktoken, ±7%)",
        "the definition's length",
        f"wrong: {off_by(Decimal(high), Decimal(DEFINITION))} at its upper end",
        {"tokens": DEFINITION},
    )
    yield Claim(
        "033.tool-cost",
        "That is a small constant.",
        f"{usd(write)} once and {usd(read)} per {tokens(REQUESTS)} requests that read it; {usd(more)} in {calls} calls",
        session.how,
        f"right: {share(more / session.cost('without the tool'), 2)} of that session",
        {"read_1000": read, "write": write, "session": more},
    )
    yield _unprompted(session)


def _unprompted(session: ClaimScenario) -> Claim:
    called = "with the tool, called unprompted once in twenty calls"
    more = session.cost(called) - session.cost("with the tool")
    requests = more / session.usd(read=DEFINITION)
    return Claim(
        "033.unprompted",
        "It may occasionally be called unprompted, which an error message handles.",
        f"{usd(more)} each at this context: another call that reads everything. As much as carrying the tool through "
        f"{requests:,.0f} requests",
        session.how,
        f"depends on how often: at 5% of the calls (assumed) {share(more / session.cost('with the tool'))} "
        "of the session",
        {"usd": more, "requests": requests},
    )


def _retries(asking: ClaimScenario) -> Iterator[Claim]:
    once, thrice = asking.ledger("forced").inquiries, asking.ledger("forced, every answer asked again twice").inquiries
    retries = [row for row in thrice if row.purpose == "retry"]
    first, dollars = once[0].cost.total, retries[0].cost.total
    suggested = asking.ledger("suggested").inquiries[0].cost.total
    structured = asking.ledger("structured output, no tools").inquiries[0].cost.total
    edge = (structured - suggested) / asking.ledger("suggested, every answer asked again twice").inquiries[1].cost.total
    yield Claim(
        "033.retry",
        "Each retry is cheap: the prefix is read.",
        f"{usd(dollars)}: {tokens(retries[0].usage.read)} tokens read, {retries[0].usage.write_5m} written, "
        f"{share(dollars / first, 0)} of a first question; at 5% {usd(RETRY_RATE * dollars)} a question",
        asking.how,
        "right: a retry keeps the forced choice, so it reads what the question wrote",
        {"usd": dollars, "read": retries[0].usage.read, "written": retries[0].usage.write_5m},
    )
    yield Claim(
        "033.retry-rate",
        "Fewer than 5% of answers are asked again.",
        f"not measured there; {edge:.1f} retries a question would make a suggested tool as expensive as "
        "structured output",
        asking.how,
        f"depends, but decides nothing: even at 50% it costs {usd(suggested + dollars / 2)} against {usd(structured)}",
        {"retries": edge},
    )


def _latency() -> Claim:
    model = published_prefill()
    anew, again = Decimal(str(model.seconds(CONTEXT))), Decimal(str(model.seconds(0, CONTEXT)))
    return Claim(
        "033.latency",
        "On top of the cost comes the latency of reprocessing the context.",
        f"{anew:.1f} s to the first token instead of {again:.1f} s: {anew - again:.1f} s a question, "
        f"{QUESTIONS * (anew - again):.0f} s for three",
        f"{model.base_s:.1f} s + {model.per_unread_s * 1000:.3f} s per 1,000 tokens sent anew + "
        f"{model.per_read_s * 1000:.3f} s "
        f"per 1,000 read (±{model.worst_s:.1f} s): the line through Anthropic's published times, Claude 3.5 Sonnet "
        "(`analysis/optimum/prefill_times.toml`)",
        "right; how long depends on the model, and newer ones publish no times",
        {"anew_s": anew, "read_s": again},
    )
