"""The figures of RFD 033's claims, by hand."""

from __future__ import annotations

from decimal import Decimal

from plain import BASE_S, MILLION, OPUS, READ_S, UNREAD_S, Rates, Sent, usd

HEAD, TOOLS, TOOL, CALL, ASKED = 27_000, 21_000, 75, 80, 203
"""Tools and system prompt; the tools of these; the answer tool; the open tool call; the question behind its result."""
CONTEXT, ANSWER = 95_000, 5
AS_JSON, AS_CALL = ANSWER + 8, ANSWER + 75
"""What is put out: the answer in a schema's JSON, or in a tool's call."""
SIZE = 142
"""Of the answer tool, as RFD 033 writes it out."""
BARE = Sent(CONTEXT + ASKED - TOOLS, 0, AS_JSON)
SAME = Sent(CONTEXT + ASKED, TOOLS, AS_JSON)
FORCED = Sent(CONTEXT + TOOL + ASKED, HEAD + TOOL, AS_CALL)
FREE = FORCED._replace(read=CONTEXT + TOOL - CALL)
RETRY = Sent(FORCED.total + AS_CALL + 80, FORCED.total, AS_CALL)
GPT = Rates(Decimal("1.75"), Decimal(14), Decimal("0.175"), Decimal(0), Decimal(0))


def _cost(call: Sent) -> Decimal:
    return usd(OPUS, [call])


def _tool(calls: int) -> Decimal:
    """Written once and read by every later call."""
    return SIZE * (OPUS.write + (calls - 1) * OPUS.read) / MILLION


def _unprompted() -> Decimal:
    """Before the tenth of twenty calls: 40 tokens answered, 70 more in each later call, and all the rest read again."""
    tenth = SIZE + HEAD + 67_000 + 9 * 1000
    return usd(OPUS, [Sent(tenth + 70, tenth, 40)]) + 10 * 70 * OPUS.read / MILLION


ALL = Decimal(CONTEXT) / MILLION
FIGURES = {
    "033.write": {"usd": ALL * OPUS.write},
    "033.read": {"usd": ALL * OPUS.read},
    "033.waste": {"usd": ALL * (OPUS.write - OPUS.read)},
    "033.three": {"usd": 3 * ALL * (OPUS.write - OPUS.read)},
    "033.waste-simulated": {
        "written": BARE.total,
        "waste_no_tools": 3 * (_cost(BARE) - _cost(FREE)),
        "waste_same_tools": 3 * (_cost(SAME) - _cost(FREE)),
    },
    "033.only-the-question": {
        "written": FORCED.total - FORCED.read,
        "claimed_written": FREE.total - FREE.read,
        "usd": _cost(FORCED),
    },
    "033.suggested": {"usd": _cost(FREE)},
    "033.elsewhere": {
        "structured": usd(GPT, [Sent(SAME.total, 0, AS_JSON, SAME.total)]),
        # blocks begin 11 before
        "forced": usd(GPT, [Sent(FORCED.total, 741 * 128, AS_CALL, FORCED.total - 741 * 128)]),
    },
    "033.tool-size": {"tokens": SIZE},
    "033.tool-cost": {
        "read_1000": 1000 * SIZE * OPUS.read / MILLION,
        "write": SIZE * OPUS.write / MILLION,
        "session": _tool(20),
    },
    "033.unprompted": {"usd": _unprompted(), "requests": _unprompted() / (SIZE * OPUS.read / MILLION)},
    "033.retry": {"usd": _cost(RETRY), "read": RETRY.read, "written": RETRY.total - RETRY.read},
    "033.retry-rate": {"retries": (_cost(BARE) - _cost(FREE)) / _cost(RETRY)},
    "033.latency": {"anew_s": BASE_S + UNREAD_S * CONTEXT, "read_s": BASE_S + READ_S * CONTEXT},
}
