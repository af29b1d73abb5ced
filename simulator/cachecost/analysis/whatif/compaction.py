"""Compaction at so many tokens: what is older than the last human turn is summed up, once the prompt is that long.

Actions by name: what changes between two calls of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, conversations, has_breakpoints, in_order
from cachecost.analysis.whatif.option import COMPACTION, Option
from cachecost.base.atomic_files import current_work_check
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread, digest_of, given_block
from cachecost.prompts.render import TokenCounter
from cachecost.prompts.request import Breakpoint, Request
from cachecost.simulation.workload import Workload

LIMITS = (50_000, 100_000, 150_000, 200_000, 400_000)
SUMMARY_TOKENS = 2_000
INSTRUCTION_TOKENS = 500
WAIT_S = 10.0
ASSUMED = (
    f"A separate call writes a summary of {SUMMARY_TOKENS:,} tokens; later calls are assumed to answer as they did"
)


def compaction_options(traffic: Workload, lengths: dict[int, int]) -> Iterator[Option]:
    """At each of several limits that a prompt of the recording is longer than. `lengths` by number of the call."""
    for limit in LIMITS:
        if max(lengths.values(), default=0) > limit:
            yield compaction_option(traffic, lengths, limit)


def compaction_option(traffic: Workload, lengths: dict[int, int], limit: int) -> Option:
    """At `limit` tokens."""
    name = f"{limit // 1000}k" if limit % 1000 == 0 else str(limit)
    return Option(
        f"compaction={name}",
        "compaction",
        f"once a prompt exceeds {limit:,} tokens, a summary replaces everything before the last human turn",
        partial(compact_steps, traffic=traffic, lengths=lengths, limit=limit),
        COMPACTION,
        ASSUMED,
        keeps_answers=False,
    )


def compact_steps(
    steps: Sequence[ReplayStep], traffic: Workload, lengths: dict[int, int], limit: int
) -> list[ReplayStep]:
    """The steps of each conversation with what is too long summed up, and the calls that do so."""
    check = current_work_check()
    made = [step for step in steps if step.call.has_failed or step.number == NO_CALL]
    for conversation in conversations(steps):
        one = _RewrittenConversation(traffic, lengths, limit)
        for step in conversation:
            if check is not None:
                check()
            if not step.call.has_failed and step.number != NO_CALL:
                made += one.send(step)
    return in_order(made)


@dataclass(slots=True)
class _RewrittenConversation:
    """One conversation while it is rewritten. `cut` is the last summarized message, `summary` its replacement."""

    traffic: Workload
    lengths: dict[int, int]
    limit: int
    cut: Thread | None = None
    summary: Message | None = None
    _tokens: dict[Thread, int] = field(default_factory=dict)

    def send(self, step: ReplayStep) -> list[ReplayStep]:
        """The step as sent, preceded by the summary call if one is due."""
        thread = step.call.request.thread
        if self.cut is not None and thread.up_to(self.cut.length) is not self.cut:
            self.cut = self.summary = None  # the client rewrote the thread itself
        if self._length(step) <= self.limit:
            return [step.with_change(self._short)]
        end = _end_of_summary(thread, self.cut)
        if (
            end is None
            or (self.lengths.get(step.number, 0) - self._up_to(end, step.call) + SUMMARY_TOKENS) > self.limit
        ):
            return [step.with_change(self._short)]
        ask = self._summary_call(step, end)
        self.cut, self.summary = end, Message.of("user", (_block("summary", end, SUMMARY_TOKENS),))
        return [ask, step.with_change(self._short)]

    def _length(self, step: ReplayStep) -> int:
        """Tokens of the prompt as it would be sent."""
        length = self.lengths.get(step.number, 0)
        if self.cut is None:
            return length
        return length - self._up_to(self.cut, step.call) + SUMMARY_TOKENS

    def _up_to(self, node: Thread, call: Call) -> int:
        """Tokens of all messages up to `node`, as counted."""
        if node not in self._tokens:
            counter = self._counter(call)
            blocks = (block for one in node.back() if one.message for block in one.message.blocks)
            self._tokens[node] = sum(counter.block(block) for block in blocks) if counter else 0
        return self._tokens[node]

    def _counter(self, call: Call) -> TokenCounter | None:
        try:
            return self.traffic.setup.counter(self.traffic.setup.rules_for(call).generation)
        except CannotEvaluate:
            return None

    def _short(self, call: Call) -> Call:
        """The call with the summary in the place of what it sums up. Breakpoints on that are gone."""
        request = call.request
        if self.cut is None or self.summary is None:
            return call
        thread, moved = self._insert_summary(request.thread)
        breakpoints = []
        for breakpoint in request.breakpoints:
            if breakpoint.node is None:
                breakpoints.append(breakpoint)
            elif breakpoint.node in moved:
                breakpoints.append(replace(breakpoint, node=moved[breakpoint.node]))
        return replace(call, request=replace(request, thread=thread, breakpoints=tuple(breakpoints)))

    def _insert_summary(self, thread: Thread) -> tuple[Thread, dict[Thread, Thread]]:
        assert self.cut is not None and self.summary is not None
        kept = []
        for node in thread.back():
            if node is self.cut:
                break
            kept.append(node)
        moved: dict[Thread, Thread] = {}
        grown = thread.root.then(self.summary)
        for node in reversed(kept):
            assert node.message is not None
            grown = moved[node] = grown.then(node.message)
        return grown, moved

    def _summary_call(self, step: ReplayStep, end: Thread) -> ReplayStep:
        """The call that sums up: what was sent until then, and an instruction, marked as the calls are."""
        until = replace(
            step.call.request, thread=end, breakpoints=tuple(m for m in step.call.request.breakpoints if m.node is None)
        )
        short = self._short(replace(step.call, request=until)).request
        thread = short.thread.then(Message.of("user", (_block("instruction", end, INSTRUCTION_TOKENS),)))
        breakpoints = short.breakpoints
        if step.call.request.automatic is None and has_breakpoints(step.call.request):
            breakpoints = (*breakpoints, Breakpoint(Layer.MESSAGES, 0, step.call.request.breakpoints[-1].ttl, thread))
        request = replace(short, thread=thread, breakpoints=breakpoints)
        ask = derive_call(step.call, request, step.call.start - WAIT_S, SUMMARY_TOKENS, "compaction")
        return ReplayStep(NO_CALL, ask, ask)


def _end_of_summary(thread: Thread, cut: Thread | None) -> Thread | None:
    """The last message before the last human one; in one long turn, that before the last answer. None: nothing."""
    least = cut.length if cut else 0
    human = thread.human.parent if thread.human else None
    if human is not None and human.length > least:
        return human
    answer = next((node for node in thread.back() if node.message and node.message.role == "assistant"), None)
    before = answer.parent if answer else None
    return before if before is not None and before.length > least else None


def _block(what: str, end: Thread, tokens: int) -> Block:
    assert end.message is not None
    name = digest_of("user", "text", end.message.digest + str(end.length).encode()).hex()
    return given_block("text", "user", f"{what} {name}", tokens)


NEW_TOOL_TOKENS = 300
"""What a tool that no call of the recording has is taken to be long."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CHOICES = ("auto", "any", "none", "tool:NAME")
FORMATS = ("json", "text")
FORMS = ("model=MODEL", "effort=low", "tool_choice=any", "tools+=NAME", "tools-=NAME", "format=json")
SAME_OUTPUT = "answers are assumed to be as long as before"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """An action: the request as it is sent from then on, and what is assumed."""

    name: str
    change: Callable[[Request], Request]
    assumption: str = SAME_OUTPUT
    model: str = ""
    """The model that is switched to, if one is."""


def parse_actions(names: Sequence[str], calls: Sequence[Call]) -> list[SettingChange]:
    """The actions with these names. Raises InputError with all errors; CannotEvaluate for a tool of unknown name."""
    found, faults = list[SettingChange](), list[Fault]()
    for name in names:
        made = _switch(name, calls)
        if isinstance(made, str):
            faults.append(Fault("--action", made))
        else:
            found.append(made)
    if faults:
        raise InputError(faults)
    return found


def _switch(name: str, calls: Sequence[Call]) -> SettingChange | str:
    """The action, or what is wrong with its name."""
    for sign, make in (("tools+=", _add_tool), ("tools-=", _remove_tool)):
        if name.startswith(sign) and len(name) > len(sign):
            return make(name, name.removeprefix(sign), calls)
    kind, _, value = name.partition("=")
    makers: dict[str, Callable[[str, str], SettingChange | str]] = {
        "model": _model,
        "effort": _effort,
        "tool_choice": _choice,
        "format": _format,
    }
    if kind in makers and value:
        return makers[kind](name, value)
    return f"expected one of {', '.join(FORMS)}; got '{name}'{nearest(kind, makers)}"


def _model(name: str, value: str) -> SettingChange:
    return SettingChange(name, lambda request: replace(request, model=value), f"{SAME_OUTPUT}, and as many", value)


def _effort(name: str, value: str) -> SettingChange | str:
    if value not in EFFORTS:
        return f"{name}: expected one of {', '.join(EFFORTS)}; got '{value}'{nearest(value, EFFORTS)}"
    words = "answers at another effort are unknown and assumed to be as long as before: the cost of switching alone"
    return SettingChange(name, lambda request: _config(request, effort=value), words)


def _choice(name: str, value: str) -> SettingChange | str:
    kind, _, tool = value.partition(":")
    if kind not in ("auto", "any", "none") and not (kind == "tool" and tool):
        return f"{name}: expected one of {', '.join(CHOICES)}; got '{value}'{nearest(value, CHOICES)}"
    choice = {"type": "tool", "name": tool} if kind == "tool" else {"type": kind}
    return SettingChange(name, lambda request: _with_params(request, tool_choice=choice))


def _format(name: str, value: str) -> SettingChange | str:
    if value not in FORMATS:
        return f"{name}: expected one of {', '.join(FORMATS)}; got '{value}'{nearest(value, FORMATS)}"
    schema = {"type": "json_schema", "schema": {"type": "object"}} if value == "json" else None
    return SettingChange(name, lambda request: _config(request, format=schema))


def _with_params(request: Request, **more: Any) -> Request:
    params = {**request.params, **more}
    return replace(request, params={name: value for name, value in params.items() if value is not None})


def _config(request: Request, **more: Any) -> Request:
    config = {**(request.params.get("output_config") or {}), **more}
    return _with_params(request, output_config={name: value for name, value in config.items() if value is not None})


def _add_tool(name: str, tool: str, calls: Sequence[Call]) -> SettingChange:
    """One more tool at the end: as some call has it, else of an assumed length."""
    known = next((b for call in calls for b in call.request.tools.blocks if _name(b) == tool), None)
    block = known or given_block("tool", "", f"tool {tool}", NEW_TOOL_TOKENS)
    words = SAME_OUTPUT if known else f"the new tool is assumed to be {NEW_TOOL_TOKENS} tokens long; {SAME_OUTPUT}"
    parts: dict[Part, Part] = {}

    def change(request: Request) -> Request:
        tools = parts.setdefault(request.tools, Part((*request.tools.blocks, block)))
        return _with_tools(request, tools)

    return SettingChange(name, change, words)


def _remove_tool(name: str, tool: str, calls: Sequence[Call]) -> SettingChange | str:
    names = {_name(block) for call in calls for block in call.request.tools.blocks}
    if names == {None}:
        raise CannotEvaluate(f"--action {name}: the recording has no tool names")
    if tool not in names:
        known = sorted(filter(None, names))
        listed = ", ".join(known) or "none"
        return f"{name}: expected a tool of the recording ({listed}); got '{tool}'{nearest(tool, known)}"
    parts: dict[Part, Part] = {}

    def change(request: Request) -> Request:
        kept = tuple(block for block in request.tools.blocks if _name(block) != tool)
        return _with_tools(request, parts.setdefault(request.tools, Part(kept)))

    return SettingChange(name, change)


def _with_tools(request: Request, tools: Part) -> Request:
    """Other tools. A breakpoint on one that moved stays on it; on the last one, or on one that is gone, it is on
    the last.
    """
    breakpoints = [
        _move_breakpoint(breakpoint, request.tools.blocks, tools.blocks) for breakpoint in request.breakpoints
    ]
    unique = {breakpoint.block_key: breakpoint for breakpoint in breakpoints if breakpoint is not None}
    return replace(request, tools=tools, breakpoints=tuple(unique.values()))


def _move_breakpoint(breakpoint: Breakpoint, was: tuple[Block, ...], now: tuple[Block, ...]) -> Breakpoint | None:
    if breakpoint.layer is not Layer.TOOLS:
        return breakpoint
    if not now:
        return None
    index = (
        now.index(was[breakpoint.index])
        if breakpoint.index < len(was) - 1 and was[breakpoint.index] in now
        else len(now) - 1
    )
    return replace(breakpoint, index=index)


def _name(block: Block) -> str | None:
    name = (block.content or {}).get("name")
    return str(name) if name is not None else None
