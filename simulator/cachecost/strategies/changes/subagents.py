"""Conversations beside the main thread: runs of tools that sub-agents make, and children that are forked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cachecost.base.structs import replace
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
from cachecost.prompts.blocks import Block, Part, Thread, given_block
from cachecost.strategies.changes.base import (
    STEP_S,
    AgentChange,
    CallRewriter,
    EvenSampler,
    Facts,
    GrowingThread,
    assumed_block,
    find_tool_calls,
    head_of,
    message_of,
    params_for_model,
    with_head,
)
from cachecost.strategies.changes.prefix import PrefixRewriter


@dataclass(frozen=True, slots=True)
class SubAgents(AgentChange):
    """At `rate` of the runs of at least `least_calls` calls of tools, a sub-agent makes them.

    A run is all between a human message and the reply after the turn's last results, where the conversation neither
    goes back nor switches meanwhile. The main thread keeps a call with `task_tokens` of instructions, of the
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
        walk = _DelegationRewriter(self)
        main = walk.rewrite(_DelegationPrefix(self).rewrite(conversation) if self.tool_tokens else conversation)
        return (main, *walk.subs)


class _DelegationPrefix(PrefixRewriter):
    _options: SubAgents

    def tools(self, switch: Switch) -> Part:
        tokens = self._options.tool_tokens
        tool = given_block("tool", "", f"start a sub-agent: {tokens}", tokens)
        return self.reuse_part(switch.tools, None, Part((*switch.tools.blocks, tool)))


class _DelegationRewriter(CallRewriter):
    """The main thread; `subs` are the conversations of sub-agents so far."""

    _options: SubAgents

    def begin(self, conversation: Conversation) -> None:
        self._conversation, self._main = conversation, head_of(conversation)
        self._calling = find_tool_calls(conversation.events)
        self._is_delegated = EvenSampler(self._options.rate)
        self._own: dict[str, Part] = {}
        self.subs: list[Conversation] = []

    def walk(self, events: Sequence[Event]) -> Iterator[Event]:
        place = 0
        while place < len(events):
            stop = self._run_end(place)
            if stop > place and self._is_delegated():
                yield from self._delegate(events[place:stop])
                place = stop
            else:
                yield from self.step(events[place])
                place += 1

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Switch):
            self._main = event
        return CallRewriter.rewrite_event(self, event)

    def _run_end(self, place: int) -> int:
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
        recorded = [event for event in run if isinstance(event, Reply | Results) and event.blocks]
        blocks = [block for event in recorded for block in event.blocks]
        task = assumed_block("tool_use", "assistant", "task", blocks, self._options.task_tokens)
        call = Reply(max(first.at, self._ready), (task,), first.first_token_s)
        tokens = self._options.summary_tokens
        sub = self._sub_agent(call, run, assumed_block("text", "assistant", "summary of a run", blocks, tokens))
        self.subs.append(sub)
        end = sub.events[-1].at + STEP_S
        result = Results(end, (assumed_block("tool_result", "user", "summary of a run", blocks, tokens),))
        asides = [self.rewrite_side_call(event) for event in run if isinstance(event, Aside)]
        start, kept = len(self.recorded_messages), list[Event]()
        self.recorded_messages += map(message_of, recorded)
        for event in (call, result):
            self._append(message_of(event), (start, len(self.recorded_messages)))
            kept.append(self.put_in_time(event, is_unchanged=True))
            self._thread.add(kept[-1])
        yield from sorted([*kept, *asides], key=lambda event: event.at)
        for event in recorded:
            self._original.add(event)
        self._ready = end

    def _sub_agent(self, call: Reply, run: Sequence[Event], summary: Block) -> Conversation:
        """The run as the sub-agent has it: as it was, but from when it was called, and with a summary at its end."""
        options, main, at, wait = self._options, self._main, call.at + STEP_S, max(STEP_S, call.first_token_s or 0.0)
        is_fresh, events = options.fork == "fresh", list[Event]()
        if is_fresh:
            task = assumed_block("text", "user", "task", call.blocks, options.task_tokens)
            events.append(Human(at, (task,)))
        else:
            opening = assumed_block("tool_result", "user", "you are the sub-agent", call.blocks, 20)
            messages = (*self._thread.thread.messages(), message_of(call))
            events += [ThreadRewrite(at, 0, messages, "fork"), Results(at, (opening,))]
        delay = call.at - run[0].at + wait
        own = (event for event in run if isinstance(event, Reply | Results | Inquiry))
        events += [replace(event, at=event.at + delay) for event in own]
        last = [event for event in events if isinstance(event, Reply)][-1]
        end = max(events[-1].at, last.at + max(STEP_S, last.first_token_s or 0.0))
        return replace(
            self._conversation,
            name=f"{self._conversation.name}, sub-agent {len(self.subs) + 1}",
            events=(*events, Reply(end, (summary,))),
            model=options.model or main.model or self._conversation.model,
            tools=self._part("tool", "", options.own_tools_tokens, main.tools) if is_fresh else main.tools,
            system=self._part("text", "system", options.system_tokens, main.system) if is_fresh else main.system,
            params=params_for_model(main.params, options.model),
            is_chosen=options.model is not None or main.is_chosen,
        )

    def _part(self, kind: str, role: str, tokens: int | None, parents: Part) -> Part:
        if tokens is None:
            return parents
        blocks = (given_block(kind, role, f"sub-agent {kind}: {tokens}", tokens),) if tokens else ()
        return self._own.setdefault(kind, Part(blocks))


PENDING_TOKENS, TOOL_USE_TOKENS, IDENTITY_TOKENS = 20, 80, 10
"""Of a result that only says that its tool goes on, a call, and the name of a child: assumed, as all sizes here are."""


@dataclass(frozen=True, slots=True)
class FanOut(AgentChange):
    """After the first answer of the human turn `turn`, and every `every` turns again, `children` start at once.

    They start `after_s` seconds after that call, get a task of `task_tokens` each, and make `calls` calls, `step_s`
    apart, each but the last with a tool result of `result_tokens`; the last answers with `answer_tokens`. `prefix`:
    `shared`, they go on from the main thread, under its head (llmproc's fork); `lost`, the same messages, behind a few
    tokens at the front of the system prompt that name the child, so that nothing is shared, not with each other either
    (openai/codex#24704, deepagents#2907); `own`, only their task, under a system prompt of `system_tokens` that all
    children have, behind the main thread's tools. The main thread stays as it is: what comes back to it is not told.
    """

    turn: int = 1
    every: int = 0
    children: int = 3
    calls: int = 2
    prefix: Literal["shared", "lost", "own"] = "shared"
    task_tokens: int = 150
    result_tokens: int = 900
    answer_tokens: int = 500
    system_tokens: int = 1500
    after_s: float = 2.0
    step_s: float = 6.0

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield conversation
        now, so_far = conversation, GrowingThread(conversation.root)
        turn, is_due = 0, False
        for event in conversation.events:
            so_far.add(event)
            if isinstance(event, Switch):
                now = with_head(now, event)
            elif isinstance(event, Human):
                turn += 1
                since = turn - self.turn
                is_due = since == 0 or (since > 0 and self.every > 0 and since % self.every == 0)
            elif isinstance(event, Reply) and is_due:
                is_due = False
                yield from self._children(now, so_far.thread, event, f"{conversation.name}/{turn}")

    def _children(self, conversation: Conversation, thread: Thread, reply: Reply, place: str) -> Iterator[Conversation]:
        at = reply.at + self.after_s
        own = Part((given_block("text", "system", f"child: {self.system_tokens}", self.system_tokens),))
        history: tuple[Event, ...] = (ThreadRewrite(at, 0, tuple(thread.messages()), "fork"),)
        pending = tuple(
            given_block("tool_result", "user", f"{place}/{n} pending", PENDING_TOKENS)
            for n, block in enumerate(reply.blocks)
            if block.kind == "tool_use"
        )
        for number in range(1, self.children + 1):
            name = f"{place}/{number}"
            task = given_block("text", "user", f"{name} task: {self.task_tokens}", self.task_tokens)
            calls = tuple(self._child_events(name, at))
            child = replace(conversation, name=f"{conversation.name}, fork {name[len(conversation.name) + 1 :]}")
            if self.prefix == "own":
                yield replace(child, system=own, events=(Human(at, (task,)), *calls), root=Thread())
                continue
            if self.prefix == "lost":
                identity = given_block("text", "system", f"{name} identity", IDENTITY_TOKENS)
                child = replace(child, system=Part((identity, *child.system.blocks)), root=Thread())
            yield replace(child, events=(*history, Human(at, (*pending, task)), *calls))

    def _child_events(self, name: str, at: float) -> Iterator[Event]:
        for number in range(1, self.calls):
            place = f"{name}/{number}"
            yield Reply(at, (given_block("tool_use", "assistant", place, TOOL_USE_TOKENS),))
            at = round(at + self.step_s, 6)
            result = given_block("tool_result", "user", f"{place}: {self.result_tokens}", self.result_tokens)
            yield Results(at, (result,))
        if self.calls:
            answer = given_block("text", "assistant", f"{name}: {self.answer_tokens}", self.answer_tokens)
            yield Reply(at, (answer,))
