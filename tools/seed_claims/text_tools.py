"""Prompt Structure and Tool Calling: tools as text, through a subscription's command line."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tools.seed_claims import requests
from tools.seed_claims.claim import Claim, Document, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario, input_cost

FIRST, SECOND, READ = 24_707, 1_101, 27_164
"""Its table: tokens written in the first and in the second turn, and read in the second."""
PLANS = {"Pro": 20, "Max 5x": 100, "Max 20x": 200}
"""USD a month: support.claude.com, Using Claude Code with your Pro or Max plan (2026)."""
DECLARED = "declared tools"
MISHAPS = (
    ("repair", "A lost tool result is repaired by a synthetic error.", "one lost result, repaired"),
    ("invalid", "A call of an unknown tool is rejected and answered.", "one invalid tool"),
)


def document() -> Document:
    own = claim_scenario("text-tools")
    claims = [
        *_savings(own),
        _missing(),
        _subscription(own),
        _text(own),
        _strict(own),
        _search(),
        _automatic(own),
        *_mishaps(own),
        _resume(own),
    ]
    source = (
        "gszep/amplifier-module-provider-claude, 2026-01-21. Sonnet 4.5 at $3 per million tokens; rates of "
        "mishaps are not "
        "given there, so each is priced by the piece."
    )
    left_out = "which tag stands for what, how hooks are recognized and how calls are found in a text"
    return Document("Prompt Structure and Tool Calling", source, claims, left_out)


def _savings(own: ClaimScenario) -> Iterator[Claim]:
    rate = Decimal(READ) / (READ + SECOND)
    second = {ttl: _saving(own, ttl, 0) for ttl in ("write_5m", "write_1h")}
    both = {ttl: _saving(own, ttl, FIRST) for ttl in ("write_5m", "write_1h")}
    yield Claim(
        "text.savings",
        "The second turn saves about 96%.",
        f"{share(rate)} of it is read; {share(second['write_5m'])} of its cost saved at 5 minutes, "
        f"{share(second['write_1h'])} at one hour; over both turns {share(both['write_5m'])} and "
        f"{share(both['write_1h'])}",
        "the table's tokens × the prices; `scenarios/text-protocol-tools.yaml`",
        "wrong: a hit rate, not a saving",
        {
            "rate": rate,
            **{f"second_{ttl}": saved for ttl, saved in second.items()},
            **{f"both_{ttl}": saved for ttl, saved in both.items()},
        },
    )


def _saving(own: ClaimScenario, ttl: str, first: int) -> Decimal:
    """What caching saves of the second turn, and of `first` tokens written in the first."""
    cost = own.usd(**{ttl: first + SECOND}, read=READ)
    return 1 - cost / own.usd(input=first + SECOND + READ)


def _missing() -> Claim:
    gap = READ - FIRST
    return Claim(
        "text.missing",
        "The second turn reads what the first wrote.",
        f"it reads {tokens(READ)} of {tokens(FIRST)} written: {tokens(gap)} tokens more",
        f"{tokens(READ)} − {tokens(FIRST)}",
        "wrong: a call, or an entry shared with another session, is not in the table",
        {"gap": gap},
    )


def _subscription(own: ClaimScenario) -> Claim:
    short, hour = (own.usd(**{ttl: FIRST + SECOND}, read=READ) for ttl in ("write_5m", "write_1h"))
    sessions = {plan: Decimal(price) / short for plan, price in PLANS.items()}
    counts = ", ".join(f"{int(count):,} for {plan} (${PLANS[plan]})" for plan, count in sessions.items())
    return Claim(
        "text.subscription",
        "A subscription avoids the bill per token.",
        f"the API would bill its two turns {usd(short)} at 5 minutes, {usd(hour)} at one hour, and their "
        "output. A month's "
        f"price buys {counts} of such sessions",
        "the table's tokens × the prices; list prices of the plans, 2026",
        "right under a condition: more than that many sessions a month, within the plan's limits",
        {"usd_5m": short, "usd_1h": hour, **{f"sessions_{plan}": count for plan, count in sessions.items()}},
    )


def _text(own: ClaimScenario) -> Claim:
    text, declared = own.cost("tools as text"), own.cost(DECLARED)
    return Claim(
        "text.protocol",
        "Tools described in the prompt replace declared ones.",
        f"{usd(text)} instead of {usd(declared)} ({share(text / declared - 1)} more): 300 tokens that "
        "explain the protocol",
        own.how,
        "right: the text costs no more than declarations do; its failures do",
        {"text": text, "declared": declared},
    )


def _strict(own: ClaimScenario) -> Claim:
    first, switched, then = (row.usage for row in requests.rows("strict"))
    saved = own.cost("one unreadable call") - own.cost("tools as text")
    return Claim(
        "text.strict",
        "Native tools have schema validation by `strict: true`; text has none.",
        f"the field is part of a tool's definition: switched on between two calls, {switched.read} of "
        f"{tokens(first.write_5m)} tokens are read, and {tokens(then.read)} in the next call. Each failed call that it "
        f"prevents saves {usd(saved)}",
        f"{requests.how('strict')}; {own.how}",
        "right; it costs the cache once, where it is switched on in a running session",
        {"read": switched.read, "written": switched.write_5m, "read_then": then.read, "saved": saved},
    )


def _search() -> Claim:
    all_tools, search = requests.rows("declared-tools"), requests.rows("tool-search")
    before, after = (input_cost(rows) for rows in (all_tools, search))
    return Claim(
        "text.search",
        "Native tools have tool search; text has none.",
        f"12 tools of 9,000 tokens, of which one is used: {usd(after)} instead of {usd(before)} of input in 24 calls "
        f"({share(1 - after / before, 0)} less), with the call that searches; the tool that was found is added behind "
        f"what was cached, of which all {tokens(search[1].usage.read)} tokens are read",
        requests.how("declared-tools", "tool-search"),
        "right; the fewer of the tools are used, the more it saves",
        {"declared": before, "searched": after, "read": search[1].usage.read},
    )


def _automatic(own: ClaimScenario) -> Claim:
    automatic, declared = own.cost("declared tools, automatic caching"), own.cost(DECLARED)
    return Claim(
        "text.automatic",
        "The API needs caching of one's own, the command line does it by itself.",
        f"top-level `cache_control`: {usd(automatic)}, as three breakpoints of one's own ({usd(declared)})",
        own.how,
        "wrong since automatic caching: one field does it",
        {"automatic": automatic, "declared": declared},
    )


def _mishaps(own: ClaimScenario) -> Iterator[Claim]:
    for key, says, strategy in MISHAPS:
        more = own.cost(strategy) - own.cost(DECLARED)
        yield Claim(
            f"text.{key}",
            says,
            f"{usd(more)} each ({share(more / own.cost(DECLARED))} of a session of 24 calls): one more call",
            own.how,
            "right under a condition (how often): a tenth of 20 calls would be twice that",
            {"usd": more, "calls": len(own.rows(strategy))},
        )
    more = own.cost("one unreadable call") - own.cost("tools as text")
    yield Claim(
        "text.unreadable",
        "Calls are found in the text by a pattern, without validation.",
        f"{usd(more)} for each that cannot be read; declared tools have none",
        own.how,
        "right under a condition (how often): declared tools rule it out",
        {"usd": more},
    )


def _resume(own: ClaimScenario) -> Claim:
    lost = own.cost("one lost session") - own.cost(DECLARED)
    turn = own.rows(DECLARED)[6].usage
    return Claim(
        "text.resume",
        "A resumed session sends the current turn alone.",
        f"the client does; billed are all {tokens(turn.total_input)} tokens of the second turn's first "
        "call, of which "
        f"{tokens(turn.read)} are read. A session that is lost costs {usd(lost)}",
        own.how,
        "right for what is sent, not for what is billed",
        {"total": turn.total_input, "read": turn.read, "lost": lost},
    )
