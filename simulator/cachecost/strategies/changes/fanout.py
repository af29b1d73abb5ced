"""Forks: children that run beside the main thread, all at once, with its prefix or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Block, Part, Thread, given_block
from cachecost.strategies.changes.base import AgentChange, GrowingThread
from cachecost.strategies.model_facts import Facts

PENDING_TOKENS = 20
"""A result that only says that its tool goes on: assumed, as all sizes here are."""
TOOL_USE_TOKENS = 80
IDENTITY_TOKENS = 10


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
    least: ClassVar[int] = 0

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield conversation
        now, so_far = conversation, GrowingThread(conversation.root)
        turn, is_due = 0, False
        for event in conversation.events:
            so_far.take(event)
            if isinstance(event, Switch):
                now = replace(
                    now,
                    model=event.model,
                    tools=event.tools,
                    system=event.system,
                    params=event.params,
                    is_chosen=event.is_chosen,
                )
            elif isinstance(event, Human):
                turn += 1
                is_due = self._is_due(turn)
            elif isinstance(event, Reply) and is_due:
                is_due = False
                yield from self._children(now, so_far.thread, event, f"{conversation.name}/{turn}")

    def _is_due(self, turn: int) -> bool:
        since = turn - self.turn
        return since == 0 or (since > 0 and self.every > 0 and since % self.every == 0)

    def _children(self, conversation: Conversation, thread: Thread, reply: Reply, place: str) -> Iterator[Conversation]:
        at = reply.at + self.after_s
        own = Part((given_block("text", "system", f"child: {self.system_tokens}", self.system_tokens),))
        history: tuple[Event, ...] = (ThreadRewrite(at, 0, tuple(thread.messages()), "fork"),)
        pending = tuple(_pending(f"{place}/{n}") for n, block in enumerate(reply.blocks) if block.kind == "tool_use")
        for number in range(1, self.children + 1):
            name = f"{place}/{number}"
            task = given_block("text", "user", f"{name} task: {self.task_tokens}", self.task_tokens)
            said = tuple(self._child_events(name, at))
            child = replace(conversation, name=f"{conversation.name}, fork {name[len(conversation.name) + 1 :]}")
            if self.prefix == "own":
                yield replace(child, system=own, events=(Human(at, (task,)), *said), root=Thread())
            else:
                events = (*history, Human(at, (*pending, task)), *said)
                yield replace(self._under(child, name), events=events)

    def _under(self, child: Conversation, name: str) -> Conversation:
        """Under the main thread's head, or one that no other has."""
        if self.prefix == "shared":
            return child
        identity = given_block("text", "system", f"{name} identity", IDENTITY_TOKENS)
        return replace(child, system=Part((identity, *child.system.blocks)), root=Thread())

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


def _pending(place: str) -> Block:
    return given_block("tool_result", "user", f"{place} pending", PENDING_TOKENS)


CHANGES: dict[str, type[AgentChange]] = {"fan_out": FanOut}
