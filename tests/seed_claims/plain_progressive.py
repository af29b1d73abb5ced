"""The figures of the Progressive document's claims, by hand."""

from __future__ import annotations

from decimal import Decimal

from plain import MILLION, SONNET, Sent, chain, uncached, usd

HEAD, TOOLS = 3_269, 1_469
HUMAN, THOUGHT, CALL, RESULT, ANSWER = 581, 331, 100, 1_419, 100
OUTPUT = THOUGHT + ANSWER
FIRST = HEAD + HUMAN
LOOP = THOUGHT + CALL + RESULT
TURN = CALL + RESULT + ANSWER + HUMAN
"""What a turn adds to the next one's first call once its thinking is dropped."""


def _session() -> list[Sent]:
    """Four turns of two calls; a turn's first call reads what the one of the turn before sent, as thinking is gone."""
    calls = []
    for turn in range(4):
        first = FIRST + turn * TURN
        calls += [Sent(first, first - TURN if turn else 0, OUTPUT), Sent(first + LOOP, first, OUTPUT)]
    return calls


def _system_only() -> list[Sent]:
    return [
        call._replace(read=HEAD if number else 0, fresh=call.total - HEAD) for number, call in enumerate(_session())
    ]


def _wide(turn: int) -> int:
    """Five calls of three tools are beyond the lookback: all but the head is written."""
    return turn * (HUMAN + 4 * (3 * (CALL + RESULT)) + ANSWER) + HUMAN


PARALLEL = 3 * (CALL + RESULT)
OPENING = HUMAN + 4 * PARALLEL + ANSWER
"""What a turn of five calls of three tools leaves behind once its thinking is gone."""


def _wide_session(seen: int, finds_last_turn: bool = False) -> list[Sent]:
    """Four such turns. A turn's first call reads `seen` tokens, or what the first of the turn before had sent."""
    calls = []
    for turn in range(4):
        start = HEAD + turn * OPENING + HUMAN
        read = (start - OPENING if finds_last_turn else seen) if turn else 0
        for number in range(5):
            total = start + number * (THOUGHT + PARALLEL)
            calls.append(Sent(total, read, THOUGHT + (3 * CALL if number < 4 else ANSWER)))
            read = total
    return calls


FIVE = [Sent(FIRST + number * LOOP, FIRST + (number - 1) * LOOP if number else 0) for number in range(5)]
FIVE_PLAIN = [call._replace(read=HEAD if n else 0, fresh=call.total - HEAD) for n, call in enumerate(FIVE)]


def _kept() -> int:
    """On a model that keeps thinking the last call is read: its answer and the next question are new."""
    turn = chain([(FIRST, OUTPUT), (LOOP, OUTPUT), (OUTPUT + HUMAN, OUTPUT)])[2]
    return turn.total - turn.read


def _line(call: Sent, uncached: int, read: int, written: int) -> dict[str, object]:
    claimed = (uncached * SONNET.input + read * SONNET.read + written * SONNET.write) / MILLION
    own = usd(SONNET, [call._replace(output=0)])
    return {"uncached": 0, "read": call.read, "written": call.total - call.read, "usd": own, "claimed": claimed}


CALLS = _session()
SECOND_READS = [(FIRST, True), (0, True), (0, True), (HEAD, False), (0, False)]
"""What the second call reads, and whether the design is in: healthy, too slow, Opus 4.5, system only, none."""
FIGURES = {
    "progressive.multipliers": {
        "write": Decimal("1.25"),
        "read": Decimal("0.1"),
        "reads": Decimal("0.25") / Decimal("0.9"),
        "reads_hour": 1 / Decimal("0.9"),
    },
    "progressive.minimums": {
        "claude-sonnet-4-5": 1024,
        "claude-sonnet-4": 1024,
        "claude-opus-4-5": 4096,
        "claude-haiku-4-5": 4096,
        "opus_written": 0 if FIRST < 4096 else FIRST,
        "opus_uncached": FIRST,
    },
    "progressive.four-breakpoints": {"written": 3 * 2_000 + 3 * 120, "refused": 1},
    "progressive.skill-text": {
        "uncached": FIVE[2].total - HEAD,
        "uncached_after": 0,
        "read": FIVE[2].read - HEAD,
    },
    "progressive.no-kwarg": {"none": usd(SONNET, uncached(CALLS)), "kwarg": usd(SONNET, CALLS)},
    "progressive.kwarg": {
        "near": 0,
        "alone": usd(SONNET, _wide_session(0)),
        "three": usd(SONNET, _wide_session(HEAD)),
        "newer": usd(SONNET, _wide_session(HEAD)),
    },
    "progressive.five-calls": {
        **{f"read_{number}": call.read for number, call in enumerate(FIVE[1:], 2)},
        "saved": 1 - usd(SONNET, FIVE) / usd(SONNET, FIVE_PLAIN),
    },
    "progressive.fourth": {
        "three": usd(SONNET, _wide_session(HEAD)),
        "four": usd(SONNET, _wide_session(HEAD, finds_last_turn=True)),
    },
    "progressive.cold": _line(CALLS[0], 50, 0, 3_800),
    "progressive.loop": _line(CALLS[1], 200, 3_800, 1_700),
    "progressive.turn": _line(CALLS[2], 50, 1_800, 4_200),
    "progressive.full-rewrite": {
        **{f"own_{turn}": TURN for turn in (2, 3, 4)},
        **{f"kept_{turn}": _kept() for turn in (2, 3, 4)},
        **{f"wide_{turn}": _wide(turn - 1) for turn in (2, 3, 4)},
    },
    "progressive.tools-changed": {"read": 0, "written": FIRST + TURN + 2 + 20},
    "progressive.budget-changed": {"read": HEAD, "written": FIRST + TURN - HEAD},
    "progressive.system-changed": {"read_three": 0, "read_four": TOOLS},
    "progressive.flag-read": {"right": sum((not read) != fixed for read, fixed in SECOND_READS), "sessions": 5},
    "progressive.flag-write": {"raised": 0, "first_written": FIRST},
    "progressive.saving": {
        "progressive": usd(SONNET, CALLS),
        "system_only": usd(SONNET, _system_only()),
        "none": usd(SONNET, uncached(CALLS)),
    },
}
