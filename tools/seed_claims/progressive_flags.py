"""The Progressive document's invalidation matrix and its red flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.ledger.rows import CallRow
from tools.seed_claims.claim import Claim, tokens
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario

CHANGES = (
    ("tools-changed", "Other tools: nothing is read.", "progressive, tools that change each turn", 0),
    (
        "budget-changed",
        "Another thinking budget: tools and system prompt are read.",
        "progressive, another thinking budget from turn 2 on",
        3_269,
    ),
)

SLOW, SHORT = "conversation.synthetic.pauses.loop=360", "model=claude-opus-4-5"
FLAGS_HOW = f"`scenarios/seed-claims/progressive.yaml`; `--set {SLOW}`; `--set {SHORT}`"


def claims(own: ClaimScenario) -> Iterator[Claim]:
    yield from _matrix(own)
    yield from _flags()


def _matrix(own: ClaimScenario) -> Iterator[Claim]:
    for key, says, strategy, expected in CHANGES:
        usage = own.rows(strategy)[2].usage
        yield Claim(
            f"progressive.{key}",
            says,
            f"the next turn reads {tokens(usage.read)} and writes {tokens(usage.write_5m)} tokens",
            own.how,
            "right" if usage.read == expected else "wrong",
            {"read": usage.read, "written": usage.write_5m},
        )
    three, four = (
        own.rows(name)[2].usage
        for name in (
            "progressive, a system prompt that changes each turn",
            "the same, with the fourth breakpoint on the last tool",
        )
    )
    yield Claim(
        "progressive.system-changed",
        "Another system prompt: the tools are still read.",
        f"{three.read} tokens with its three breakpoints, {tokens(four.read)} with the fourth on the last tool",
        own.how,
        "wrong for this design: no breakpoint ends at the tools, so no entry does; right with the one it leaves unused",
        {"read_three": three.read, "read_four": four.read},
    )


def _sessions() -> dict[str, tuple[list[CallRow], bool]]:
    """Five sessions, each with whether its design places a breakpoint on the last message (the fix)."""
    own, opus = claim_scenario("progressive"), claim_scenario("progressive", SHORT)
    slow = claim_scenario("progressive", SLOW)
    return {
        "the fix, healthy": (own.rows("progressive"), True),
        "the fix, six minutes between calls": (slow.rows("progressive"), True),
        "the fix on Opus 4.5": (opus.rows("progressive"), True),
        "system prompt only": (own.rows("system-only"), False),
        "no breakpoint": (own.rows("none"), False),
    }


def _flags() -> Iterator[Claim]:
    sessions = _sessions()
    wrong = [name for name, (rows, is_fixed) in sessions.items() if (rows[1].usage.read == 0) == is_fixed]
    yield Claim(
        "progressive.flag-read",
        "Red flag: the second call of a turn reads nothing, so the fix does not work.",
        f"{len(sessions) - len(wrong)} of {len(sessions)} sessions are judged right; wrong: {'; '.join(wrong)}",
        FLAGS_HOW,
        "right under a condition: the TTL has not expired and the prefix reaches the minimum; what it was meant to "
        "find (system prompt only) it misses",
        {"right": len(sessions) - len(wrong), "sessions": len(sessions)},
    )
    healthy, equal = sessions["the fix, healthy"][0][0].usage, [_writes_all(rows) for rows, _ in sessions.values()]
    yield Claim(
        "progressive.flag-write",
        "Red flag: every call writes its whole input.",
        f"raised in {sum(equal)} of the {len(sessions)} sessions; of a healthy one the first call alone does so "
        f"({tokens(healthy.write_5m)} of {tokens(healthy.total_input)})",
        FLAGS_HOW,
        "right under a condition: the requests have breakpoints; without any nothing is written, and it misses that; "
        "`cachecost explain` names the cause",
        {"raised": sum(equal), "first_written": healthy.write_5m},
    )


def _writes_all(rows: Sequence[CallRow]) -> bool:
    return all(row.usage.write_5m == row.usage.total_input for row in rows)
