"""The content-free form of a transcript: its calls as far as usage, times and flags go, a line each."""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.base.times import seconds
from cachecost.conversations.input_files import billed_call
from cachecost.conversations.json_object import JsonObject, are_pairs, are_texts
from cachecost.conversations.readers.common.session_calls import SessionCall
from cachecost.prompts.request import show_found
from cachecost.providers.usage import usage_of

FORMAT = 1
KIND = "steps"
BETWEEN = ("human", "compaction", "edit", "model", "client", "error", "fork")
"""What may lie between two calls: a user message that holds anything besides tool results, a compaction, a context
edit, another model, another version of the client, an API error, and that another call went on from the same one."""


def parse_steps(lines: Iterable[JsonObject]) -> list[SessionCall]:
    """The calls of a content-free form, header first. Errors go to the lines' list."""
    calls: list[SessionCall] = []
    for position, line in enumerate(lines):
        if position:
            calls.append(_parse_step(line, calls))
            continue
        version = line.data.get("format")
        if version != FORMAT or isinstance(version, bool):
            line.fault("format", f"expected {FORMAT}; got {show_found(version)}, which this version cannot read")
            continue
        line.known_keys.update(("format", "kind"))
        for name, default in (("name", None), ("source", ""), ("licence", "")):
            line.text(name, default)
        line.refuse_unknown_keys()
    return calls


def _parse_step(line: JsonObject, calls: list[SessionCall]) -> SessionCall:
    """Fields are read in the order in which their errors are listed."""
    number = len(calls) + 1
    if line.whole("step", required=True) not in (None, number):
        line.fault("step", f"expected {number}; got {line.data['step']}")
    moment = line.moment("answered")
    answered = seconds(moment) if moment else None
    uses = line.get(
        "tool_uses",
        "an array of [tool, number]",
        lambda value: are_pairs(value) and all(isinstance(one[0], str) and _is_whole(one[1]) for one in value),
        (),
        required=False,
    )
    chain, before = line.text("chain"), line.whole("before")
    if before is not None and not 1 <= before < number:
        line.fault("before", f"no line before this one has step {before}")
        before = None
    model = line.text("model")
    counts = line.get(
        "usage",
        "five whole numbers from 0",
        lambda value: isinstance(value, list) and len(value) == 5 and all(map(_is_whole, value)),
        (0,) * 5,
    )
    bill = billed_call(line.line or 0, model, usage_of(counts, tuple(map(tuple, uses))), answered)
    bill.number, bill.before, bill.answered = number, before or 0, answered
    call = SessionCall(bill, calls[before - 1] if before else None, thread=chain)
    waited, took = line.number("waited_s"), line.number("took_s")
    if answered is not None:
        call.after = None if waited is None else round(answered - waited, 6)
        bill.start = answered if call.after is None else call.after
        bill.end = None if took is None else round(answered + took, 6)
    bill.blocks, bill.has_thinking = line.whole("blocks", 0) or 0, line.flag("thinking")
    known = f"an array of {', '.join(BETWEEN)}"
    bill.events = tuple(
        line.get(
            "between", known, lambda value: are_texts(value) and set(BETWEEN).issuperset(value), (), required=False
        )
    )
    bill.modes = tuple(line.get("modes", "an array of texts", are_texts, (), required=False))
    bill.is_summed = line.flag("summed")
    line.refuse_unknown_keys()
    return call


def _is_whole(value: object) -> bool:
    return type(value) is int and value >= 0
