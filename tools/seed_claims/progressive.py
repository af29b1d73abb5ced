"""Progressive Prompt Caching: a breakpoint on the last message of every call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from tools.seed_claims import progressive_flags, requests
from tools.seed_claims.claim import Claim, Document, off_by, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario, input_cost

CLAIMED_MINIMUMS = {
    "claude-sonnet-4-5": 1024,
    "claude-sonnet-4": 1024,
    "claude-opus-4-5": 4096,
    "claude-haiku-4-5": 4096,
}
WIDE = ("conversation.synthetic.calls=5", "conversation.synthetic.tools=3")
FIVE = ("conversation.synthetic.turns=1", "conversation.synthetic.calls=5")
WIDE_HOW = f"`scenarios/seed-claims/progressive.yaml`, {' '.join(f'`--set {text}`' for text in WIDE)}"
STATIC = 3_269
"""Tokens that a recorded first call wrote before the messages: tools and system prompt."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of its expected output: uncached, read and written tokens of a call, counted from 0."""

    key: str
    says: str
    call: int
    uncached: int
    read: int
    written: int
    why: str


LINES = (
    Line("cold", "First call: 50 uncached and 3,800 written.", 0, 50, 0, 3_800, "the breakpoint is on the last block"),
    Line(
        "loop",
        "Tool loop: 200 uncached, 3,800 read, 1,700 written.",
        1,
        200,
        3_800,
        1_700,
        "nothing follows the breakpoint",
    ),
    Line(
        "turn",
        "New turn: 50 uncached, 1,800 read, 4,200 written.",
        2,
        50,
        1_800,
        4_200,
        "1,800 leaves out the tools, and the first question has no thinking before it: it is read too",
    ),
)


def document() -> Document:
    own = claim_scenario("progressive")
    claims = [
        _multipliers(own),
        _minimums(),
        _four_breakpoints(),
        _skill_text(),
        _no_kwarg(own),
        _kwarg(own),
        _five_calls(),
        *(_line(own, line) for line in LINES),
        _full_rewrite(own),
        *progressive_flags.claims(own),
        _saving(own),
        _fourth(),
    ]
    source = (
        "wqeqwqeq/langchain-adf-cli, 2026-01-31. Sonnet 4.5 with thinking, 5-minute TTL, at the sizes of its example."
    )
    left_out = "how LangChain and LangGraph pass messages on, in which files the override stands, and its date"
    return Document("Progressive Prompt Caching", source, claims, left_out)


def _multipliers(own: ClaimScenario) -> Claim:
    plain = own.price("input")
    write, hour, read = (own.price(name) / plain for name in ("write_5m", "write_1h", "read"))
    reads, reads_hour = ((factor - 1) / (1 - read) for factor in (write, hour))
    is_right = (write, read) == (Decimal("1.25"), Decimal("0.1"))
    return Claim(
        "progressive.multipliers",
        "Breakpoints are free; a write costs 1.25 times the input price, a read 0.1 times.",
        f"{write.normalize()} and {read.normalize()}: a write for 5 minutes has paid after {reads:.2f} reads, "
        f"one for an hour ({hour.normalize()}) after {reads_hour:.2f}",
        "the prices of a token",
        "right" if is_right else "wrong",
        {"write": write, "read": read, "reads": reads, "reads_hour": reads_hour},
    )


def _minimums() -> Claim:
    found = {model: claim_scenario("progressive").minimum_tokens(model) for model in CLAIMED_MINIMUMS}
    own = claim_scenario("progressive", "model=claude-opus-4-5").rows("progressive")
    is_right = found == CLAIMED_MINIMUMS
    return Claim(
        "progressive.minimums",
        "Prefixes below 1,024 tokens (Sonnet 4.5 and 4) or 4,096 (Opus 4.5, Haiku 4.5) are not cached, at "
        "no extra cost.",
        f"the same in the rules; its own first call on Opus 4.5 has {tokens(own[0].usage.total_input)} "
        "tokens, of which "
        f"{own[0].usage.write_5m} are written",
        "`cachecost models`; `scenarios/seed-claims/progressive.yaml`, `--set model=claude-opus-4-5`",
        f"{'right' if is_right else 'wrong'}; the length that counts is that of the whole prefix, not of a block",
        {**found, "opus_written": own[0].usage.write_5m, "opus_uncached": own[0].usage.input_tokens},
    )


def _four_breakpoints() -> Claim:
    five, four = requests.rows("five-breakpoints")
    return Claim(
        "progressive.four-breakpoints",
        "A request may have four breakpoints, the design has three.",
        f"with four {tokens(four.usage.write_5m)} tokens are written, with five the API refuses the request and "
        "nothing is billed",
        requests.how("five-breakpoints"),
        "right",
        {"written": four.usage.write_5m, "refused": int(five.error is not None)},
    )


def _skill_text() -> Claim:
    five = claim_scenario("progressive", *FIVE)
    before, after = (five.rows(name)[2].usage for name in ("system-only", "progressive"))
    return Claim(
        "progressive.skill-text",
        "With breakpoints on the system prompt alone the text of a skill, a tool's result, is not cached.",
        f"the call after it sends {tokens(before.input_tokens)} tokens of messages at the full price; with a "
        f"breakpoint on the last block {after.input_tokens}, and {tokens(after.read - STATIC)} of them are read",
        five.how,
        "right",
        {"uncached": before.input_tokens, "uncached_after": after.input_tokens, "read": after.read - STATIC},
    )


def _no_kwarg(own: ClaimScenario) -> Claim:
    none, kwarg = (own.cost(name) for name in ("none", "langchain-middleware-1.0"))
    return Claim(
        "progressive.no-kwarg",
        "LangChain sets breakpoints from the kwarg `cache_control`, which its agents do not pass.",
        f"without breakpoints of one's own nothing is cached: {usd(none)}; with the kwarg {usd(kwarg)}, "
        f"{share(1 - kwarg / none, 0)} less",
        own.how,
        "right for LangChain of that time; its middleware passes the kwarg since 1.0",
        {"none": none, "kwarg": kwarg},
    )


def _kwarg(own: ClaimScenario) -> Claim:
    wide = claim_scenario("progressive", *WIDE)
    alone, three, newer = (
        wide.cost(name) for name in ("langchain-middleware-1.0", "progressive", "langchain-middleware")
    )
    near = own.cost("langchain-middleware-1.0") - own.cost("progressive")
    return Claim(
        "progressive.kwarg",
        "The kwarg alone, on the last block, caches everything before it.",
        f"without breakpoints on the system prompt {usd(near)} more in short turns; where a turn is longer than the "
        f"lookback {usd(alone)} instead of {usd(three)}, as tools and system prompt are written again each turn. The "
        f"middleware since March 2026 marks them too: {usd(newer)}",
        f"{own.how}; {' '.join(f'`--set {text}`' for text in WIDE)}",
        "right under a condition: turns within the lookback",
        {"near": near, "alone": alone, "three": three, "newer": newer},
    )


def _five_calls() -> Claim:
    five = claim_scenario("progressive", *FIVE)
    rows, before = five.rows("progressive"), five.rows("system-only")
    reads = [row.usage.read for row in rows]
    sums = [row.usage.read + row.usage.write_5m for row in rows]
    return Claim(
        "progressive.five-calls",
        "In a turn of five calls each reads all that was there, and writes what is new.",
        f"calls 2 to 5 read {_and(reads[1:])} tokens, each what the one before it had read and written; "
        f"{share(1 - input_cost(rows) / input_cost(before), 0)} less input cost than with the system prompt alone",
        five.how,
        "right" if reads[1:] == sums[:-1] else "wrong",
        {
            **{f"read_{call}": count for call, count in enumerate(reads[1:], 2)},
            "saved": 1 - input_cost(rows) / input_cost(before),
        },
    )


def _fourth() -> Claim:
    wide = claim_scenario("progressive", *WIDE)
    three, four = (
        wide.cost(name)
        for name in ("progressive", "progressive, with the fourth breakpoint on the previous human message")
    )
    return Claim(
        "progressive.fourth",
        "The fourth breakpoint is left for later, e.g. for the tools.",
        f"on the previous human message it makes turns longer than the lookback {share(1 - four / three, 0)} cheaper: "
        f"{usd(four)} instead of {usd(three)}",
        WIDE_HOW,
        "right under a condition: short turns; else it is worth more there than on the tools",
        {"three": three, "four": four},
    )


def _line(own: ClaimScenario, line: Line) -> Claim:
    row = own.rows("progressive")[line.call]
    usage = row.usage
    claimed = own.usd(input=line.uncached, read=line.read, write_5m=line.written)
    exact = own.usd(input=usage.input_tokens, read=usage.read, write_5m=usage.write_5m)
    return Claim(
        f"progressive.{line.key}",
        line.says,
        f"of the same {tokens(usage.total_input)} tokens {usage.input_tokens} are uncached, "
        f"{tokens(usage.read)} read, "
        f"{tokens(usage.write_5m)} written: {usd(exact)}, not {usd(claimed)}",
        own.how,
        f"wrong split: {line.why}; its cost is {off_by(claimed, exact)}",
        {
            "uncached": usage.input_tokens,
            "read": usage.read,
            "written": usage.write_5m,
            "usd": exact,
            "claimed": claimed,
        },
    )


def _full_rewrite(own: ClaimScenario) -> Claim:
    written, kept, wide = (
        [row.usage.write_5m for before, row in pairwise(rows) if row.turn != before.turn]
        for rows in (
            own.rows("progressive"),
            claim_scenario("progressive", "model=claude-opus-4-5").rows("progressive"),
            claim_scenario("progressive", *WIDE).rows("progressive"),
        )
    )
    return Claim(
        "progressive.full-rewrite",
        "Each new turn writes all messages again, as thinking is dropped.",
        f"turns 2 to 4 begin with {_and(written)} tokens written: the turn before, not the conversation. On "
        "Opus 4.5, "
        f"which keeps thinking, {_and(kept)}; with turns longer than the lookback (5 calls, 3 tools each) "
        f"{_and(wide)}",
        f"{own.how}; `--set model=claude-opus-4-5`; {' '.join(f'`--set {text}`' for text in WIDE)}",
        "right under a condition: turns beyond the lookback, else it is constant; wrong for Opus 4.5, which its "
        "table lists",
        {
            f"{name}_{turn}": count
            for name, counts in (("own", written), ("kept", kept), ("wide", wide))
            for turn, count in enumerate(counts, 2)
        },
    )


def _saving(own: ClaimScenario) -> Claim:
    fixed, before, none = (own.cost(name) for name in ("progressive", "system-only", "none"))
    return Claim(
        "progressive.saving",
        "Marking the last message makes calls cheaper than marking the system prompt alone.",
        f"four turns: {usd(fixed)} instead of {usd(before)} ({share(1 - fixed / before, 0)} less), "
        f"{usd(none)} without caching",
        own.how,
        "right",
        {"progressive": fixed, "system_only": before, "none": none},
    )


def _and(counts: Sequence[int]) -> str:
    return f"{', '.join(map(tokens, counts[:-1]))} and {tokens(counts[-1])}"
