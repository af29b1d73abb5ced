"""The figures of the Structured Response Refactor's and of the text tools' claims, by hand."""

from __future__ import annotations

from decimal import Decimal

from plain import MILLION, SONNET, Sent, chain, usd

Steps = list[tuple[int, int]]
"""Of each call, tokens added to the prompt and tokens answered."""
HUMAN, CALLED, RESULT, JSON, NOTED, REMINDED, ERROR = 120, 120, 900, 250, 20, 150, 80


def _one_pass(failed: int = 0, turns: int = 10) -> Steps:
    """Ten turns of four calls; the last one answers in JSON, again in the turns of which `failed` fail."""
    steps: Steps = []
    for turn in range(turns):
        start = 8_520 if turn == 0 else JSON + NOTED
        steps += [(start + HUMAN, CALLED), *[(CALLED + RESULT, CALLED)] * 2, (CALLED + RESULT, JSON)]
        steps += [(JSON + ERROR, JSON)] * _is_failing(turn, failed)
    return steps


def _two_steps(failed: int = 0) -> Steps:
    """The same with a call more in each turn, and two tools of 120 tokens instead of one with a schema of 400."""
    steps: Steps = []
    for turn in range(10):
        start = 8_240 if turn == 0 else JSON + NOTED
        steps += [(start + HUMAN, CALLED), *[(CALLED + RESULT, CALLED)] * 2, (CALLED + RESULT, JSON)]
        steps += [(JSON + NOTED + REMINDED, JSON)] + [(JSON + ERROR, JSON)] * _is_failing(turn, failed)
    return steps


def _is_failing(turn: int, failed: int) -> bool:
    """One failure in all is the fifth turn's; ten are one in each."""
    return failed == 10 or (failed == 1 and turn == 4)


def _never() -> Steps:
    steps: Steps = []
    for turn in range(10):
        steps += [((8_120 if turn == 0 else JSON) + HUMAN, CALLED), *[(CALLED + RESULT, CALLED)] * 2]
        steps += [(CALLED + RESULT, JSON), *[(JSON + ERROR, JSON)] * 6]
    return steps


def _cost(steps: Steps) -> Decimal:
    return usd(SONNET, chain(steps))


ONE, TWO = _cost(_one_pass()), _cost(_two_steps())
HALF = (_cost(_one_pass(10)) - ONE) / 10
FOUR = [
    call if number % 4 else call._replace(read=0 if number < 16 else 8_520)
    for number, call in enumerate(chain(_one_pass()))
]
"""A turn's first call finds nothing under a schema not sent before, and the head alone when it comes round again."""
EDGE = (TWO - ONE) / HALF / 10

STATIC, FETCHED, SAID = 24_707, 1_200, 300
FIRST, SECOND, READ = 24_707, 1_101, 27_164


def _tool_session(static: int, mishap: bool = False, error: int = 60) -> Steps:
    """Four turns of six calls; before the tenth call of a tool one that fails: 120 tokens and 60 that say so."""
    steps: Steps = []
    for turn in range(4):
        steps.append(((static if turn == 0 else SAID) + HUMAN, CALLED))
        for call in range(1, 6):
            steps.append((CALLED + FETCHED, SAID if call == 5 else CALLED))
            if mishap and (turn, call) == (1, 4):
                steps.append((CALLED + error, CALLED))
    return steps


def _saved(first: int, write: Decimal) -> Decimal:
    paid = (first + SECOND) * write + READ * SONNET.read
    return 1 - paid / ((first + SECOND + READ) * SONNET.input)


def _searched(found: int) -> Steps:
    """The same loop in 25 calls: 12 tools are deferred, and the first result refers to one of them."""
    start = 250 + 15_707 + 120
    return [(start, 0), (CALLED + found, 0), *[(CALLED + FETCHED, 0)] * 23]


REFERENCE = len(
    '{"type":"tool_result","tool_use_id":"search","content":[{"type":"tool_reference","tool_name":"tool00"}]}'
)
LONG = 12 * 750 + 15_707
STRICT = len(',"strict":true')
DECLARED, TEXT = _cost(_tool_session(STATIC)), _cost(_tool_session(STATIC + 300))
MISHAP = _cost(_tool_session(STATIC, mishap=True)) - DECLARED
SHORT = usd(SONNET, [Sent(FIRST), Sent(SECOND + READ, READ)])
TURN_2 = chain(_tool_session(STATIC))[6]
HISTORY = 2 * (HUMAN + 5 * (CALLED + FETCHED) + SAID) - SAID
"""Tokens of messages that the third turn would have read: two turns but the last answer."""
FIGURES = {
    "structured.first-try": {"two": TWO, "one": ONE, "two_calls": 50, "one_calls": 40},
    "structured.confusion": {"per_confusion": _cost(_two_steps(1)) - TWO, "per_misfit": _cost(_one_pass(1)) - ONE},
    "structured.break-even": {"failures": EDGE, "rate": EDGE / (1 + EDGE)},
    "structured.loop": {"never": _cost(_never()), "calls": 100, "times_two": _cost(_never()) / TWO},
    "structured.schemas": {"four": usd(SONNET, FOUR)},
    "structured.sums": {"sum": 250 + 200 + 270, "each": 720 // 2},
    "structured.schema-size": {
        "read_1000": 1000 * 400 * SONNET.read / MILLION,
        "write": 400 * SONNET.write / MILLION,
    },
    "text.savings": {
        "rate": Decimal(READ) / (READ + SECOND),
        "second_write_5m": _saved(0, SONNET.write),
        "second_write_1h": _saved(0, SONNET.hour),
        "both_write_5m": _saved(FIRST, SONNET.write),
        "both_write_1h": _saved(FIRST, SONNET.hour),
    },
    "text.missing": {"gap": READ - FIRST},
    "text.subscription": {
        "usd_5m": SHORT,
        "usd_1h": ((FIRST + SECOND) * SONNET.hour + READ * SONNET.read) / MILLION,
        "sessions_Pro": 20 / SHORT,
        "sessions_Max 5x": 100 / SHORT,
        "sessions_Max 20x": 200 / SHORT,
    },
    "text.protocol": {"text": TEXT, "declared": DECLARED},
    "text.strict": {
        "read": 0,
        "written": LONG + HUMAN + CALLED + FETCHED + STRICT,
        "read_then": LONG + HUMAN + CALLED + FETCHED + STRICT,
        "saved": _cost(_tool_session(STATIC + 300, mishap=True)) - TEXT,
    },
    "text.search": {
        "declared": _cost([(LONG + HUMAN, 0), *[(CALLED + FETCHED, 0)] * 23]),
        "searched": _cost(_searched(REFERENCE + 750)),
        "read": 250 + 15_707 + HUMAN,
    },
    "text.automatic": {"automatic": DECLARED, "declared": DECLARED},
    "text.repair": {"usd": MISHAP, "calls": 25},
    "text.invalid": {"usd": MISHAP, "calls": 25},
    "text.unreadable": {"usd": _cost(_tool_session(STATIC + 300, mishap=True)) - TEXT},
    "text.resume": {
        "total": TURN_2.total,
        "read": TURN_2.read,
        "lost": HISTORY * (SONNET.write - SONNET.read) / MILLION,
    },
}
