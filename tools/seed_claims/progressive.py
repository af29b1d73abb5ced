"""Progressive Prompt Caching: a breakpoint on the last message of every call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachecost.ledger.rows import CallRow
from tools.seed_claims.claim import Claim, Document, off_by, share, tokens, usd
from tools.seed_claims.study import Study, study

CLAIMED_MINIMUMS = {"claude-sonnet-4-5": 1024, "claude-sonnet-4": 1024, "claude-opus-4-5": 4096, "claude-haiku-4-5": 4096}
STATIC = 3_269
"""Tokens that a recorded first call wrote before the messages: tools and system prompt."""
WIDE = ("conversation.synthetic.calls=5", "conversation.synthetic.tools=3")


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
    Line("loop", "Tool loop: 200 uncached, 3,800 read, 1,700 written.", 1, 200, 3_800, 1_700, "nothing follows the breakpoint"),
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
CHANGES = (
    ("tools-changed", "Other tools: nothing is read.", "progressive, tools that change each turn", 0),
    ("budget-changed", "Another thinking budget: tools and system prompt are read.", "progressive, another thinking budget from turn 2 on", STATIC),
)


def document() -> Document:
    own = study("progressive")
    claims = [_minimums(), *(_line(own, line) for line in LINES), _full_rewrite(own), *_matrix(own), *_flags(), _saving(own)]
    source = "wqeqwqeq/langchain-adf-cli, 2026-01-31. Sonnet 4.5 with thinking, 5-minute TTL, at the sizes of its example."
    return Document("Progressive Prompt Caching", source, claims)


def _minimums() -> Claim:
    found = {model: study("progressive").minimum_tokens(model) for model in CLAIMED_MINIMUMS}
    own = study("progressive", "model=claude-opus-4-5").rows("progressive")
    is_right = found == CLAIMED_MINIMUMS
    return Claim(
        "progressive.minimums",
        "Prefixes below 1,024 tokens (Sonnet 4.5 and 4) or 4,096 (Opus 4.5, Haiku 4.5) are not cached, at no extra cost.",
        f"the same in the rules; its own first call on Opus 4.5 has {tokens(own[0].usage.total_input)} tokens, of which "
        f"{own[0].usage.write_5m} are written",
        "`cachecost models`; `scenarios/seed-claims/progressive.yaml`, `--set model=claude-opus-4-5`",
        f"{'right' if is_right else 'wrong'}; the length that counts is that of the whole prefix, not of a block",
        {**found, "opus_written": own[0].usage.write_5m, "opus_uncached": own[0].usage.input_tokens},
    )


def _line(own: Study, line: Line) -> Claim:
    row = own.rows("progressive")[line.call]
    usage = row.usage
    claimed = own.usd(input=line.uncached, read=line.read, write_5m=line.written)
    exact = own.usd(input=usage.input_tokens, read=usage.read, write_5m=usage.write_5m)
    return Claim(
        f"progressive.{line.key}",
        line.says,
        f"of the same {tokens(usage.total_input)} tokens {usage.input_tokens} are uncached, {tokens(usage.read)} read, "
        f"{tokens(usage.write_5m)} written: {usd(exact)}, not {usd(claimed)}",
        own.how,
        f"wrong split: {line.why}; its cost is {off_by(claimed, exact)}",
        {"uncached": usage.input_tokens, "read": usage.read, "written": usage.write_5m, "usd": exact, "claimed": claimed},
    )


def _full_rewrite(own: Study) -> Claim:
    written, kept, wide = (
        [row.usage.write_5m for before, row in _pairs(rows) if row.turn != before.turn]
        for rows in (
            own.rows("progressive"),
            study("progressive", "model=claude-opus-4-5").rows("progressive"),
            study("progressive", *WIDE).rows("progressive"),
        )
    )
    return Claim(
        "progressive.full-rewrite",
        "Each new turn writes all messages again, as thinking is dropped.",
        f"turns 2 to 4 begin with {_and(written)} tokens written: the turn before, not the conversation. On Opus 4.5, "
        f"which keeps thinking, {_and(kept)}; with turns longer than the lookback (5 calls, 3 tools each) {_and(wide)}",
        f"{own.how}; `--set model=claude-opus-4-5`; {' '.join(f'`--set {text}`' for text in WIDE)}",
        "depends: right for turns beyond the lookback, else constant; wrong for Opus 4.5, which its table lists",
        {
            f"{name}_{turn}": count
            for name, counts in (("own", written), ("kept", kept), ("wide", wide))
            for turn, count in enumerate(counts, 2)
        },
    )


def _matrix(own: Study) -> Iterator[Claim]:
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


def _flags() -> Iterator[Claim]:
    """What the red flags say of five sessions: whether the fix is in, and whether a flag is raised."""
    sessions = {
        "the fix, healthy": (study("progressive").rows("progressive"), True),
        "the fix, six minutes between calls": (
            study("progressive", "conversation.synthetic.pauses.loop=360").rows("progressive"),
            True,
        ),
        "the fix on Opus 4.5": (study("progressive", "model=claude-opus-4-5").rows("progressive"), True),
        "system prompt only": (study("progressive").rows("system-only"), False),
        "no breakpoint": (study("progressive").rows("none"), False),
    }
    raised = {name: rows[1].usage.read == 0 for name, (rows, _) in sessions.items()}
    wrong = [name for name, (_, is_fixed) in sessions.items() if raised[name] == is_fixed]
    yield Claim(
        "progressive.flag-read",
        "Red flag: the second call of a turn reads nothing, so the fix does not work.",
        f"{len(sessions) - len(wrong)} of {len(sessions)} sessions are judged right; not {'; '.join(wrong)}",
        f"{study('progressive').how}, with `pauses.loop=360`, with `model=claude-opus-4-5`",
        "depends: an expired TTL or a short prefix raises it too, and what it was meant to find (system prompt only) does not",
        {"right": len(sessions) - len(wrong), "sessions": len(sessions)},
    )
    healthy = sessions["the fix, healthy"][0]
    equal = [_writes_all(rows) for rows, _ in sessions.values()]
    yield Claim(
        "progressive.flag-write",
        "Red flag: every call writes its whole input.",
        f"raised in {sum(equal)} of the {len(sessions)} sessions; the first call alone does in a healthy one "
        f"({tokens(healthy[0].usage.write_5m)} of {tokens(healthy[0].usage.total_input)})",
        study("progressive").how,
        "depends: without breakpoints nothing is written, so it misses that case; `cachecost explain` names the cause",
        {"raised": sum(equal), "first_written": healthy[0].usage.write_5m},
    )


def _saving(own: Study) -> Claim:
    fixed, before, none = (own.cost(name) for name in ("progressive", "system-only", "none"))
    return Claim(
        "progressive.saving",
        "Marking the last message makes calls cheaper than marking the system prompt alone.",
        f"four turns: {usd(fixed)} instead of {usd(before)} ({share(1 - fixed / before, 0)} less), {usd(none)} without caching",
        own.how,
        "right",
        {"progressive": fixed, "system_only": before, "none": none},
    )


def _and(counts: Sequence[int]) -> str:
    return f"{', '.join(map(tokens, counts[:-1]))} and {tokens(counts[-1])}"


def _pairs(rows: Sequence[CallRow]) -> Iterator[tuple[CallRow, CallRow]]:
    return zip(rows, rows[1:], strict=False)


def _writes_all(rows: Sequence[CallRow]) -> bool:
    return all(row.usage.write_5m == row.usage.total_input for row in rows)
