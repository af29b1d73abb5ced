"""Structured answers: how the last reply of a turn returns its JSON, and how that fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch
from cachecost.prompts.blocks import Block, Message, Part, estimate_tokens, given_block
from cachecost.strategies.changes.base import (
    AgentChange,
    CallRewriter,
    assumed_block,
    failed_attempt,
    feedback,
    find_tool_calls,
)
from cachecost.strategies.changes.prefix_rewriting import PrefixRewriter
from cachecost.strategies.model_facts import EvenSampler, Facts

FINAL, STRUCTURED = "final_answer", "structured_response"


@dataclass(frozen=True, slots=True)
class FinalAnswer(AgentChange):
    """Each turn ends in structured output (`of` "session": the last one alone). A turn ends with a reply without calls.

    `way` "two_step": the text becomes the argument of `final_answer`, a reminder of `reminder_tokens` answers it, and
    one more call has the JSON in `structured_response`; both tools, of `tool_tokens` each, are always there. At
    `confusion_rate` a second step calls `final_answer` again. "single_pass": the text becomes the argument of
    `structured_response`, whose definition holds one of `schemas` schemas (`schema_tokens` each) in rotation, turn by
    turn: with more than one the tools layer changes. "livelock": `output_config.format` and a `final_answer` that must
    be called: neither satisfies the other, and an error follows each reply until the turn has `max_iterations` calls.

    At `schema_error_rate` a JSON does not fit its schema (two_step: the model is blind to it). Each failure is told in
    `error_tokens` and costs one call; a turn that has `max_iterations` calls by then is given up. The JSON is of
    `structured_tokens`, else as long as the text. `result_tokens` acknowledge a call; the last one's stands before the
    next human message. Calls that are added do not think and start two seconds after the one before.

    Source: tinyagent-rust, structured-response-refactor.md (2025-10-20: ways, cap of 10). Rates and tokens: assumed.
    """

    way: Literal["two_step", "single_pass", "livelock"] = "two_step"
    of: Literal["turn", "session"] = "turn"
    confusion_rate: float = 0.0
    schema_error_rate: float = 0.0
    schemas: int = 1
    tool_tokens: int = 120
    schema_tokens: int = 400
    structured_tokens: int | None = None
    reminder_tokens: int = 150
    error_tokens: int = 80
    result_tokens: int = 20
    max_iterations: int = 10
    least: ClassVar[int] = 1

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        yield _AnswerToolPrefix(self).rewrite(_FinalAnswerRewriter(self, conversation).rewrite(conversation))


class _AnswerToolPrefix(PrefixRewriter):
    """The tools that end a turn, and the format that a livelock demands besides."""

    def __init__(self, options: FinalAnswer) -> None:
        super().__init__()
        self._options = options
        self._turn = 0

    def turns(self, event: Event) -> bool:
        if not isinstance(event, Human):
            return False
        self._turn += 1
        is_other = self._turn > 1 and self._options.schemas > 1
        return is_other and self._options.way == "single_pass"

    def tools(self, switch: Switch) -> Part:
        is_alone = self._options.way == "single_pass"
        schema = max(self._turn - 1, 0) % self._options.schemas if is_alone else 0
        return self.reuse_part(switch.tools, schema, Part((*switch.tools.blocks, *self._ending_tools(schema))))

    def _ending_tools(self, schema: int) -> Iterator[Block]:
        options = self._options
        if options.way != "single_pass":
            yield given_block("tool", "", FINAL, options.tool_tokens)
        if options.way == "two_step":
            yield given_block("tool", "", STRUCTURED, options.tool_tokens)
        if options.way == "single_pass":
            tokens = options.tool_tokens + options.schema_tokens
            yield given_block("tool", "", f"{STRUCTURED} {schema}: {tokens}", tokens)

    def params(self, switch: Switch) -> Mapping[str, Any]:
        if self._options.way != "livelock":
            return switch.params
        demanded = {"type": "json_schema", "schema": {"type": "object", "description": "The answer of every run."}}
        return {**switch.params, "output_config": {**(switch.params.get("output_config") or {}), "format": demanded}}


class _FinalAnswerRewriter(CallRewriter):
    """The replies that end a turn, told otherwise. `_calls` are those of the turn."""

    def __init__(self, options: FinalAnswer, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._ends = _ends(conversation, options.of)
        self._place = -1
        self._calls = 0
        self._is_confused = EvenSampler(options.confusion_rate)
        self._misfits = EvenSampler(options.schema_error_rate)
        self._open: dict[bytes, Block] = {}

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        self._place += 1
        if isinstance(event, Human):
            self._calls = 0
        if not isinstance(event, Reply):
            return CallRewriter.rewrite_event(self, event)
        self._calls += 1
        if self._place not in self._ends:
            return CallRewriter.rewrite_event(self, event)
        return self.replace_event(event, list(self._final_events(event)))

    def rewrite_message(self, message: Message) -> Message:
        """A human message acknowledges the call before it."""
        call = self._open.get(self.sent_messages[-1].digest) if self.sent_messages and message.role == "user" else None
        return message if call is None else Message.of("user", (self._result(call), *message.blocks))

    def _final_events(self, reply: Reply) -> Iterator[Reply | Results]:
        if self._options.way == "livelock":
            yield reply
            said = sum(estimate_tokens(block) for block in reply.blocks if not block.is_thinking)
            while self._calls < self._options.max_iterations:
                error = assumed_block("text", "user", f"error {self._calls}", reply.blocks, self._options.error_tokens)
                again = assumed_block("text", "assistant", f"again {self._calls}", reply.blocks, said)
                yield Results(reply.at, (error,))
                yield replace(reply, blocks=(again,), output_tokens=None)
                self._calls += 1
        elif self._options.way == "two_step":
            first = _first(reply, FINAL, None)
            reminder = assumed_block("text", "user", "reminder", first.blocks, self._options.reminder_tokens)
            yield first
            yield Results(reply.at, (self._result(first.blocks[-1]), reminder))
            self._calls += 1
            yield from self._attempts(reply, _later(reply, STRUCTURED, self._options.structured_tokens))
        else:
            yield from self._attempts(reply, _first(reply, STRUCTURED, self._options.structured_tokens))

    def _attempts(self, reply: Reply, right: Reply) -> Iterator[Reply | Results]:
        """Calls that fail, each with its error, and `right`, unless the turn has too many calls by then."""
        while wrong := self._wrong():
            attempt = failed_attempt(right, f"{wrong}, call {self._calls}")
            yield attempt
            if self._calls >= self._options.max_iterations:
                self._note(attempt)
                return
            yield feedback(attempt, "error", self._options.error_tokens)
            self._calls += 1
            right = _later(reply, STRUCTURED, self._options.structured_tokens)
        self._note(right)
        yield right

    def _wrong(self) -> str:
        """What goes wrong with the next attempt, if anything."""
        if self._options.way == "two_step" and self._is_confused():
            return "wrong tool"
        return "misfit" if self._misfits() else ""

    def _note(self, reply: Reply) -> None:
        self._open[Message.of("assistant", reply.blocks).digest] = reply.blocks[-1]

    def _result(self, call: Block) -> Block:
        return assumed_block("tool_result", "user", "noted", (call,), self._options.result_tokens)


def _ends(conversation: Conversation, of: str) -> set[int]:
    """Where in the conversation's events the replies are that end a turn, or the last of them."""
    calls = find_tool_calls(conversation.events)
    ends = [place for place, event in enumerate(conversation.events) if isinstance(event, Reply) and event.blocks]
    found = [place for place in ends if not calls[place]]
    return set(found[-1:] if of == "session" else found)


def _first(reply: Reply, tool: str, tokens: int | None) -> Reply:
    """`reply` with its thinking, as the call of a tool with `tokens` of arguments, else as many as its text has."""
    thoughts = [block for block in reply.blocks if block.is_thinking]
    call = _call(reply, tool, tokens)
    return replace(reply, blocks=(*thoughts, call), output_tokens=reply.output_tokens if tokens is None else None)


def _later(reply: Reply, tool: str, tokens: int | None) -> Reply:
    """The same without thinking: a call that is not recorded."""
    return replace(reply, blocks=(_call(reply, tool, tokens),), output_tokens=None)


def _call(reply: Reply, tool: str, tokens: int | None) -> Block:
    said = sum(estimate_tokens(block) for block in reply.blocks if not block.is_thinking)
    return assumed_block("tool_use", "assistant", tool, reply.blocks, said if tokens is None else tokens)


CHANGES: dict[str, type[AgentChange]] = {"final_answer": FinalAnswer}
"""Every change by the name a scenario gives it."""
