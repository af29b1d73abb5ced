"""Questions of tools answered in the main thread: the tool is called again, with its arguments and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from cachecost.conversations.model import Conversation, Event, Inquiry, Reply, Results
from cachecost.prompts.blocks import Block, estimate_tokens
from cachecost.strategies.changes.base import AgentChange, CallRewriter, assumed_block
from cachecost.strategies.model_facts import Facts, FailedAttempts

MAX_RETRIES = 2


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
        walk = _ToolAnswerRewriter(self, conversation)
        rewritten = walk.rewrite(conversation)
        yield replace(rewritten, events=(*rewritten.events, *walk.waiting))


class _ToolAnswerRewriter(CallRewriter):
    """`waiting` are the questions of the last reply, which `_calls` are the tool calls of."""

    def __init__(self, options: ToolAnswers, conversation: Conversation) -> None:
        super().__init__(conversation)
        self._options = options
        self._is_wrong = FailedAttempts(options.retry_rate, MAX_RETRIES)
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
        calls: dict[int, list[_QuestionStep]] = {}
        for inquiry in asked:
            call = self._number_of(inquiry)
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
        tokens = estimate_tokens(inquiry.question)
        for attempt in range(1 + MAX_RETRIES):
            source = (inquiry.question, *self._calls[call : call + 1])
            question = assumed_block("tool_result", "user", f"asks {attempt}", source, tokens)
            again = assumed_block(
                "tool_use", "assistant", f"answers {attempt}", (*source, inquiry.answer), self._length(inquiry, call)
            )
            yield _QuestionStep(inquiry.at, call, question, again)
            if not self._is_wrong(attempt):
                return
            tokens = self._options.error_tokens

    def _length(self, inquiry: Inquiry, call: int) -> int:
        arguments = self._options.argument_tokens
        if arguments is None:
            arguments = sum(map(estimate_tokens, self._calls[call : call + 1]))
        return arguments + estimate_tokens(inquiry.answer)

    def _number_of(self, inquiry: Inquiry) -> int:
        """Which of the reply's calls asks."""
        ids = [(block.content or {}).get("id") for block in self._calls]
        return ids.index(inquiry.tool_use) if inquiry.tool_use in ids else 0


CHANGES: dict[str, type[AgentChange]] = {"tool_answers": ToolAnswers}
"""Every change by the name a scenario gives it."""
