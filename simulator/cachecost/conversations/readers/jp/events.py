"""Builds a conversation from jp's events: what makes a reply, when its call started, who asked what.

The rules and their sources are in reader.py.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachecost.conversations.input_files import Warn
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import text_block

EFFORTS = {
    "max": "max",
    "xhigh": "high",
    "high": "high",
    "medium": "medium",
    "low": "low",
    "xlow": "low",
    "none": "low",
}
"""jp's effort -> the API's, as jp's Anthropic provider maps it; "auto" sends none."""
OTHER_MODEL = "with another model or other parameters than the first, which are used for all"


@dataclass(slots=True)
class Question:
    """A question of a tool. `answer` is the text of its answer, None until one comes."""

    at: float
    id: str
    text: str
    answer_type: str = "boolean"
    default: object = None
    answer: str | None = None
    tool_use: str = ""
    batch: int = 0

    def inquiry(self) -> Inquiry:
        answer = words(self.default) if self.answer is None else self.answer
        add_question, add_answer = text_block("user", self.text), text_block("assistant", answer)
        return Inquiry(self.at, add_question, add_answer, self.answer_type, self.tool_use, self.batch)


def words(answer: object) -> str:
    """An answer as text: a text unchanged, None as "", anything else as JSON."""
    if answer is None:
        return ""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


@dataclass(slots=True)
class Settings:
    """The merged config deltas: the model (through its alias), the reasoning, beta headers, attachments."""

    aliases: dict[str, Any] = field(default_factory=dict)
    id: Any = None
    reasoning: Any = None
    betas: list[str] = field(default_factory=list)
    attachments: bool = False

    def merge(self, delta: Mapping[str, Any]) -> None:
        aliases = _within(delta, "providers", "llm", "aliases")
        self.aliases |= aliases if isinstance(aliases, dict) else {}
        self.id = _within(delta, "assistant", "model", "id") or self.id
        self.reasoning = _within(delta, "assistant", "model", "parameters", "reasoning") or self.reasoning
        betas = _within(delta, "providers", "llm", "anthropic", "beta_headers")
        self.betas = list(map(str, betas)) if isinstance(betas, list) else self.betas
        self.attachments |= bool(_within(delta, "conversation", "attachments"))

    @property
    def model(self) -> str | None:
        """The model's id, "provider/name" if the provider is not Anthropic; None without a model."""
        named = self.aliases.get(self.id, self.id) if isinstance(self.id, str) else self.id
        if isinstance(named, dict):
            named = f"{named.get('provider', '')}/{named.get('name', '')}"
        return str(named).removeprefix("anthropic/").strip("/") or None if named else None

    @property
    def params(self) -> dict[str, Any]:
        """Messages API parameters of the main thread, and the beta headers sent with it; {} for others' models."""
        if self.model is None or "/" in self.model:
            return {}
        return {**self._thinking(), **({"betas": self.betas} if self.betas else {})}

    def _thinking(self) -> dict[str, Any]:
        if self.reasoning is None:
            return {}
        if self.reasoning == "off":
            return {"thinking": {"type": "disabled"}}
        effort = EFFORTS.get(str(_within(self.reasoning, "effort")))
        return {"thinking": {"type": "adaptive"}, **({"output_config": {"effort": effort}} if effort else {})}


def _within(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


class ConversationBuilder:
    """Builds a conversation from jp's events, which are added in order."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.first: tuple[str | None, dict[str, Any]] | None = None
        self.events: list[Event | Question] = []
        self.notes = ReaderNotes()
        self._input_at: float | None = None
        self._reply: list[tuple[float, Block]] = []
        self._results: list[tuple[float, Block]] = []
        self._calls: set[str] = set()
        self._running: set[str] = set()
        self._open: defaultdict[str, deque[Question]] = defaultdict(deque)
        self._asked_by: Counter[str] = Counter()
        self._batches: dict[tuple[int, int], int] = {}
        self._replies = 0

    # ---------------------------------------------------------------------- what happens, in order

    def add_human(self, at: float, text: str) -> None:
        self._end_reply()
        self._end_results()
        if text:
            self.events.append(Human(at, (text_block("user", text),)))
        self._input_at = at

    def add_block(self, at: float, block: Block) -> None:
        self._end_results()
        now = (self.settings.model, self.settings.params)
        if self.first is None:
            self.first = now
        elif now != self.first and not self._reply:
            self.notes.add("reply", OTHER_MODEL)
        self._reply.append((at, block))

    def add_tool_call(self, at: float, call: str, block: Block) -> None:
        self.add_block(at, block)
        self._calls.add(call)
        self._running.add(call)

    def add_tool_result(self, at: float, call: str, block: Block) -> None:
        self._end_reply()
        if call not in self._running:
            self.notes.skip("tool result", "no open tool call has its id")
            return
        self._running.remove(call)
        self._results.append((at, block))
        self._input_at = at

    def add_question(self, question: Question) -> None:
        self._end_reply()
        ends = [place for place, letter in enumerate(question.id) if letter == "."]
        question.tool_use = next(
            (question.id[:end] for end in reversed(ends) if question.id[:end] in self._calls),
            question.id.partition(".")[0],
        )
        self._asked_by[question.tool_use] += 1
        round_ = (self._replies, self._asked_by[question.tool_use])
        question.batch = self._batches.setdefault(round_, len(self._batches) + 1)
        self._open[question.id].append(question)
        self.events.append(question)

    def add_answer(self, id_: str, answer: object) -> None:
        if self._open[id_]:
            self._open[id_].popleft().answer = words(answer)
        else:
            self.notes.skip("answer", "no open question has its id")

    def _end_reply(self) -> None:
        if not self._reply:
            return
        first = self._reply[0][0]
        started = first if self._input_at is None else self._input_at
        waited = None if self._input_at is None else round(max(0.0, first - started), 6)
        self.events.append(Reply(started, tuple(block for _, block in self._reply), waited))
        self._replies += 1
        self._reply = []

    def _end_results(self) -> None:
        if self._results:
            self.events.append(Results(self._results[-1][0], tuple(block for _, block in self._results)))
            self._results = []

    # ---------------------------------------------------------------------------- what it comes to

    def conversation(self, name: str) -> Conversation:
        """The whole, in jp's order."""
        self._end_reply()
        self._end_results()
        model, params = self.first or (None, {})
        events = tuple(event.inquiry() if isinstance(event, Question) else event for event in self.events)
        return Conversation(name, events, model, params=params)

    def report(self, file: str, warn: Warn) -> None:
        """Report what the file lacks and what was skipped. Call after `conversation`."""
        unanswered = sum(isinstance(event, Question) and event.answer is None for event in self.events)
        self.notes.add("inquiry", "without an answer: the default is used", unanswered)
        self.notes.add("tool call", "without a result", len(self._running))
        self.notes.report(file, warn)
        for note in self._lacks():
            warn(f"{file}: {note}")

    def _lacks(self) -> Iterator[str]:
        if self.events and not isinstance(self.events[-1], Reply):
            yield "the last turn has no reply"
        if self.first is None or self.first[0] is None:
            yield "no model is configured for the first reply"
        if self.settings.attachments:
            yield "attachments are listed, but their content is not in the file"
