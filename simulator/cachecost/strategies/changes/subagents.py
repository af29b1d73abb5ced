"""Sub-agents: a run of tool calls leaves the main thread, which gets a summary of it instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cachecost.conversations.model import (
    Aside,
    Conversation,
    Event,
    Human,
    Inquiry,
    Reply,
    Results,
    Switch,
    ThreadRewrite,
)
from cachecost.prompts.blocks import Block, Part, given_block
from cachecost.strategies.changes.base import (
    STEP_S,
    AgentChange,
    CallRewriter,
    assumed_block,
    find_tool_calls,
    message_of,
)
from cachecost.strategies.changes.prefix_rewriting import PrefixRewriter
from cachecost.strategies.model_facts import EvenSampler, Facts


@dataclass(frozen=True, slots=True)
class SubAgents(AgentChange):
    """At `rate` of the runs of at least `least_calls` calls of tools, a sub-agent makes them.

    A run is all between a human message and the reply after the turn's last results, where the conversation neither
    goes back nor assumptions meanwhile. The main thread keeps a call with `task_tokens` of instructions, of the
    tool that starts sub-agents (`tool_tokens`, always there), and its result, a summary of `summary_tokens`. The
    run becomes a conversation of its own: `fork` "fresh" begins with the instructions, under a system prompt of
    `system_tokens` and tools of `own_tools_tokens` (left out: the parent's); "inherits" begins with the parent's
    thread and head, then the call and the instructions. It starts two seconds after the main call, ends with a call
    that writes the summary, and the main thread waits. `model` makes the run instead (without thinking, effort and
    speed); it cannot read what the parent wrote. Side calls of a run stay beside the main thread.

    Sources: jp RFD 051 (500 tokens of summary); llmproc's fork tool (children with the full history). Tokens:
    assumed.
    """

    rate: float = 1.0
    least_calls: int = 3
    fork: Literal["fresh", "inherits"] = "fresh"
    model: str | None = None
    summary_tokens: int = 500
    task_tokens: int = 300
    system_tokens: int | None = 2_000
    own_tools_tokens: int | None = None
    tool_tokens: int = 200

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        main = _DelegationPrefix(self.tool_tokens).rewrite(conversation) if self.tool_tokens else conversation
        walk = _DelegationRewriter(self, main)
        rewritten = walk.rewrite_without_runs()
        return (rewritten, *walk.subs)


class _DelegationPrefix(PrefixRewriter):
    """The main thread's tools, and the one that starts sub-agents."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._tool = given_block("tool", "", f"start a sub-agent: {tokens}", tokens)

    def tools(self, switch: Switch) -> Part:
        return self.reuse_part(switch.tools, None, Part((*switch.tools.blocks, self._tool)))


class _DelegationRewriter(CallRewriter):
    """The main thread; `subs` are the conversations of sub-agents so far."""

    def __init__(self, options: SubAgents, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._conversation = conversation
        self._calling = find_tool_calls(conversation.events)
        self._main = Switch(
            0,
            conversation.model or "",
            conversation.tools,
            conversation.system,
            conversation.params,
            conversation.is_chosen,
        )
        self._is_delegated = EvenSampler(options.rate)
        self._own: dict[str, Part] = {}
        self.subs: list[Conversation] = []

    def rewrite_without_runs(self) -> Conversation:
        events, place, sent = self._conversation.events, 0, list[Event]()
        while place < len(events):
            stop = self._run_from(place)
            if stop > place and self._is_delegated():
                sent += self._delegate(events[place:stop])
                place = stop
            else:
                sent += self.step(events[place])
                place += 1
        return replace(self._conversation, events=tuple(sent))

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Switch):
            self._main = event
        return CallRewriter.rewrite_event(self, event)

    def _run_from(self, place: int) -> int:
        """Where the run ends that begins here, if one does: before the turn's last reply."""
        events = self._conversation.events
        if place == 0 or not isinstance(events[place - 1], Human) or not isinstance(events[place], Reply):
            return place
        stop = place
        while stop < len(events) and not isinstance(events[stop], Human | ThreadRewrite | Switch):
            stop += 1
        results = [n for n in range(place, stop) if isinstance(events[n], Results)]
        end = results[-1] + 1 if results else place
        calls = sum(isinstance(event, Reply) for event in events[place:end])
        last = [n for n in range(end, stop) if isinstance(events[n], Reply)]
        is_over = bool(last) and not self._calling[last[-1]]
        return end if is_over and calls >= self._options.least_calls else place

    def _delegate(self, run: Sequence[Event]) -> Iterator[Event]:
        """What the main thread keeps of a run, which becomes a conversation."""
        first = next(event for event in run if isinstance(event, Reply))
        said = [event for event in run if isinstance(event, Reply | Results) and event.blocks]
        blocks = [block for event in said for block in event.blocks]
        task = assumed_block("tool_use", "assistant", "task", blocks, self._options.task_tokens)
        call = Reply(max(first.at, self._ready), (task,), first.first_token_s)
        sub, end = self._sub(call, run, self._summary("text", "assistant", blocks))
        self.subs.append(sub)
        result = Results(end, (self._summary("tool_result", "user", blocks),))
        asides = [self.rewrite_side_call(event) for event in run if isinstance(event, Aside)]
        kept = list(self._kept_of_run(said, [call, result]))
        yield from sorted([*kept, *asides], key=lambda event: event.at)
        for event in said:
            self._original.take(event)
        self._ready = end

    def _kept_of_run(self, said: Sequence[Reply | Results], kept: Sequence[Reply | Results]) -> Iterator[Event]:
        start = len(self.recorded_messages)
        self.recorded_messages += map(message_of, said)
        for event in kept:
            self._append(message_of(event), (start, len(self.recorded_messages)))
            timed = self._in_time(event, is_unchanged=True)
            self._thread.take(timed)
            yield timed

    def _summary(self, kind: str, role: str, of: Iterable[Block]) -> Block:
        return assumed_block(kind, role, "summary of a run", of, self._options.summary_tokens)

    def _sub(self, call: Reply, run: Sequence[Event], summary: Block) -> tuple[Conversation, float]:
        number = len(self.subs) + 1
        events = [*self._start(call), *_in_turn(run, call)]
        calls = [event for event in events if isinstance(event, Reply)]
        last = max(events[-1].at, calls[-1].at + max(STEP_S, calls[-1].first_token_s or 0.0))
        events.append(Reply(last, (summary,)))
        main, options = self._main, self._options
        is_fresh = options.fork == "fresh"
        return replace(
            self._conversation,
            name=f"{self._conversation.name}, sub-agent {number}",
            events=tuple(events),
            model=options.model or main.model or self._conversation.model,
            tools=self._part("tool", "", options.own_tools_tokens, main.tools) if is_fresh else main.tools,
            system=self._part("text", "system", options.system_tokens, main.system) if is_fresh else main.system,
            params=self._params(),
            is_chosen=options.model is not None or main.is_chosen,
        ), last + STEP_S

    def _start(self, call: Reply) -> Iterator[Event]:
        """What the sub-agent is told before it begins."""
        at, tokens = call.at + STEP_S, self._options.task_tokens
        if self._options.fork == "fresh":
            yield Human(at, (assumed_block("text", "user", "task", call.blocks, tokens),))
            return
        messages = (*self._thread.thread.messages(), message_of(call))
        yield ThreadRewrite(at, 0, messages, "fork")
        yield Results(at, (assumed_block("tool_result", "user", "you are the sub-agent", call.blocks, 20),))

    def _part(self, kind: str, role: str, tokens: int | None, parents: Part) -> Part:
        if tokens is None:
            return parents
        blocks = (given_block(kind, role, f"sub-agent {kind}: {tokens}", tokens),) if tokens else ()
        return self._own.setdefault(kind, Part(blocks))

    def _params(self) -> Mapping[str, Any]:
        """Those of the main thread, without what another model may not know."""
        params = dict(self._main.params)
        if self._options.model is not None:
            params.pop("thinking", None)
            params.pop("speed", None)
            params["output_config"] = {k: v for k, v in (params.get("output_config") or {}).items() if k != "effort"}
        return {key: value for key, value in params.items() if value != {}}


def _in_turn(run: Sequence[Event], call: Reply) -> Iterator[Event]:
    """The run as the sub-agent has it: as it was, but from when it was called."""
    delay = call.at - run[0].at + max(STEP_S, call.first_token_s or 0.0)
    for event in run:
        if isinstance(event, Reply | Results | Inquiry):
            yield replace(event, at=event.at + delay)


CHANGES: dict[str, type[AgentChange]] = {"sub_agents": SubAgents}
"""Every change by the name a scenario gives it."""
