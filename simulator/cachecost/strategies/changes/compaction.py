"""Compaction between turns: older turns stripped, summed up or dropped when the context fills, or every so often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Switch
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, digest_of, estimate_tokens, given_block
from cachecost.prompts.request import Request
from cachecost.strategies.changes.base import AgentChange, GrowingThread, ThreadRewriter, model_window, placeholder_for
from cachecost.strategies.model_facts import Facts

Kind = Literal["summary", "strip", "strip_reasoning", "strip_tools", "range", "keep_first", "keep_last"]
TITLE_TOKENS = 10
"""The line that stands before a summary, as the question it answers (RFD 064)."""
STRIPPED_TOKENS = 12
"""What stands for stripped arguments or a stripped result: "[compacted] name: success" (RFD 064); an assumption."""


@dataclass(frozen=True, slots=True)
class Compaction(AgentChange):
    """Between turns, turns but the first `keep_first` and the last `keep_last` are made shorter.

    `kind` says how. "strip_reasoning" leaves thinking out, "strip_tools" puts placeholders for `clears` of tool calls,
    "strip" does both; "summary" puts a summary of `summary_tokens` in their place; "range" leaves them out,
    "keep_first" leaves all but the first out, "keep_last" all but the last. Turns are compacted once; not `rolling`,
    an earlier summary is among those that are summed up again.

    It happens at most once between two turns: after more than `min_turns` turns, where head and thread are estimated
    at more than `at` of the window (`window_tokens`, else the model's; unknown, it never happens); or after every
    `every_turns` turns of any size. Nothing is compacted after the last turn.

    A summary is a call of its own: the thread so far and an instruction, sent with the head of the main thread, by
    `model` if one is given (then without thinking, effort and speed). With `system_tokens` it has a system prompt of
    its own and no tools, so it shares no prefix. It starts `wait_s` seconds after the first token of the turn's last
    call, or with the next message if that is earlier ("turn_end"), or with that message, whose call waits `wait_s`
    for it ("turn_start"). `summary_at` "front" puts the summary before the kept first turns, which are then written
    again each time (anthropics/claude-code#94197).

    Sources: jp RFD 036, 064 and D50 (2026-06-15: 0.75, 5, 1, 3; its default is "strip"). Tokens and seconds: assumed.
    """

    kind: Kind = "summary"
    keep_first: int = 1
    keep_last: int = 3
    rolling: bool = True
    at: float = 0.75
    window_tokens: int | None = None
    min_turns: int = 5
    every_turns: int = 0
    clears: Literal["responses", "requests", "both"] = "both"
    summary_tokens: int = 2_000
    instruction_tokens: int = 500
    summary_at: Literal["in_place", "front"] = "in_place"
    model: str | None = None
    system_tokens: int | None = None
    when: Literal["turn_end", "turn_start"] = "turn_end"
    wait_s: float = 10.0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if not 0 <= self.at <= 1:
            raise ValueError(f"at={self.at}: expected a share from 0 to 1")
        if self.wait_s < 0:
            raise ValueError(f"wait_s={self.wait_s}: expected at least 0")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _CompactionRewriter(self, conversation, facts).rewrite(conversation)


class _CompactionRewriter(ThreadRewriter):
    """The walk over a conversation.

    The first `_upto` messages sent are compacted or kept, the first `_front` are summaries at the front. `_past` turns
    were, `_since` of them after the last compaction. `_now` is when the last event was, `_quiet` when the first token
    of the last call was there, `_ready` when a summary is.
    """

    def __init__(self, options: Compaction, conversation: Conversation, facts: Facts | None) -> None:
        super().__init__()
        self._options = options
        self._facts = facts
        self._thread = GrowingThread(conversation.root)
        self._main = Switch(0, conversation.model or "", conversation.tools, conversation.system, conversation.params)
        tokens = options.system_tokens
        own = () if tokens is None else (given_block("text", "system", "summary system prompt", tokens),)
        self._own_system = Part(own)
        self._upto = self._front = self._past = self._since = 0
        self._now = self._quiet = self._ready = float("-inf")

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            for new in self._between(event.at):
                self._thread.take(new)
                yield new
            self._past += 1
            self._since += 1
        timed = self._in_time(self.take(event))
        self._thread.take(timed)
        yield timed

    def _in_time(self, event: Event) -> Event:
        """Note when it is, and let the call that follows a summary wait for it."""
        self._now = max(self._now, event.at)
        if isinstance(event, Switch):
            self._main = event
        elif isinstance(event, Reply):
            event = replace(event, at=max(event.at, self._ready))
            self._quiet = event.at + (event.first_token_s or 0.0)
        return event

    def forget(self, keep: int) -> None:
        self._upto = min(self._upto, keep)
        self._front = self._front if keep >= self._front else 0

    def _between(self, at: float) -> Iterator[Event]:
        """What is said between two turns; the second begins at `at`."""
        start, stop = self._band() if self._is_due() else (0, 0)
        if start >= stop:
            return
        if self._options.kind == "summary":
            call = self._summary_call(at, self._summary(start, stop)[-1].blocks)
            self._now = at = call.at
            yield call
        self._since = 0
        yield self._shorten(at, start, stop)

    def _is_due(self) -> bool:
        options = self._options
        if options.every_turns:
            return self._since >= options.every_turns
        window = options.window_tokens or model_window(self._main.model, self._facts)
        if window is None or self._past <= options.min_turns:
            return False
        head = sum(estimate_tokens(block) for part in (self._main.tools, self._main.system) for block in part.blocks)
        return head + self.tokens > options.at * window

    def _band(self) -> tuple[int, int]:
        """Which of the messages sent are made shorter: from, to."""
        options = self._options
        first = 0 if options.kind == "keep_last" else options.keep_first + self._front // 2
        last = 0 if options.kind == "keep_first" else options.keep_last
        ends = [*self.turns, len(self.sent_messages)]
        lower_bound = self._upto if options.rolling else 0
        return max(ends[min(first, len(ends) - 1)], lower_bound), ends[max(len(ends) - 1 - last, 0)]

    def _shorten(self, at: float, start: int, stop: int) -> Event:
        error_margin = self._in_place(start, stop)
        if self._options.kind == "summary" and self._options.summary_at == "front":
            before = [*self.sent_messages[: self._front], *error_margin] if self._options.rolling else error_margin
            kept = self.sent_messages[self._front : start]
            self._front, self._upto = len(before), len(before) + len(kept)
            return self.replace_range(at, 0, stop, [*before, *kept])
        self._upto = start + len(error_margin)
        return self.replace_range(at, start, stop, error_margin)

    def _in_place(self, start: int, stop: int) -> list[Message]:
        if self._options.kind == "summary":
            return self._summary(start, stop)
        if self._options.kind.startswith("strip"):
            return [short for message in self.sent_messages[start:stop] if (short := self._strip(message)).blocks]
        return []

    def _summary(self, start: int, stop: int) -> list[Message]:
        """A question and its answer, as jp has it; another for other messages."""
        digest = digest_of("", "summary", b"".join(message.digest for message in self.sent_messages[start:stop])).hex()
        title = given_block("text", "user", "summary of what was said", TITLE_TOKENS)
        summary = given_block("text", "assistant", f"summary {digest}", self._options.summary_tokens)
        return [Message.of("user", (title,)), Message.of("assistant", (summary,))]

    def _strip(self, message: Message) -> Message:
        kept = (
            self._short(block)
            for block in message.blocks
            if not (block.is_thinking and self._options.kind != "strip_tools")
        )
        return Message.of(message.role, tuple(kept))

    def _short(self, block: Block) -> Block:
        cleared = {"tool_result": ("responses", "both"), "tool_use": ("requests", "both")}.get(block.kind, ())
        if self._options.kind == "strip_reasoning" or self._options.clears not in cleared:
            return block
        return (
            placeholder_for(block, "stripped", STRIPPED_TOKENS) if estimate_tokens(block) > STRIPPED_TOKENS else block
        )

    def _summary_call(self, human_at: float, summary: tuple[Block, ...]) -> Aside:
        options, main = self._options, self._main
        at = human_at if options.when == "turn_start" else min(self._quiet + options.wait_s, human_at)
        at = max(at, self._now)
        if options.when == "turn_start":
            self._ready = at + options.wait_s
        instruction = given_block("text", "user", "summary instruction", options.instruction_tokens)
        thread = self._thread.thread.then(Message.of("user", (instruction,)))
        is_own = options.system_tokens is not None
        tools, system = (NOTHING, self._own_system) if is_own else (main.tools, main.system)
        request = Request(options.model or main.model, thread, tools, system, params=self._params(bool(tools.blocks)))
        return Aside(at, request, Reply(at, summary))

    def _params(self, has_tools: bool) -> Mapping[str, Any]:
        """Those of the main thread, without what another model may not know and what needs tools."""
        params = dict(self._main.params)
        if not has_tools:
            params.pop("tool_choice", None)
        if self._options.model is not None:
            params.pop("thinking", None)
            params.pop("speed", None)
            params["output_config"] = {k: v for k, v in (params.get("output_config") or {}).items() if k != "effort"}
        return {key: value for key, value in params.items() if value != {}}


CHANGES: dict[str, type[AgentChange]] = {"compaction": Compaction}
