"""What is said otherwise in the main thread: reminders, attachments, answers by tools, repairs, resumed sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, Literal

from cachecost.base.structs import replace
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results, Switch
from cachecost.prompts.blocks import Block, Message, Part, estimate_tokens, given_block
from cachecost.strategies.changes.base import (
    MAX_RETRIES,
    AgentChange,
    CallRewriter,
    EvenSampler,
    Facts,
    FailedAttempts,
    ThreadRewriter,
    assumed_block,
    failed_attempt,
    feedback,
    find_tool_calls,
    message_of,
    placeholder_for,
    starts_turn,
)
from cachecost.strategies.changes.prefix import PrefixRewriter, in_one_text


@dataclass(frozen=True, slots=True)
class Reminder(AgentChange):
    """A text of `tokens` goes with each human message, or with all that comes before a call (`when` "every_call").

    It is the last or the first block of its message. `earlier` "kept": it stays in the history. "removed": only the
    latest message has one; it is taken out of the earlier one, and all behind that is new (Kilo-Org/kilocode#7778).
    Beside tool results it makes a message human to the API: models that drop thinking of earlier turns do so there.
    Source: hook content of amplifier-module-provider-claude (2026-01-21). Tokens: assumed.
    """

    tokens: int = 200
    when: Literal["human", "every_call"] = "human"
    earlier: Literal["kept", "removed"] = "kept"
    position: Literal["first", "last"] = "last"
    least: ClassVar[int] = 1


class _ReminderRewriter(CallRewriter, change=Reminder):
    """`_last` is the message that has the reminder, where only one has."""

    _options: Reminder
    _last: int | None = None

    def rewrite_event(self, event: Event) -> Iterator[Event]:
        if self._options.earlier == "removed" and isinstance(event, Reply):
            latest = self.turns[-1] if self.turns else None
            if self._options.when == "every_call":
                numbers = range(len(self.sent_messages) - 1, -1, -1)
                latest = next((number for number in numbers if self.sent_messages[number].role == "user"), None)
            if latest is not None and latest != self._last:
                other = {latest: self._with_reminder(self.sent_messages[latest])}
                if self._last is not None:
                    other[self._last] = self.recorded_messages[self.spans[self._last][0]]
                self._last = latest
                yield self.replace_messages(event.at, other)
        yield from CallRewriter.rewrite_event(self, event)

    def rewrite_message(self, message: Message) -> Message:
        is_kept = self._options.earlier == "kept" and (
            message.role == "user" if self._options.when == "every_call" else starts_turn(message)
        )
        return self._with_reminder(message) if is_kept else message

    def forget(self, keep: int) -> None:
        if self._last is not None and self._last >= keep:
            self._last = None

    def _with_reminder(self, message: Message) -> Message:
        reminder = given_block("text", "user", f"reminder {self._options.tokens}", self._options.tokens)
        is_first = self._options.position == "first"
        return Message.of("user", (reminder, *message.blocks) if is_first else (*message.blocks, reminder))


@dataclass(frozen=True, slots=True)
class Attachments(AgentChange):
    """With the human message `turn` (1 is the first), `count` files of `tokens` each are attached.

    `where` "first_message": they stand before the first human message, whenever they were attached, and are read again
    each turn; one that changed makes all after it new (jp before RFD 065). "insertion": they stand before the message
    they came with, as they were then (RFD 065). Then a change is not seen, but with `again` a file that
    changed is attached once more, with the message before which it did. `change_rate` is the share of files that
    change between two turns. Sizes and rates are assumptions.
    """

    where: Literal["first_message", "insertion"] = "first_message"
    turn: int = 1
    count: int = 1
    tokens: int = 5_000
    change_rate: float = 0.2
    again: bool = False


class _AttachmentRewriter(ThreadRewriter, change=Attachments):
    """`_versions` are those of the files, `_waiting` the blocks for the next human message.

    `_held` says, in order, which messages hold which files: where the conversation goes back before one of them, the
    next human message has its files, as they are then.
    """

    _options: Attachments

    def begin(self, conversation: Conversation) -> None:
        self._changes = EvenSampler(self._options.change_rate)
        self._versions: list[int] = []
        self._waiting: list[int] = []
        self._held: list[tuple[int, list[int]]] = []
        self._turn = 0

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            changed = [number for number in range(len(self._versions)) if self._changes()]
            for number in changed:
                self._versions[number] += 1
            is_new = self._turn == self._options.turn
            if is_new:
                self._versions = [0] * self._options.count
                changed = list(range(self._options.count))
            if self._options.where == "first_message" and self.turns and changed:
                first, files = self.turns[0], list(range(self._options.count))
                self._held = [(first, files)]
                recorded = self.recorded_messages[self.spans[first][0]]
                yield self.replace_messages(event.at, {first: self._with_files(recorded, files)})
            elif is_new or (self._options.again and self._options.where == "insertion"):
                self._waiting = sorted({*self._waiting, *changed})
        yield self.send(event)

    def rewrite_message(self, message: Message) -> Message:
        if not self._waiting or not starts_turn(message):
            return message
        files, self._waiting = self._waiting, []
        self._held.append((len(self.sent_messages), files))
        return self._with_files(message, files)

    def forget(self, keep: int) -> None:
        while self._held and self._held[-1][0] >= keep:
            self._waiting = sorted({*self._waiting, *self._held.pop()[1]})

    def _with_files(self, message: Message, files: list[int]) -> Message:
        tokens, versions = self._options.tokens, self._versions
        names = (f"file {number}, version {versions[number]}: {tokens}" for number in files)
        blocks = (given_block("text", "user", name, tokens) for name in names)
        return Message.of(message.role, (*blocks, *message.blocks))


@dataclass(frozen=True, slots=True)
class SessionResume(AgentChange):
    """The client sends only what is new and the server adds the session: each call is billed whole, as without.

    At `loss_rate` of the human messages after the first the session is gone: a new one begins, in which one message
    holds the whole history as text, thinking left out, and then what is new. At `duplicated_resend_rate` the client
    has lost count: the same text stands before the human message, and the session has it twice from then on.

    Source: amplifier-module-provider-claude (2026-01; resent messages tripled a context: commit 04a183d). Rates are
    assumed.
    """

    loss_rate: float = 0.0
    duplicated_resend_rate: float = 0.0


class _ResumeRewriter(CallRewriter, change=SessionResume):
    _options: SessionResume

    def begin(self, conversation: Conversation) -> None:
        self._is_lost = EvenSampler(self._options.loss_rate)
        self._is_resent = EvenSampler(self._options.duplicated_resend_rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, Human) or not event.blocks:
            return CallRewriter.rewrite_event(self, event)
        history = [block for message in self.recorded_messages for block in message.blocks if not block.is_thinking]
        is_lost = bool(history) and self._is_lost()
        if not history or not (is_lost or self._is_resent()):
            return CallRewriter.rewrite_event(self, event)
        sent = replace(event, blocks=(in_one_text("user", history), *event.blocks))
        if not is_lost:
            return self.replace_event(event, (sent,))
        begun_anew = self.resend(event.at, 0, (), (), "edit")
        self.recorded_messages.append(message_of(event))
        self._append(message_of(sent), (0, len(self.recorded_messages)))
        return begun_anew, sent


@dataclass(frozen=True, slots=True)
class Repairs(AgentChange):
    """What a client repairs in a tool loop. Each mishap stays in the thread and costs one call.

    At `invalid_tool_rate` a reply that calls tools names ones that there are not, at `parse_error_rate` its calls
    cannot be read and are text: it is answered by `error_tokens`, and the model calls again. At `orphan_rate` a result
    is lost: a placeholder of `error_tokens` stands for it and, with `calls_again`, the model repeats the call
    (`call_tokens`).

    Source: amplifier-module-provider-claude, docs/ARCHITECTURE.md (2026-01-21). Rates and tokens: assumed.
    """

    invalid_tool_rate: float = 0.0
    parse_error_rate: float = 0.0
    orphan_rate: float = 0.0
    calls_again: bool = True
    error_tokens: int = 60
    call_tokens: int = 100


class _RepairRewriter(CallRewriter, change=Repairs):
    _options: Repairs

    def begin(self, conversation: Conversation) -> None:
        self._calling = iter(find_tool_calls(conversation.events))
        options = self._options
        rates = (options.invalid_tool_rate, options.parse_error_rate, options.orphan_rate)
        self._is_invalid, self._is_unreadable, self._is_lost = map(EvenSampler, rates)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        is_call = next(self._calling)
        if isinstance(event, Reply) and is_call:
            failures: list[Reply | Results] = []
            if self._is_invalid():
                failures += self._fail(event, "no such tool")
            if self._is_unreadable():
                blocks = (in_one_text(one.role, (one,)) if one.kind == "tool_use" else one for one in event.blocks)
                failures += self._fail(replace(event, blocks=tuple(blocks)), "not readable")
            if failures:
                return self.replace_event(event, (*failures, event))
        if isinstance(event, Results):
            results = [n for n, block in enumerate(event.blocks) if block.kind == "tool_result"]
            if lost := [n for n in results or range(len(event.blocks)) if self._is_lost()]:
                return self.replace_event(event, self._repair(event, lost))
        return CallRewriter.rewrite_event(self, event)

    def _fail(self, reply: Reply, why: str) -> tuple[Reply, Results]:
        attempt = failed_attempt(reply, why)
        return attempt, feedback(attempt, "repair", self._options.error_tokens)

    def _repair(self, event: Results, lost: list[int]) -> list[Reply | Results]:
        sent = list(event.blocks)
        for n in lost:
            sent[n] = placeholder_for(sent[n], "lost", self._options.error_tokens)
        repaired = replace(event, blocks=tuple(sent))
        if not self._options.calls_again:
            return [repaired]
        missing = tuple(event.blocks[n] for n in lost)
        kinds = ("tool_use" if result.kind == "tool_result" else "text" for result in missing)
        pairs = zip(kinds, missing, strict=True)
        calls = [assumed_block(kind, "assistant", "again", (one,), self._options.call_tokens) for kind, one in pairs]
        return [repaired, Reply(event.at, tuple(calls)), replace(event, blocks=missing)]


@dataclass(frozen=True, slots=True)
class Unprompted(AgentChange):
    """At `rate` of the replies the model first calls the tool that answers questions, though nobody asked: one call.

    The call is of `call_tokens`, the error that answers it of `error_tokens`. The tool itself comes with `inquiry`.
    Source: jp RFD 033 (its executor returns an error). Rate and tokens: assumed.
    """

    rate: float = 0.02
    call_tokens: int = 40
    error_tokens: int = 30


class _UnpromptedRewriter(CallRewriter, change=Unprompted):
    _options: Unprompted

    def begin(self, conversation: Conversation) -> None:
        self._happens = EvenSampler(self._options.rate)

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, Reply) or not event.blocks or not self._happens():
            return CallRewriter.rewrite_event(self, event)
        call = assumed_block("tool_use", "assistant", "unprompted", event.blocks, self._options.call_tokens)
        attempt = replace(event, blocks=(call,), output_tokens=None)
        error = feedback(attempt, "nobody asked", self._options.error_tokens)
        return self.replace_event(event, (attempt, error, event))


@dataclass(frozen=True, slots=True)
class _QuestionStep:
    """A question as the result of a call (its number among those of the reply), and the call that answers it."""

    at: float
    call: int
    question: Block
    again: Block


@dataclass(frozen=True, slots=True)
class ToolAnswers(AgentChange):
    """A question is the result of the tool that asks it, and the model calls that tool again (one call each time).

    The call repeats the arguments: `argument_tokens`, else as many as the first call has, and the answer. All of them
    are output, and stay in the thread. Questions of calls made in parallel are answered in one reply. At `retry_rate`
    an answer is not valid, and asked for again in `error_tokens`. Nothing is asked beside the main thread any more.
    A question that is not followed by its tool's results stays as it was.

    Source: jp RFD 028, what there was before it (5,000 tokens of arguments). Recordings without content do not tell
    which call asked: then it is the first.
    """

    argument_tokens: int | None = 5_000
    retry_rate: float = 0.0
    error_tokens: int = 40

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        walk = _ToolAnswerRewriter(self)
        rewritten = walk.rewrite(conversation)
        yield replace(rewritten, events=(*rewritten.events, *walk.waiting))


class _ToolAnswerRewriter(CallRewriter):
    """`waiting` are the questions of the last reply, which `_calls` are the tool calls of."""

    _options: ToolAnswers

    def begin(self, conversation: Conversation) -> None:
        self._is_wrong = FailedAttempts(self._options.retry_rate, MAX_RETRIES)
        self._calls: list[Block] = []
        self.waiting: list[Inquiry] = []

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Inquiry):
            self.waiting.append(event)
            return ()
        asked, self.waiting = self.waiting, []
        if isinstance(event, Results) and event.blocks and asked:
            return self.replace_event(event, list(self._answer_events(event, asked)))
        if isinstance(event, Reply):
            self._calls = [block for block in event.blocks if block.kind == "tool_use"]
        return (*asked, *CallRewriter.rewrite_event(self, event))

    def _answer_events(self, event: Results, asked: Sequence[Inquiry]) -> Iterator[Reply | Results]:
        """Question after question, then the results of the calls that are left."""
        found = [block for block in event.blocks if block.kind == "tool_result"]
        rest = tuple(block for block in event.blocks if block.kind != "tool_result")
        waiting: Iterable[int] = range(len(found))
        ids = [(block.content or {}).get("id") for block in self._calls]
        calls: dict[int, list[_QuestionStep]] = {}
        for inquiry in asked:
            call = ids.index(inquiry.tool_use) if inquiry.tool_use in ids else 0  # which of the reply's calls asks
            calls.setdefault(call, []).extend(self._steps(inquiry, call))
        for steps in zip_longest(*[calls[call] for call in sorted(calls)]):
            questions = {step.call: step for step in steps if step}
            results = (questions[n].question if n in questions else found[n] for n in sorted({*waiting, *questions}))
            at = max(step.at for step in questions.values())
            yield Results(at, tuple(results))
            yield Reply(at, tuple(step.again for step in questions.values()))
            waiting = questions
        yield replace(event, blocks=(*(found[n] for n in sorted(waiting) if n < len(found)), *rest))

    def _steps(self, inquiry: Inquiry, call: int) -> Iterator[_QuestionStep]:
        asking, arguments = self._calls[call : call + 1], self._options.argument_tokens
        if arguments is None:
            arguments = sum(map(estimate_tokens, asking))
        length, tokens = arguments + estimate_tokens(inquiry.answer), estimate_tokens(inquiry.question)
        source = (inquiry.question, *asking)
        for attempt in range(1 + MAX_RETRIES):
            question = assumed_block("tool_result", "user", f"asks {attempt}", source, tokens)
            answer = assumed_block("tool_use", "assistant", f"answers {attempt}", (*source, inquiry.answer), length)
            yield _QuestionStep(inquiry.at, call, question, answer)
            if not self._is_wrong(attempt):
                return
            tokens = self._options.error_tokens


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
        yield _AnswerToolPrefix(self).rewrite(_FinalAnswerRewriter(self).rewrite(conversation))


class _AnswerToolPrefix(PrefixRewriter):
    """The tools that end a turn, and the format that a livelock demands besides."""

    _options: FinalAnswer
    _turn = 0

    def turns(self, event: Event) -> bool:
        if not isinstance(event, Human):
            return False
        self._turn += 1
        is_other = self._turn > 1 and self._options.schemas > 1
        return is_other and self._options.way == "single_pass"

    def tools(self, switch: Switch) -> Part:
        options, schema = self._options, 0
        names = [FINAL, STRUCTURED] if options.way == "two_step" else [FINAL]
        tools = [given_block("tool", "", name, options.tool_tokens) for name in names]
        if options.way == "single_pass":
            schema = max(self._turn - 1, 0) % options.schemas
            tokens = options.tool_tokens + options.schema_tokens
            tools = [given_block("tool", "", f"{STRUCTURED} {schema}: {tokens}", tokens)]
        return self.reuse_part(switch.tools, schema, Part((*switch.tools.blocks, *tools)))

    def params(self, switch: Switch) -> Mapping[str, Any]:
        if self._options.way != "livelock":
            return switch.params
        demanded = {"type": "json_schema", "schema": {"type": "object", "description": "The answer of every run."}}
        return {**switch.params, "output_config": {**(switch.params.get("output_config") or {}), "format": demanded}}


class _FinalAnswerRewriter(CallRewriter):
    """The replies that end a turn, told otherwise. `_calls` are those of the turn."""

    _options: FinalAnswer

    def begin(self, conversation: Conversation) -> None:
        options = self._options
        calls = find_tool_calls(conversation.events)
        ends = [place for place, event in enumerate(conversation.events) if isinstance(event, Reply) and event.blocks]
        found = [place for place in ends if not calls[place]]
        self._ends = set(found[-1:] if options.of == "session" else found)
        self._place, self._calls = -1, 0
        self._is_confused, self._misfits = map(EvenSampler, (options.confusion_rate, options.schema_error_rate))
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
        options = self._options
        if options.way == "livelock":
            yield reply
            length = sum(estimate_tokens(block) for block in reply.blocks if not block.is_thinking)
            while self._calls < options.max_iterations:
                error = assumed_block("text", "user", f"error {self._calls}", reply.blocks, options.error_tokens)
                again = assumed_block("text", "assistant", f"again {self._calls}", reply.blocks, length)
                yield Results(reply.at, (error,))
                yield replace(reply, blocks=(again,), output_tokens=None)
                self._calls += 1
        elif options.way == "two_step":
            first = _as_call(reply, FINAL, None, thinks=True)
            reminder = assumed_block("text", "user", "reminder", first.blocks, options.reminder_tokens)
            yield first
            yield Results(reply.at, (self._result(first.blocks[-1]), reminder))
            self._calls += 1
            yield from self._attempts(reply, _as_call(reply, STRUCTURED, options.structured_tokens, thinks=False))
        else:
            yield from self._attempts(reply, _as_call(reply, STRUCTURED, options.structured_tokens, thinks=True))

    def _attempts(self, reply: Reply, right: Reply) -> Iterator[Reply | Results]:
        """Calls that fail, each with its error, and `right`, unless the turn has too many calls by then."""
        options = self._options
        while True:
            is_wrong_tool = options.way == "two_step" and self._is_confused()
            if not is_wrong_tool and not self._misfits():
                break
            wrong = "wrong tool" if is_wrong_tool else "misfit"
            attempt = failed_attempt(right, f"{wrong}, call {self._calls}")
            yield attempt
            if self._calls >= options.max_iterations:
                self._note(attempt)
                return
            yield feedback(attempt, "error", options.error_tokens)
            self._calls += 1
            right = _as_call(reply, STRUCTURED, options.structured_tokens, thinks=False)
        self._note(right)
        yield right

    def _note(self, reply: Reply) -> None:
        self._open[Message.of("assistant", reply.blocks).digest] = reply.blocks[-1]

    def _result(self, call: Block) -> Block:
        return assumed_block("tool_result", "user", "noted", (call,), self._options.result_tokens)


def _as_call(reply: Reply, tool: str, tokens: int | None, thinks: bool) -> Reply:
    """`reply` as the call of a tool with `tokens` of arguments, else as many as its text has. One that is not recorded
    does not think."""
    length = sum(estimate_tokens(block) for block in reply.blocks if not block.is_thinking)
    call = assumed_block("tool_use", "assistant", tool, reply.blocks, length if tokens is None else tokens)
    thoughts = [block for block in reply.blocks if block.is_thinking and thinks]
    output_tokens = reply.output_tokens if thinks and tokens is None else None
    return replace(reply, blocks=(*thoughts, call), output_tokens=output_tokens)
