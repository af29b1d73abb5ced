"""RFC013: four automatic breakpoints. What its benefits are exactly; its plans are in rfc013_plans.py."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tools.seed_claims import requests, rfc013_plans
from tools.seed_claims.claim import Claim, Document, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario, input_cost
from tools.seed_claims.prefill_times import published_prefill, published_times

LATENCY, LOOP, DOCUMENT = Decimal("0.85"), (Decimal("0.5"), Decimal("0.8")), Decimal("0.9")
OWN_READS = 5_000
"""Tokens that its own test read from the cache in each call."""


def document() -> Document:
    claims = [
        _latency(),
        _slots(),
        _first_block(),
        *_own_figures(claim_scenario("rfc013-loop")),
        _loops(claim_scenario("rfc013-loop")),
        *_documents(),
    ]
    claims += [_tools_breakpoint(), *rfc013_plans.claims()]
    source = "cccntu/llmproc, 2025-03-28. Sonnet 3.7, 5-minute TTL, at the sizes of the scenarios (assumed)."
    left_out = (
        "that caching needs no configuration and can be switched off, the beta header (which the API no longer needs), "
        "and how its functions keep the original state"
    )
    return Document("RFC013: automatic prompt caching with four breakpoints", source, claims, left_out)


def _latency() -> Claim:
    model, times = published_prefill(), published_times()
    found = "; ".join(f"{share(Decimal(str(time.saving)), 0)} at {tokens(time.tokens)} tokens" for time in times)
    own = Decimal(str(model.saving(OWN_READS)))
    reached = next(time for time in times if time.saving >= LATENCY)
    return Claim(
        "rfc013.latency",
        "Caching cuts the time to a response by up to 85% for long prompts.",
        f"published: {found}. By the line through them {share(own, 0)} at the {tokens(OWN_READS)} tokens of "
        "its own test",
        "Anthropic's announcement (2024-08-14) and cookbook, `tools/seed_claims/prefill_times.toml`",
        f"right under a condition (the length): reached at {tokens(reached.tokens)} tokens, and for the first "
        "token alone",
        {f"measured_{time.tokens}": Decimal(str(time.saving)) for time in times} | {"own": own},
    )


def _slots() -> Claim:
    five, four = requests.rows("five-breakpoints")
    return Claim(
        "rfc013.list-system",
        "A system prompt in blocks can be taken as it is.",
        f"two breakpoints of its own and three of the design are five: refused; without the branching point "
        f"{tokens(four.usage.write_5m)} tokens are written",
        requests.how("five-breakpoints"),
        "right under a condition: it has at most one breakpoint of its own",
        {"refused": int(five.error is not None), "written": four.usage.write_5m},
    )


def _first_block() -> Claim:
    more = {}
    for tools in (1, 3, 8, 12):
        loop = claim_scenario("rfc013-loop", f"conversation.synthetic.tools={tools}")
        more[tools] = loop.cost("rfc013-as-coded") / loop.cost("rfc013-as-written") - 1
    return Claim(
        "rfc013.first-block",
        "The breakpoint on the last message caches the whole of it.",
        "the code places it on the first block: "
        f"{', '.join(f'{share(part)} at {n}' for n, part in more.items())} tools "
        "a call, against the last block",
        f"{claim_scenario('rfc013-loop').how}, `--set conversation.synthetic.tools=3` and so on",
        "right under a condition: one tool a call; beyond the lookback (12) neither is found",
        {f"more_{tools}": part for tools, part in more.items()},
    )


def _own_figures(loop: ClaimScenario) -> Iterator[Claim]:
    price, read, written = (loop.usd(**{name: OWN_READS}) for name in ("input", "read", "write_5m"))
    nets = {calls: 1 - (written + (calls - 1) * read) / (calls * price) for calls in (1, 2, 10)}
    yield Claim(
        "rfc013.ninety",
        "A cached token costs 10%, so token usage falls by up to 90%.",
        f"the price of a read falls by {share(1 - read / price, 0)}; no token is saved. With what writing "
        "costs, a constant "
        f"prefix saves {', '.join(f'{share(net)} over {calls}' for calls, net in nets.items())} calls",
        "write + reads against the input price",
        "right for the read price, wrong for the bill: 90% is the limit of many calls",
        {f"net_{calls}": net for calls, net in nets.items()},
    )
    claimed, exact = Decimal("0.9") * OWN_READS, price - read
    yield Claim(
        "rfc013.metric",
        "The saving is 0.9 × the tokens read: about 4,500 tokens a call in its tests.",
        f"{claimed:,.0f} is a number of tokens; a read of {tokens(OWN_READS)} saves {usd(exact)}, and "
        "writing them once "
        f"costs {usd(written - price)} more than sending them",
        "the prices of a token",
        "wrong as a saving: it is never negative, though a session without a second call loses",
        {"tokens": claimed, "saved": exact, "premium": written - price},
    )


def _loops(loop: ClaimScenario) -> Claim:
    uncached, cached = (loop.rows(name) for name in ("none", "rfc013-as-written"))
    saved = {
        calls: 1 - input_cost(cached[:calls]) / input_cost(uncached[:calls]) for calls in range(1, len(cached) + 1)
    }
    low, high = (next(calls for calls, part in saved.items() if part >= edge) for edge in LOOP)
    shown = ", ".join(f"{share(saved[calls], 0)} after {calls}" for calls in (1, 2, 5, 10, 20, 40))
    return Claim(
        "rfc013.loops",
        "Caching the history saves 50% to 80% in tool loops.",
        f"{shown} calls that each add 1,000 tokens to 4,000 (input only)",
        loop.how,
        f"right under a condition (the length of the loop): from {low} to {high - 1} calls, less before and more after",
        {f"saved_{calls}": saved[calls] for calls in (1, 2, 5, 10, 20, 40)} | {"low": low, "high": high},
    )


def _documents() -> Iterator[Claim]:
    """Questions to one document, each asked for itself; then the same ones too far apart for the TTL."""
    near, late = (
        claim_scenario("rfc013-document"),
        claim_scenario("rfc013-document", "conversation.synthetic.pauses.turn=360"),
    )
    uncached, cached = near.rows("none"), near.rows("system-only")
    one = 1 - input_cost(cached[1:2]) / input_cost(uncached[1:2])
    nets = {asked: 1 - input_cost(cached[:asked]) / input_cost(uncached[:asked]) for asked in (1, 2, 10, 20)}
    apart = 1 - input_cost(late.rows("system-only")) / input_cost(late.rows("none"))
    yield Claim(
        "rfc013.documents",
        "A cached document cuts the cost of later questions by up to 90%.",
        f"{share(one)} of a later question's input; "
        f"{', '.join(f'{share(net)} over {asked}' for asked, net in nets.items())} "
        "questions to 100,000 tokens",
        near.how,
        "right for each later question, wrong for the first: all together stay below it",
        {"later": one} | {f"net_{asked}": net for asked, net in nets.items()},
    )
    yield Claim(
        "rfc013.documents-late",
        "The same, at any pace.",
        f"asked every six minutes {share(apart)}: each question writes the document again",
        late.how,
        "wrong beyond the TTL: caching then costs more than it saves",
        {"saved": apart},
    )


def _tools_breakpoint() -> Claim:
    varying = claim_scenario("rfc013-varying-system")
    without, with_tools = (
        varying.cost(name) for name in ("no breakpoint on the tools", "a breakpoint on the last tool")
    )
    read = varying.rows("a breakpoint on the last tool")[2].usage.read
    small = claim_scenario("rfc013-varying-system", "conversation.head.tools.tokens=1_000")
    gained = small.cost("no breakpoint on the tools") - small.cost("a breakpoint on the last tool")
    return Claim(
        "rfc013.tools",
        "Tools cached apart stay cached when the system prompt varies.",
        f"{tokens(read)} tokens are read at each new turn: {usd(with_tools)} instead of {usd(without)}, "
        f"{share(1 - with_tools / without, 0)} less; with 1,000 tokens of tools, below the minimum, {usd(gained)}",
        f"{varying.how}; `--set conversation.head.tools.tokens=1_000`",
        "right from the model's minimum length on",
        {"read": read, "with": with_tools, "without": without, "gained_small": gained},
    )
