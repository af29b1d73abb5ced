"""Actions by name, and what each costs: the next call of a conversation if something is changed before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.analysis.whatif.results import Action
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.formatting import duration
from cachecost.base.structs import replace
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.fix import CHOICE, EFFORT, FORMAT, MODEL, with_part
from cachecost.changes.steps import NO_CALL, PartPool, ReplayStep, as_sent, continue_request, conversation_of
from cachecost.conversations.calls import Call, derive_call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Layer, Message, given_block
from cachecost.providers.hosts import host_of
from cachecost.providers.prices import must_be_served, withdrawn

NEW_TOOL_TOKENS = 300
"""What a tool that no call of the recording has is taken to be long."""
FORMS = {
    "model": "model=MODEL",
    "effort": "effort=low",
    "tool_choice": "tool_choice=any",
    "tools+": "tools+=NAME",
    "tools-": "tools-=NAME",
    "format": "format=json",
}
VALUES = {
    "effort": ("low", "medium", "high", "xhigh", "max"),
    "tool_choice": ("auto", "any", "none", "tool:NAME"),
    "format": ("json", "text"),
}
SAME_OUTPUT = "answers are assumed to be as long as before"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """An action: a call as it is sent from then on, and what is assumed."""

    name: str
    change: Callable[[Call], Call]
    assumption: str = SAME_OUTPUT
    model: str = ""
    """The model that is switched to, if one is."""


def parse_actions(names: Sequence[str], calls: Sequence[Call]) -> list[SettingChange]:
    """The actions with these names. Raises InputError with all errors; CannotEvaluate for a tool of unknown name."""
    found, faults = list[SettingChange](), list[Fault]()
    for name in names:
        kind, _, value = name.partition("=")
        if kind not in FORMS or not value:
            kinds = [kind for kind in FORMS if not kind.startswith("tools")]
            made: SettingChange | str = (
                f"expected one of {', '.join(FORMS.values())}; got '{name}'{nearest(kind, kinds)}"
            )
        elif kind.startswith("tools"):
            made = _change_tools(name, kind == "tools+", value, calls)
        else:
            made = _change_setting(name, kind, value)
        if isinstance(made, str):
            faults.append(Fault("--action", made))
        else:
            found.append(made)
    if faults:
        raise InputError(faults)
    return found


def _change_setting(name: str, kind: str, value: str) -> SettingChange | str:
    if kind == "model":
        return SettingChange(name, MODEL.to(value), f"{SAME_OUTPUT}, and as many", value)
    chosen, _, tool = value.partition(":")
    is_known = value in VALUES[kind]
    if kind == "tool_choice":
        is_known = bool(tool) if chosen == "tool" else chosen in VALUES[kind]
    if not is_known:
        return f"{name}: expected one of {', '.join(VALUES[kind])}; got '{value}'{nearest(value, VALUES[kind])}"
    if kind == "tool_choice":
        choice = {"type": "tool", "name": tool} if chosen == "tool" else {"type": chosen}
        return SettingChange(name, CHOICE.to(choice))
    if kind == "format":
        schema = {"type": "json_schema", "schema": {"type": "object"}} if value == "json" else None
        return SettingChange(name, FORMAT.to(schema))
    words = "answers at another effort are unknown and assumed to be as long as before: the cost of switching alone"
    return SettingChange(name, EFFORT.to(value), words)


def _change_tools(name: str, is_added: bool, tool: str, calls: Sequence[Call]) -> SettingChange | str:
    """One more tool at the end, as some call has it or else of an assumed length; or one less."""
    blocks = {_name(block): block for call in reversed(calls) for block in reversed(call.request.tools.blocks)}
    added = blocks.get(tool) or given_block("tool", "", f"tool {tool}", NEW_TOOL_TOKENS)
    if not is_added and blocks.keys() == {None}:
        raise CannotEvaluate(f"--action {name}: the recording has no tool names")
    if not is_added and tool not in blocks:
        known = sorted(filter(None, blocks))
        listed = ", ".join(known) or "none"
        return f"{name}: expected a tool of the recording ({listed}); got '{tool}'{nearest(tool, known)}"
    parts = PartPool()

    def change(call: Call) -> Call:
        was = call.request.tools.blocks
        now = (*was, added) if is_added else (block for block in was if _name(block) != tool)
        return with_part(call, Layer.TOOLS, parts.of(now))

    words = f"the new tool is assumed to be {NEW_TOOL_TOKENS} tokens long; {SAME_OUTPUT}"
    return SettingChange(name, change, words if is_added and tool not in blocks else SAME_OUTPUT)


def _name(block: Block) -> str | None:
    name = (block.content or {}).get("name")
    return str(name) if name is not None else None


MOST_CALLS = 100
"""How many further calls are replayed: an action that has not paid off by then counts as never."""
USUAL_GAP_S, USUAL_GROWTH, USUAL_OUTPUT = 30.0, 1_000, 300
"""Seconds between calls, tokens by which a prompt grows, tokens of an answer: used if the recording has none."""


def price_actions(
    profile: RecordingProfile, pricing: AlternativePricing, names: Sequence[str], at: int | None
) -> list[Action]:
    """What each action costs after the recorded call `at` in time order (None: the last that can be evaluated).

    Raises InputError with every fault; CannotEvaluate where the call after it cannot be priced, or a model was not
    served on the day of the call before.
    """
    calls, setup = profile.traffic.calls, profile.traffic.setup
    if at is not None and not 1 <= at <= len(calls):
        raise InputError([Fault("--at", f"expected a call from 1 to {len(calls)}; got {at}")])
    found = parse_actions(names, calls)
    if not found:
        return []
    fine = [row.call for row in pricing.base if row.error is None and row.call <= (at or len(calls))]
    if not fine:
        raise CannotEvaluate("no call can be evaluated, so nothing can be switched after it")
    before = calls[(at or fine[-1]) - 1]
    switches = list[SettingChange]()
    for switch in found:
        gone = ""
        if switch.model:
            try:
                host = host_of(before.host, setup.host, before.request.model)
                must_be_served(host, switch.model, setup.day or before.day)
            except CannotEvaluate as error:
                raise CannotEvaluate(f"--action {switch.name}: {error}") from None
            gone = withdrawn(host, switch.model, profile.today) if profile.today else ""
        assumption = "; ".join(filter(None, (gone, switch.assumption)))
        switches.append(SettingChange(switch.name, switch.change, assumption, switch.model))
    return _price_switches(profile, pricing, switches, at or fine[-1])


def _price_switches(
    profile: RecordingProfile, pricing: AlternativePricing, switches: Sequence[SettingChange], at: int
) -> list[Action]:
    steps, base = as_sent(profile.traffic.calls), pricing.base
    conversation, last = conversation_of(steps[at - 1].call), steps[at - 1].call
    mine = [one for one in steps if conversation_of(one.call) == conversation and base[one.number - 1].error is None]
    recorded = [step for step in mine if step.number > at]
    growth = _Growth.of([step.call for step in mine], [base[step.number - 1] for step in mine])
    made = growth.calls(recorded[-1].call if recorded else last, MOST_CALLS - len(recorded))
    after = [*recorded, *(ReplayStep(NO_CALL, call, call) for call in made)][:MOST_CALLS]
    future = f"{len(recorded):,} recorded calls follow, then" if recorded else "the calls that follow are assumed:"

    without = pricing.replays.rows([*steps[:at], *after], "action")[at:]
    actions = list[Action]()
    for switch in switches:
        changed = [step.with_change(switch.change) for step in after]
        rows = pricing.replays.rows([*steps[:at], *changed], "action")[at:]
        if error := rows[0].error or without[0].error:
            raise CannotEvaluate(f"--action {switch.name}: {error}")
        pairs = [pair for pair in zip(rows, without, strict=True) if not (pair[0].error or pair[1].error)]
        later = pairs[1] if len(pairs) > 1 else pairs[0]
        sums = accumulate(now.cost.total - before.cost.total for now, before in pairs)
        actions.append(
            Action(
                switch.name,
                at,
                rows[0].cost.total,
                without[0].cost.total,
                max(0, without[0].usage.read - rows[0].usage.read),
                later[0].cost.total,
                later[1].cost.total,
                next((number for number, more in enumerate(sums, 1) if more <= 0), None),
                f"{switch.assumption}; {future} {growth}",
                last.session,
                last.file,
                last.line or None,
            )
        )
    return actions


@dataclass(frozen=True, slots=True)
class _Growth:
    """How a conversation goes on: seconds between calls, tokens of an answer and of what is said to it."""

    gap_s: float
    output: int
    message: int

    @classmethod
    def of(cls, calls: Sequence[Call], rows: Sequence[CallRow]) -> _Growth:
        starts = [call.start for call in calls]
        gaps = [after - before for before, after in pairwise(starts)]
        lengths = [row.usage.total_input for row in rows]
        grown = [after - before for before, after in pairwise(lengths) if after > before]
        outputs = [row.usage.output_tokens for row in rows if row.usage.output_tokens]
        growth = round(sum(grown) / len(grown)) if grown else USUAL_GROWTH
        output = round(sum(outputs) / len(outputs)) if outputs else min(USUAL_OUTPUT, growth // 2)
        answered = max((call.first_token_s for call in calls), default=0.0) + 1
        return cls(max(median(gaps), answered) if gaps else USUAL_GAP_S, output, max(1, growth - output))

    def __str__(self) -> str:
        return f"one every {duration(self.gap_s)} that adds {self.output + self.message:,} tokens"

    def calls(self, last: Call, count: int) -> list[Call]:
        made: list[Call] = []
        for number in range(1, count + 1):
            request = last.request
            answer = given_block("text", "assistant", f"answer {number}", self.output)
            said = given_block("text", "user", f"said {number}", self.message)
            thread = request.thread.then(Message.of("assistant", (answer,))).then(Message.of("user", (said,)))
            call = derive_call(
                last, continue_request(request, thread), last.start + self.gap_s, self.output, last.purpose
            )
            last = replace(call, first_token_s=last.first_token_s)
            made.append(last)
        return made
