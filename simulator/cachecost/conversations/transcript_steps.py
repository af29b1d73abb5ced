"""Steps: the API calls of an agent's transcript as far as usage, times and flags go; and their content-free form.

The form is JSON Lines. Line 1: {"format": 1, "kind": "steps", "name", "source", "licence"}. Then a line a step, in
order; what is not said is absent, false or empty:

    {"step": 3, "chain": "side 1", "before": 2, "model": …, "answered": ISO 8601, "waited_s": from the record before to
     `answered`, "took_s": from `answered` to the last record, "blocks": 4, "thinking": true, "between": ["human"],
     "modes": ["fast"], "summed": true, "tool_uses": [["web_search", 3]],
     "usage": [input, read, 5m write, 1h write, output]}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cachecost.base.times import iso, seconds
from cachecost.conversations.json_object import JsonObject
from cachecost.prompts.wire import show_found
from cachecost.providers.usage import ToolUses, Usage, usage_of

FORMAT = 1
KIND = "steps"
BETWEEN = ("human", "compaction", "edit", "model", "client", "error", "fork")
"""What may lie between two steps: a user message that holds anything besides tool results, a compaction, a context
edit, another model, another version of the client, an API error, and that another step went on from the same one."""
MICROSECONDS = 6


NO_TOKENS = (0, 0, 0, 0, 0)
NO_USAGE = Usage()


@dataclass(slots=True)
class TranscriptStep:
    """One API call, and what lies between it and the call before it on its chain.

    A reader changes it until it has read all lines of the answer.

    Times are seconds since the epoch, None where none is told: `after` that of the record before the request,
    `answered` and `ended` those of the first and the last record of the answer.
    """

    number: int
    """From 1, in the order of the file."""
    line: int
    chain: str
    before: int | None
    """Number of the step that this one goes on from; None: the first of its chain."""
    model: str
    usage: Usage = NO_USAGE
    after: float | None = None
    answered: float | None = None
    ended: float | None = None
    blocks: int = 0
    """Content blocks between this request and the one before, its answer included; no fewer than so many."""
    thinking: bool = False
    """Whether the answer holds thinking."""
    between: tuple[str, ...] = ()
    """Which of `BETWEEN` lie between this step and the one before, in that order."""
    modes: tuple[str, ...] = ()
    """Tiers and region, as `CallTerms.modes`."""
    summed: bool = False
    """The usage sums several passes (server tools), so that its read and write are no length of a prefix."""
    session: str = field(default="", compare=False)
    project: str = field(default="", compare=False)
    agent: str = field(default="", compare=False)
    """These three are as those of a recorded call. The content-free form has none of them."""
    id: str = field(default="", compare=False)
    """Equal for all copies of the step; "" if unknown."""


def steps_to_records(
    steps: Iterable[TranscriptStep], name: str, source: str = "", licence: str = ""
) -> Iterator[dict[str, Any]]:
    """The lines of the content-free form as objects: no word, no id and no line number of the transcript.

    `name`, `source`, `licence` and models are written as given.
    """
    yield {"format": FORMAT, "kind": KIND, "name": name, "source": source, "licence": licence}
    yield from map(_record, steps)


def _record(step: TranscriptStep) -> dict[str, Any]:
    usage = step.usage
    values = {
        "step": step.number,
        "chain": step.chain,
        "before": step.before,
        "model": step.model,
        "answered": None if step.answered is None else iso(step.answered),
        "waited_s": _difference(step.after, step.answered),
        "took_s": _difference(step.answered, step.ended),
        "blocks": step.blocks or None,
        "thinking": step.thinking or None,
        "between": list(step.between) or None,
        "modes": list(step.modes) or None,
        "summed": step.summed or None,
        "tool_uses": [[tool, uses] for tool, uses in usage.tool_uses] or None,
        "usage": [usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens],
    }
    return {name: value for name, value in values.items() if value is not None}


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else round(other - one, MICROSECONDS)


def parse_steps(lines: Iterable[JsonObject]) -> list[TranscriptStep]:
    """The steps of a content-free form, header first; `line` is a line of it. Errors go to the lines' list."""
    steps: list[TranscriptStep] = []
    for position, line in enumerate(lines):
        if position == 0:
            _check_header(line)
        else:
            steps.append(_step(line, position))
    return steps


def _check_header(line: JsonObject) -> None:
    version = line.data.get("format")
    if version != FORMAT or isinstance(version, bool):
        line.fault("format", f"expected {FORMAT}; got {show_found(version)}, which this version cannot read")
        return
    line.known_keys.update(("format", "kind"))
    for name, default in (("name", None), ("source", ""), ("licence", "")):
        line.text(name, default)
    line.refuse_unknown_keys()


def _step(line: JsonObject, number: int) -> TranscriptStep:
    if line.whole("step", required=True) not in (None, number):
        line.fault("step", f"expected {number}; got {line.data['step']}")
    moment = line.moment("answered")
    answered = seconds(moment) if moment else None
    step = TranscriptStep(
        number,
        line.line or 0,
        line.text("chain"),
        _before(line, number),
        line.text("model"),
        usage_of(line.get("usage", "five whole numbers from 0", _are_five, NO_TOKENS), _tool_uses(line)),
        _move(answered, line.number("waited_s"), -1),
        answered,
        _move(answered, line.number("took_s"), 1),
        line.whole("blocks", 0) or 0,
        line.flag("thinking"),
        _words(line, "between", BETWEEN),
        tuple(line.get("modes", "an array of texts", _are_texts, (), required=False)),
        line.flag("summed"),
    )
    line.refuse_unknown_keys()
    return step


def _before(line: JsonObject, number: int) -> int | None:
    before = line.whole("before")
    if before is not None and not 1 <= before < number:
        line.fault("before", f"no line before this one has step {before}")
        return None
    return before


def _move(time: float | None, by: float | None, sign: int) -> float | None:
    return None if time is None or by is None else round(time + sign * by, MICROSECONDS)


def _words(line: JsonObject, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    expected = f"an array of {', '.join(known)}"
    return tuple(line.get(name, expected, lambda value: _are_among(value, known), (), required=False))


def _are_among(value: object, known: tuple[str, ...]) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one in known for one in value)


def _tool_uses(line: JsonObject) -> ToolUses:
    found = line.get("tool_uses", "an array of [tool, number]", _are_uses, (), required=False)
    return tuple((tool, uses) for tool, uses in found)


def _are_uses(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and type(one[1]) is int and one[1] >= 0
        for one in value
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_five(value: object) -> bool:
    return isinstance(value, list) and len(value) == 5 and all(type(one) is int and one >= 0 for one in value)
