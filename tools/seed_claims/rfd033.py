"""RFD 033: questions through an always-present tool."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from cachecost.providers.listing import model_rows
from cachecost.providers.rules import RuleBook
from cachecost.tokens.calibration import calibration
from tools.seed_claims import requests
from tools.seed_claims.claim import Claim, Document, Figure, off_by, rounded, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario, input_cost, total_cost
from tools.seed_claims.prefill_times import published_prefill

CONTEXT, QUESTIONS = 95_000, 3
CLAIMED_TOOL, DEFINITION = (50, 100), 142
"""Tokens of the tool: as RFD 033 estimates them, and of its definition (566 bytes of compact JSON, by tiktoken)."""
RETRY_RATE, REQUESTS = Decimal("0.05"), 1000
OPENAI = ("host=openai", "model=gpt-5.2")
GEMINI = ("host=gemini", "model=gemini-3-flash-preview")
TABLE = "95,000 tokens × the price"


def document() -> Document:
    asking, session = claim_scenario("rfd033"), claim_scenario("rfd033-session")
    thinking = claim_scenario("rfd033-thinking")
    claims = [
        *_motivation(asking),
        *_structured_output(asking, thinking),
        *_questions(asking),
        _breakpoint_before(thinking),
        *_thinking(asking, thinking),
        _soft_force(),
        *_typed(thinking),
        *_elsewhere(),
        *_tool(session),
        *_retries(asking),
        _latency(),
    ]
    source = "dcdpr/jp, 2026-03-07, superseded by RFD 034. Opus 4.6 at $5 per million tokens, 5-minute TTL."
    left_out = (
        "how an answer is parsed and validated, that True and TRUE are read as true, what its plan changes in which "
        "file, and what it does not aim at (several questions in one call, showing them to the person)"
    )
    return Document("RFD 033: questions through an always-present tool", source, claims, left_out)


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


def _structured_output(asking: ClaimScenario, thinking: ClaimScenario) -> Iterator[Claim]:
    none, same = (
        asking.ledger(name).inquiries[0] for name in ("structured output, no tools", "structured output, same tools")
    )
    yield Claim(
        "033.no-tools",
        "A request without the tools misses everything; to send them is not enough.",
        f"{tokens(none.usage.read)} tokens are read without the tools, {tokens(same.usage.read)} of them with: "
        f"{usd(none.cost.total)} and {usd(same.cost.total)} a question",
        asking.how,
        "right; sending them costs even more, as they are 21,000 tokens to read and save nothing else",
        {"read_none": none.usage.read, "read_same": same.usage.read, "usd_same": same.cost.total},
    )
    layer = claim_scenario("rfd033", "rules.structured_output_at=tools")
    low = layer.ledger("structured output, same tools").inquiries[0]
    yield Claim(
        "033.format-layer",
        "Structured output invalidates from the system prompt on.",
        f"{tokens(same.usage.read)} tokens of tools are read; {low.usage.read} if the prompt it adds stands before "
        f"the tools ({usd(low.cost.total)} a question)",
        f"{asking.how}; `--set rules.structured_output_at=tools`",
        "right under a condition: the documentation says that the cache of the thread is lost, not from which layer on",
        {"read": same.usage.read, "read_tools": low.usage.read, "usd_tools": low.cost.total},
    )
    injected = round(calibration("claude-3").structure["format"])
    dollars = asking.usd(write_5m=injected)
    yield Claim(
        "033.injected",
        "Structured output adds a system prompt that explains the format.",
        f"{injected} tokens besides the schema (measured): {usd(dollars)} of the {usd(same.cost.total)} a question",
        "the constant of the fit (`tokens/calibration.toml`) × the price",
        f"right; its size is {share(dollars / same.cost.total, 2)} of the cost, its place nearly all of it",
        {"tokens": injected, "usd": dollars},
    )
    stable = thinking.ledger("structured output, a schema per type, breakpoint before the question").inquiries
    yield Claim(
        "033.every",
        "Every question is a complete miss.",
        f"with a schema for each type of answer and the breakpoint before the question the second one reads "
        f"{tokens(stable[1].usage.read)} tokens: {usd(stable[1].cost.total)} after {usd(stable[0].cost.total)}",
        thinking.how,
        "right under a condition: each question has a schema of its own, or the breakpoint comes after it",
        {"first": stable[0].cost.total, "second": stable[1].cost.total, "read": stable[1].usage.read},
    )


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


def _breakpoint_before(thinking: ClaimScenario) -> Claim:
    forced = thinking.ledger("forced, breakpoint before the question").inquiries
    return Claim(
        "033.breakpoint-before",
        "The same, with the breakpoint before the question.",
        f"the first question costs {usd(forced[0].cost.total)}, each later one {usd(forced[1].cost.total)}: it reads "
        f"{tokens(forced[1].usage.read)} tokens, and {forced[1].usage.input_tokens} are new",
        thinking.how,
        "right under a condition: from the second question at the same place on",
        {"first": forced[0].cost.total, "later": forced[1].cost.total, "read": forced[1].usage.read},
    )


def _thinking(asking: ClaimScenario, thinking: ClaimScenario) -> Iterator[Claim]:
    on, off = (
        input_cost(thinking.ledger(f"suggested, {how}").inquiries[:1]) for how in ("with thinking", "without thinking")
    )
    thought = int((off - on) / thinking.price("output"))
    yield Claim(
        "033.without-thinking",
        "Questions go without reasoning.",
        f"where the main thread thinks, the input of a suggested question without thinking costs {usd(off)}, of one "
        f"that thinks as the main thread does {usd(on)}: only above {tokens(thought)} tokens of thinking would that "
        "one cost more",
        thinking.how,
        "right under a condition: the main thread does not think either; else the messages are written again",
        {"off": off, "on": on, "thought": thought},
    )
    both, neither = (thinking.ledger(f"forced, {how}").inquiries[0] for how in ("with thinking", "without thinking"))
    manual, adaptive, refused = (row.error for row in requests.rows("forced-and-thinking"))
    rules = model_rows(RuleBook(as_of=requests.LOGS["forced-and-thinking"][0]), "anthropic")
    models = [row.id for row in rules if not row.rules.accepts_forced_choice]
    yield Claim(
        "033.forced-and-thinking",
        "A forced tool and reasoning do not go together.",
        f"with manual thinking the API refuses it, with adaptive thinking it answers: {usd(both.cost.total)} a "
        f"question, {usd(neither.cost.total)} without; {len(models)} models (November 2026) cannot be forced",
        f"{requests.how('forced-and-thinking')}; {thinking.how}",
        "right under a condition: manual thinking (budget_tokens), which models before 4.6 have alone",
        {
            "refused_manual": int(manual is not None),
            "refused_adaptive": int(adaptive is not None),
            "refused_model": int(refused is not None),
            "models": len(models),
            "with": both.cost.total,
            "without": neither.cost.total,
        },
    )


def _soft_force() -> Claim:
    words, block = (requests.rows(name)[1] for name in ("suggested", "soft-force"))
    return Claim(
        "033.soft-force",
        "Where reasoning forbids a forced tool, a system block that asks for it does.",
        f"the block, {requests.SOFT} tokens (assumed) behind the system prompt, comes before all messages: "
        f"{tokens(block.usage.write_5m)} tokens are written, {usd(block.cost.total)} a question, against "
        f"{usd(words.cost.total)} where the question's own words ask (input only)",
        requests.how("soft-force", "suggested"),
        f"wrong on cost: as much as forcing, {block.cost.total / words.cost.total:.1f} times the same words in "
        "the question",
        {
            "written": block.usage.write_5m,
            "read": block.usage.read,
            "block": block.cost.total,
            "words": words.cost.total,
        },
    )


def _typed(thinking: ClaimScenario) -> Iterator[Claim]:
    own, by_type, hint = (
        thinking.ledger(name).inquiries
        for name in ("a schema per question", "a schema per type", "a schema per type, breakpoint before the question")
    )
    forced = thinking.ledger("forced, with thinking").inquiries[0].cost.total
    yield Claim(
        "033.typed",
        "A typed schema for each question would invalidate the tools.",
        f"{usd(own[0].cost.total)} a question, of which {own[0].usage.read} tokens are read: "
        f"{own[0].cost.total / forced:.2f} times the stable tool",
        thinking.how,
        "right",
        {"usd": own[0].cost.total, "read": own[0].usage.read},
    )
    more = REQUESTS * thinking.usd(read=2 * DEFINITION)
    yield Claim(
        "033.typed-by-type",
        "So an answer has to be a string.",
        f"a tool for each type of answer, changed with the type, costs {usd(by_type[0].cost.total)} at first and "
        f"{usd(by_type[1].cost.total)} for the same type again, {usd(hint[1].cost.total)} with the breakpoint before "
        f"it; three typed tools that are always there cost {usd(more)} per {tokens(REQUESTS)} requests more than one",
        f"{thinking.how}; {2 * DEFINITION} tokens × the price",
        "right under a condition: options that differ by question would change the tool; a boolean never does",
        {
            "first": by_type[0].cost.total,
            "again": by_type[1].cost.total,
            "before": hint[1].cost.total,
            "three_1000": more,
        },
    )


def _elsewhere() -> Iterator[Claim]:
    gemini = claim_scenario("rfd033", *GEMINI)
    structured, forced = (
        gemini.ledger(name).inquiries[0].cost.total for name in ("structured output, same tools", "forced")
    )
    yield _openai()
    yield Claim(
        "033.google",
        "And on Google's.",
        f"on Gemini 3 Flash {usd(structured)} through structured output, {usd(forced)} through a forced tool",
        gemini.how,
        "right",
        {"structured": structured, "forced": forced},
    )


def _openai() -> Claim:
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
        "right under a condition (how often): at 5% of the calls (assumed) "
        f"{share(more / session.cost('with the tool'))} "
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
        "right under a condition (nobody has measured it), which decides nothing: even at 50% it costs "
        f"{usd(suggested + dollars / 2)} against {usd(structured)}",
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
        "(`tools/seed_claims/prefill_times.toml`)",
        "right; how long depends on the model, and newer ones publish no times",
        {"anew_s": anew, "read_s": again},
    )
