"""The figures of RFD 033's claims, by hand."""

from __future__ import annotations

from decimal import Decimal

from plain import BASE_S, MILLION, OPUS, READ_S, UNREAD_S, Rates, Sent, usd

HEAD, TOOLS, TOOL, CALL, ASKED = 27_000, 21_000, 75, 80, 203
"""Tools and system prompt; the tools of these; the answer tool; the open tool call; the question behind its result."""
CONTEXT = 95_000
SAID, CALL_AROUND, JSON_AROUND, THOUGHT = 5, 75, 8, 300
"""Tokens of an answer, and what a tool's call, the JSON of a schema or thinking adds to it (nothing is counted)."""
ANSWER, IN_JSON, THINKING = SAID + CALL_AROUND, SAID + JSON_AROUND, SAID + CALL_AROUND + THOUGHT
SIZE = 142
"""Of the answer tool, as RFD 033 writes it out."""
BARE = Sent(CONTEXT + ASKED - TOOLS, 0, IN_JSON)
SAME = Sent(CONTEXT + ASKED, TOOLS, IN_JSON)
FORCED = Sent(CONTEXT + TOOL + ASKED, HEAD + TOOL, ANSWER)
FREE = FORCED._replace(read=CONTEXT + TOOL - CALL)
RETRY = Sent(FORCED.total + 80 + ANSWER, FORCED.total, ANSWER)
"""Its answer again, and a complaint of 80 tokens."""
BEFORE = Sent(CONTEXT + TOOL + ASKED, HEAD + TOOL, THINKING, ASKED)
"""With the breakpoint before the question, which is neither read nor written."""
TYPED = Sent(CONTEXT + TOOL + ASKED, 0, ANSWER)
PROMPT = 82
"""Of structured output, besides the schema: fitted on bills."""
MAIN = 21_000 + 75 + 6_000 + 67_920
SOFT = 30
GPT = Rates(Decimal("1.75"), Decimal(14), Decimal("0.175"), Decimal(0), Decimal(0))
FLASH = Rates(Decimal("0.5"), Decimal(3), Decimal("0.05"), Decimal(0), Decimal(0))


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
    "033.no-tools": {"read_none": BARE.read, "read_same": SAME.read, "usd_same": _cost(SAME)},
    "033.format-layer": {"read": TOOLS, "read_tools": 0, "usd_tools": _cost(SAME._replace(read=0))},
    "033.injected": {"tokens": PROMPT, "usd": PROMPT * OPUS.write / MILLION},
    "033.every": {
        "first": _cost(SAME._replace(fresh=ASKED, output=IN_JSON + THOUGHT)),
        "second": _cost(Sent(SAME.total, CONTEXT, IN_JSON + THOUGHT, ASKED)),
        "read": CONTEXT,
    },
    "033.breakpoint-before": {
        "first": _cost(BEFORE),
        "later": _cost(BEFORE._replace(read=CONTEXT + TOOL)),
        "read": CONTEXT + TOOL,
    },
    "033.without-thinking": {
        "off": _cost(FORCED._replace(output=0)),
        "on": _cost(FREE._replace(output=0)),
        "thought": int((_cost(FORCED) - _cost(FREE)) * MILLION / OPUS.output),
    },
    "033.forced-and-thinking": {
        "refused_manual": 1,
        "refused_adaptive": 0,
        "refused_model": 1,
        "models": len(("fable-5-2", "mythos-5-2", "sonnet-5-5", "opus-5-5", "fable-5-1", "mythos-5-1")),
        "with": _cost(FORCED._replace(output=THINKING)),
        "without": _cost(FORCED),
    },
    "033.soft-force": {
        "read": HEAD + TOOL,
        "written": MAIN + SOFT - (HEAD + TOOL) + CALL + ASKED,
        "block": usd(OPUS, [Sent(MAIN + SOFT + CALL + ASKED, HEAD + TOOL)]),
        "words": usd(OPUS, [Sent(MAIN + CALL + ASKED, MAIN)]),
    },
    "033.typed": {"usd": _cost(TYPED._replace(output=THINKING)), "read": 0},
    "033.typed-by-type": {
        "first": _cost(TYPED._replace(output=THINKING)),
        "again": _cost(FORCED._replace(output=THINKING)),
        "before": _cost(BEFORE._replace(read=CONTEXT + TOOL)),
        "three_1000": 1000 * 2 * SIZE * OPUS.read / MILLION,
    },
    "033.google": {
        "structured": usd(FLASH, [Sent(SAME.total, 0, IN_JSON, SAME.total)]),
        "forced": usd(FLASH, [Sent(FORCED.total, FREE.read, ANSWER, FORCED.total - FREE.read)]),
    },
    "033.elsewhere": {
        "structured": usd(GPT, [Sent(SAME.total, 0, IN_JSON, SAME.total)]),
        "forced": usd(GPT, [Sent(FORCED.total, 741 * 128, ANSWER, FORCED.total - 741 * 128)]),  # blocks begin 11 before
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
