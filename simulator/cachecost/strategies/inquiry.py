"""Questions that a tool asks the assistant while it runs, and the ways to ask them.

A question is a side call: the main thread as it stands (it ends with the tool's call), then a user message
with a result for each open call ("paused") and the question. The main thread never sees it; all it pays is
the answer tool, where that is always present. What the recording lacks is assumed, the same in every arm:

- A question starts when it was asked; in the order "parallel" those of a batch start with its first.
  The recording does not say how long an answer took, so a call that waits for another (a retry, the next question,
  the next main call) starts `STEP_S` after it where its own recorded time is not later still.
- The answer is the recorded one and what its way of asking puts around it: a tool call (`TOOL_CALL`) or the JSON of a
  schema (`SCHEMA_JSON`), and before it the thinking of a question that thinks (`THINKING`). A wrong answer is as long
  as the right one, and is followed by a sentence that says what is expected.
- Answers fail at `retry_rate` p, spread evenly: of n questions n × p fail once (at 0.05 the 10th, the 30th, the
  50th …) and n × p² twice; after two retries the last answer stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from cachecost.conversations.calls import PlannedCall
from cachecost.conversations.model import Inquiry
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.prompts.wire import block_of, text_block
from cachecost.strategies.even_sampling import FailedAttempts
from cachecost.strategies.model_facts import Facts
from cachecost.strategies.placements import Automatic, Hint, LastMessage, Placement, Primitive, ThreadIndex, View
from cachecost.strategies.window import Window

ANSWER_TOOL = "answer_inquiry"
STEP_S = 2.0
"""Seconds between a call without a recorded time and the one it waits for (rule 11)."""
MAX_RETRIES = 2
TOOL_CALL = 75
"""Output tokens of a call with an id and a short answer, without the answer: assumed, in the middle of 50 to 100."""
SCHEMA_JSON = 8
"""Of `{"answer": …}`: assumed, from its text."""
THINKING = 300
"""Thinking before an answer, where the question thinks: assumed; nobody has measured it for questions so short."""
MUST_CALL = 30
"""Size of "IMPORTANT: you MUST call the tool answer_inquiry …", the system block of a soft force: assumed."""

Breakpoints = Literal["same", "none", "hint"] | tuple[Primitive, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryOptions:
    """How a tool's questions are put to the assistant. Options left out keep the preset's values."""

    through: Literal["structured_output", "answer_tool", "tool_per_question"] = "answer_tool"
    """How the answer comes back: output_config.format, a tool that is always there, or one made for the question."""
    tools: Literal["same", "none"] = "same"
    """The tools of a question's call: those of the main thread, or none (but an answer tool)."""
    tool_choice: Literal["forced", "soft", "auto", "none"] | None = None
    """Left out: forced where there is an answer tool, else that of the main thread. soft is auto, and a system block
    after the main thread's that asks for the tool."""
    schema: Literal["per_type", "unique"] | None = None
    """Whether questions with the same type of answer share a schema. Left out: unique for a tool per question."""
    model: str | None = None
    """Another model that answers. It gets no thinking, effort or speed of the main thread, and a cache of its own."""
    system_tokens: int | None = None
    """Size of a system prompt of its own; left out, the main thread's is sent."""
    breakpoints: Breakpoints = "same"
    """The main thread's breakpoints, none, these with one before the question instead of at the end, or a list."""
    order: Literal["sequential", "parallel"] = "sequential"
    """Whether questions that were asked at once start together (then they cannot read each other's entries)."""
    retry_rate: float = 0.0
    """Share of answers that are not valid and asked again, at most twice a question."""
    tool_tokens: int = 75
    """Size of the answer tool's definition."""
    answer_tokens: int | None = None
    """Output around an answer's own words. Left out, 75 of a tool's call and 8 of a schema's JSON (assumed)."""
    thinking_tokens: int = THINKING
    """Thinking before an answer, where the question thinks (assumed)."""
    always_present: bool = True
    """Whether the main thread carries the answer tool, too."""
    thinking: Literal["same", "off"] | None = None
    """Left out: as the main thread, but off for another model and where a forced choice forbids it."""
    truncate: bool = True
    """Whether another model's thread is cut to its window as jp does, oldest messages first."""
    window_tokens: int | None = None
    """The window to cut to; left out, what the rules say of the model."""

    def __post_init__(self) -> None:
        if self.through == "structured_output" and self.tool_choice in ("forced", "soft"):
            raise ValueError(f"tool_choice={self.tool_choice}: structured_output has no tool to force")
        if self.through != "structured_output" and self.tool_choice == "none":
            raise ValueError(f"tool_choice=none: {self.through} could not be answered")
        if not 0 <= self.retry_rate <= 1:
            raise ValueError(f"retry_rate={self.retry_rate}: expected 0 to 1")

    @property
    def has_tool(self) -> bool:
        return self.through != "structured_output"

    @property
    def choice(self) -> str | None:
        return self.tool_choice or ("forced" if self.has_tool else None)

    @property
    def answer_size(self) -> int:
        """Output tokens around an answer's own words."""
        return self.answer_tokens if self.answer_tokens is not None else TOOL_CALL if self.has_tool else SCHEMA_JSON

    @property
    def is_unique(self) -> bool:
        return (self.schema or ("unique" if self.through == "tool_per_question" else "per_type")) == "unique"

    def main_tools(self, tools: Part) -> Part:
        """The tools of the main thread: with the answer tool at their end where it is always present."""
        if not self.has_tool or not self.always_present:
            return tools
        return Part((*tools.blocks, self.answer_tool("any", {"type": "string"})))

    def answer_tool(self, schema_name: str, answer: Mapping[str, Any]) -> Block:
        definition = {
            "name": ANSWER_TOOL,
            "description": "Answers the open question of a paused tool.",
            "strict": True,
            "input_schema": _object({"inquiry_id": {"type": "string"}, "answer": answer}),
        }
        return given_block("tool", "", f"{ANSWER_TOOL} {schema_name}", self.tool_tokens, definition)

    def placement(self, main: Placement) -> Placement:
        """The breakpoints of the side call."""
        if self.breakpoints == "same":
            return main
        if self.breakpoints == "none":
            return Placement()
        if self.breakpoints == "hint":
            kept = tuple(each for each in main.primitives if not isinstance(each, Automatic | LastMessage))
            return replace(main, primitives=(*kept, Hint()))
        return replace(main, primitives=self.breakpoints)

    def drops_thinking(self, params: Mapping[str, Any]) -> bool:
        """A forced choice cannot go with manual thinking: then the side call must do without."""
        return self.choice == "forced" and _type_of(params.get("thinking")) == "enabled"

    def thinks(self, params: Mapping[str, Any]) -> bool:
        """Whether a call with these parameters thinks before it answers."""
        return _type_of(params.get("thinking")) in ("adaptive", "enabled")

    def side_params(self, main: Mapping[str, Any]) -> dict[str, Any]:
        """The main thread's parameters as the side call sends them; choice and format come on top."""
        params = dict(main)
        if self.thinking == "off":
            params["thinking"] = {"type": "disabled"}
        elif (self.model and self.thinking is None) or self.drops_thinking(main):
            params.pop("thinking", None)
        if self.model is not None:
            params.pop("speed", None)
            params["output_config"] = {k: v for k, v in _config(main).items() if k != "effort"}
        return {key: value for key, value in params.items() if value != {}}


class QuestionPlanner:
    """The questions of one plan: their options, the parts they share, and what was asked so far."""

    def __init__(
        self,
        options: InquiryOptions,
        main: Request,
        bare_tools: Part,
        placement: Placement,
        trail: ThreadIndex,
        window_tokens: int | None,
    ) -> None:
        self._options = options
        self._placement = options.placement(placement)
        self._trail = trail
        self._fails = FailedAttempts(options.retry_rate, MAX_RETRIES)
        self._asked = 0
        self.use_main_thread(main, bare_tools)
        self._window = Window(window_tokens, (self._tools("any", {}), self._system)) if window_tokens else None

    def use_main_thread(self, main: Request, bare_tools: Part) -> None:
        """From here on questions are asked beside this main thread: its model, head and parameters."""
        options = self._options
        self._model = options.model or main.model
        self._bare = NOTHING if options.tools == "none" else bare_tools
        self._main_tools = main.tools
        self._system = main.system if options.system_tokens is None else _own_system(options.system_tokens)
        if options.choice == "soft":
            self._system = Part((*self._system.blocks, MUST_CALL_BLOCK))
        self._params = options.side_params(main.params)
        self._tool_parts: dict[str, Part] = {}

    def plan_questions(
        self, thread: Thread, turn: int, asked: Sequence[Inquiry], ready: float
    ) -> tuple[list[PlannedCall], float]:
        """The calls that questions asked between two main calls need, and when the next call can start.

        Calls are in the order they start, none before `ready`; times are seconds since the epoch.
        """
        calls: list[PlannedCall] = []
        for together in self._rounds(asked):
            start = max(min(inquiry.at for inquiry in together), ready)
            new = [call for inquiry in together for call in self._attempts(inquiry, thread, start, turn)]
            ready = max(call.start for call in new) + STEP_S
            calls += new
        return sorted(calls, key=lambda call: call.start), ready

    def _rounds(self, asked: Sequence[Inquiry]) -> list[list[Inquiry]]:
        """What starts together: each batch if parallel, else each question alone."""
        if self._options.order == "sequential":
            return [[inquiry] for inquiry in asked]
        batches: dict[int, list[Inquiry]] = {}
        for inquiry in asked:
            batches.setdefault(inquiry.batch, []).append(inquiry)
        return list(batches.values())

    def _attempts(self, inquiry: Inquiry, thread: Thread, start: float, turn: int) -> Iterator[PlannedCall]:
        self._asked += 1
        number = self._asked
        schema = f"question {number}" if self._options.is_unique else inquiry.answer_type
        side, answer = self._side(thread, inquiry, number), self._answer(inquiry)
        for attempt in range(1 + MAX_RETRIES):
            if attempt:
                side = side.then(Message.of("assistant", answer))
                side = side.then(Message.of("user", (_complaint(inquiry.answer_type),)))
            purpose = "retry" if attempt else "inquiry"
            request = self._request(side, schema, inquiry.answer_type)
            at = start + attempt * STEP_S
            yield PlannedCall(request, at, output=answer, purpose=purpose, turn=turn, inquiry=number)
            if not self._fails(attempt):
                return

    def _answer(self, inquiry: Inquiry) -> tuple[Block, ...]:
        """What the model puts out: its thinking, the recorded answer, and what is around that."""
        options = self._options
        thinks = options.thinks(self._params) and options.thinking_tokens > 0
        thinking = [given_block("thinking", "assistant", "before an answer", options.thinking_tokens)] * thinks
        around = [given_block("text", "assistant", "around an answer", options.answer_size)] * (options.answer_size > 0)
        return tuple(chain(thinking, [inquiry.answer], around))

    def _side(self, thread: Thread, inquiry: Inquiry, number: int) -> Thread:
        kept = self._window.fit(thread) if self._window else thread
        results = () if kept.message is None else _open_results(kept.message, inquiry, number)
        return kept.then(Message.of("user", (*results, inquiry.question)))

    def _request(self, thread: Thread, schema: str, answer_type: str) -> Request:
        answer = _answer_schema(answer_type, schema)
        tools = self._tools(schema, answer)
        breakpoints, automatic = self._placement.place(View(thread, tools, self._system, self._trail))
        params = self._with_answer(tools, answer)
        return Request(self._model, thread, tools, self._system, breakpoints, automatic, params)

    def _tools(self, schema: str, answer: Mapping[str, Any]) -> Part:
        options = self._options
        if not options.has_tool:
            return self._bare
        if options.through == "answer_tool" and options.tools == "same" and options.always_present:
            return self._main_tools
        name = "any" if options.through == "answer_tool" else schema
        part = self._tool_parts.get(name)
        if part is None:
            shape = {"type": "string"} if name == "any" else answer
            part = self._tool_parts[name] = Part((*self._bare.blocks, options.answer_tool(name, shape)))
        return part

    def _with_answer(self, tools: Part, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        params = dict(self._params)
        if not self._options.has_tool:
            shape = {"type": "json_schema", "schema": _object({"answer": answer})}
            params["output_config"] = {**_config(params), "format": shape}
        if not tools.blocks:
            params.pop("tool_choice", None)
        elif self._options.choice is not None:
            params["tool_choice"] = _choice(self._options.choice, params.get("tool_choice"))
        return params


def _choice(choice: str, main: object) -> dict[str, Any]:
    """`tool_choice` as the Messages API spells it; whether tools may run in parallel stays as it is."""
    types = {"forced": {"type": "tool", "name": ANSWER_TOOL}, "soft": {"type": "auto"}}
    spelled = types.get(choice, {"type": choice})
    kept = main.get("disable_parallel_tool_use") if isinstance(main, Mapping) else None
    return spelled if kept is None or choice == "none" else {**spelled, "disable_parallel_tool_use": kept}


def _config(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return params.get("output_config") or {}


def _type_of(value: object) -> object:
    return value.get("type") if isinstance(value, Mapping) else None


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _answer_schema(answer_type: str, schema: str) -> dict[str, Any]:
    """The JSON Schema of an answer; one that is unique says which question it is for."""
    kind = {"type": "boolean" if answer_type == "boolean" else "string"}
    return kind if schema == answer_type else {**kind, "description": f"The answer to {schema}."}


MUST_CALL_BLOCK = given_block("text", "system", "the answer tool must be called", MUST_CALL)


def _own_system(tokens: int) -> Part:
    return Part((given_block("text", "system", "inquiry system prompt", tokens),))


def _open_results(last: Message, inquiry: Inquiry, number: int) -> tuple[Block, ...]:
    """A result for every call of the last message: the API wants them all, the calling one's says paused."""
    open_calls = [_id_of(block, index) for index, block in enumerate(last.blocks) if block.kind == "tool_use"]
    asking_id = inquiry.tool_use or (open_calls[-1] if open_calls else f"call_{number}")
    others = [call for call in open_calls if call != asking_id]
    waiting = others if asking_id in open_calls else others[:-1]
    results = [(call, "Not finished yet.") for call in waiting]
    return tuple(_result(call, text) for call, text in [*results, (asking_id, f"Paused by question {number}.")])


def _id_of(block: Block, index: int) -> str:
    return str((block.content or {}).get("id") or f"call_{index}")


def _result(call: str, text: str) -> Block:
    return block_of("user", {"type": "tool_result", "tool_use_id": call, "content": text})


def _complaint(answer_type: str) -> Block:
    wanted = "exactly true or false" if answer_type == "boolean" else "in the form the question asks for"
    return text_block("user", f"That answer is not valid. Answer {wanted}.")


def window_of_questions(options: InquiryOptions, facts: Facts | None) -> int | None:
    """The window to cut to, in tokens; None where nothing is cut or no window is known."""
    if options.model is None or not options.truncate:
        return None
    return options.window_tokens or (facts(options.model).context_window if facts else None)
