"""An agent as data, and how it plans the calls of a conversation: one pass, work for what is new in each call.

Questions that a tool asks the assistant while it runs are put in the ways that `InquiryOptions` has; where another
model answers them, the conversation is cut to its window, as jp does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import merge
from itertools import takewhile
from typing import Any, Literal

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Human, Inquiry, Reply, Results, Switch
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread, given_block
from cachecost.prompts.request import Request, block_of, text_block
from cachecost.providers.assumptions import show_assumption
from cachecost.strategies.changes.base import (
    MAX_RETRIES,
    STEP_S,
    AgentChange,
    Facts,
    FailedAttempts,
    GrowingThread,
    HostFacts,
    params_for_model,
    with_head,
)
from cachecost.strategies.placements import Automatic, Hint, LastMessage, Placement, Primitive, ThreadIndex, View

CHARS_PER_TOKEN, BUDGET_PERCENT, TARGET_PERCENT, GRANULES = 3, 90, 80, 10


class Window:
    """The threads of one conversation, cut to `tokens`. Work is for new messages, until the cut moves."""

    def __init__(self, tokens: int, head: Iterable[Part] = ()) -> None:
        overhead = sum(block.size for part in head for block in part.blocks)
        self.budget = max(tokens * CHARS_PER_TOKEN * BUDGET_PERCENT // 100 - overhead, 0)
        self.target = max(tokens * CHARS_PER_TOKEN * TARGET_PERCENT // 100 - overhead, 0)
        self._messages: list[Message] = []
        self._ends: list[int] = []
        self._humans: list[int] = []
        self._seen: Thread | None = None
        self._root = Thread()
        self._kept = self._root
        self._cut = self._upto = 0

    def fit(self, thread: Thread) -> Thread:
        """`thread`, or what is left of it: from a human message on, or nothing. Ask about growing threads only."""
        new = [node.message for node in takewhile(lambda node: node is not self._seen, thread.back()) if node.message]
        self._seen = thread
        for message in reversed(new):
            if message.is_human:
                self._humans.append(len(self._messages))
            self._messages.append(message)
            before = self._ends[-1] if self._ends else 0
            self._ends.append(before + sum(block.size for block in message.blocks))
        if not self._ends or self._ends[-1] <= self.budget:
            return thread
        # What stays must begin with a human message: results without their call are dropped, too.
        human = self.first_kept(self._ends, self._humans)
        cut = self._humans[human] if human < len(self._humans) else len(self._messages)
        if cut != self._cut:
            self._cut = self._upto = cut
            self._kept = self._root
        for message in self._messages[self._upto :]:
            self._kept = self._kept.then(message)
        self._upto = len(self._messages)
        return self._kept

    def first_kept(self, ends: Sequence[int], humans: Sequence[int], in_steps: bool = True) -> int:
        """Which of the messages `humans` is the first to stay, for no more than `target`; `ends` are the sizes up to
        the end of each message. `in_steps` the cut moves rarely.
        """
        granule = max(self.target // GRANULES, 1) if in_steps else 1
        surplus = -(-(ends[-1] - self.target) // granule) * granule
        return bisect_left(humans, bisect_left(ends, surplus) + 1)


ANSWER_TOOL = "answer_inquiry"
TOOL_CALL, SCHEMA_JSON = 75, 8
"""Output tokens of a call with an id, in the middle of 50 to 100, and of `{"answer": …}`, both assumed, without it."""
THINKING = 300
"""Thinking before an answer, where the question thinks: assumed; nobody has measured it for questions so short."""

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
        return _type_of(params.get("thinking")) in ("adaptive", "enabled")

    def side_params(self, main: Mapping[str, Any]) -> dict[str, Any]:
        """The main thread's parameters as the side call sends them; choice and format come on top."""
        params = params_for_model(main, self.model, keeps_thinking=True)
        if self.thinking == "off":
            params["thinking"] = {"type": "disabled"}
        elif (self.model and self.thinking is None) or self.drops_thinking(main):
            params.pop("thinking", None)
        return params


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
        self._system = main.system
        if options.system_tokens is not None:
            self._system = Part((given_block("text", "system", "inquiry system prompt", options.system_tokens),))
        if options.choice == "soft":
            self._system = Part((*self._system.blocks, MUST_CALL_BLOCK))
        self._params = options.side_params(main.params)
        self._tool_parts: dict[str, Part] = {}

    def plan_questions(
        self, thread: Thread, turn: int, asked: Sequence[Inquiry], ready: float
    ) -> tuple[list[Call], float]:
        """The calls that questions asked between two main calls need, and when the next call can start.

        Calls are in the order they start, none before `ready`; times are seconds since the epoch.
        """
        calls: list[Call] = []
        batches: dict[int, list[Inquiry]] = {}
        for number, inquiry in enumerate(asked):
            is_alone = self._options.order == "sequential"
            batches.setdefault(number if is_alone else inquiry.batch, []).append(inquiry)
        for together in batches.values():
            start = max(min(inquiry.at for inquiry in together), ready)
            new = [call for inquiry in together for call in self._attempts(inquiry, thread, start, turn)]
            ready = max(call.start for call in new) + STEP_S
            calls += new
        return sorted(calls, key=lambda call: call.start), ready

    def _attempts(self, inquiry: Inquiry, thread: Thread, start: float, turn: int) -> Iterator[Call]:
        self._asked += 1
        options, number = self._options, self._asked
        shares = options.schema or ("unique" if options.through == "tool_per_question" else "per_type")
        schema = f"question {number}" if shares == "unique" else inquiry.answer_type
        kept = self._window.fit(thread) if self._window else thread
        results = () if kept.message is None else _open_results(kept.message, inquiry, number)
        side = kept.then(Message.of("user", (*results, inquiry.question)))
        answer = [inquiry.answer]
        if options.thinks(self._params) and options.thinking_tokens > 0:
            answer.insert(0, given_block("thinking", "assistant", "before an answer", options.thinking_tokens))
        if options.answer_size > 0:
            answer.append(given_block("text", "assistant", "around an answer", options.answer_size))
        is_boolean = inquiry.answer_type == "boolean"
        wanted = "exactly true or false" if is_boolean else "in the form the question asks for"
        for attempt in range(1 + MAX_RETRIES):
            if attempt:
                complaint = text_block("user", f"That answer is not valid. Answer {wanted}.")
                side = side.then(Message.of("assistant", tuple(answer))).then(Message.of("user", (complaint,)))
            purpose = "retry" if attempt else "inquiry"
            request = self._request(side, schema, inquiry.answer_type)
            at = start + attempt * STEP_S
            output = tuple(answer)
            yield Call(request, at, output=output, purpose=purpose, turn=turn, inquiry=number, is_simulated=True)
            if not self._fails(attempt):
                return

    def _request(self, thread: Thread, schema: str, answer_type: str) -> Request:
        answer = {"type": "boolean" if answer_type == "boolean" else "string"}
        if schema != answer_type:
            answer["description"] = f"The answer to {schema}."
        tools, params, choice = self._tools(schema, answer), dict(self._params), self._options.choice
        breakpoints, automatic = self._placement.place(View(thread, tools, self._system, self._trail))
        if not self._options.has_tool:
            shape = {"type": "json_schema", "schema": _object({"answer": answer})}
            params["output_config"] = {**(params.get("output_config") or {}), "format": shape}
        if not tools.blocks:
            params.pop("tool_choice", None)
        elif choice is not None:
            main = params.get("tool_choice")
            types = {"forced": {"type": "tool", "name": ANSWER_TOOL}, "soft": {"type": "auto"}}
            params["tool_choice"] = spelled = types.get(choice, {"type": choice})
            kept = main.get("disable_parallel_tool_use") if isinstance(main, Mapping) else None
            if kept is not None and choice != "none":
                params["tool_choice"] = {**spelled, "disable_parallel_tool_use": kept}
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


def _type_of(value: object) -> object:
    return value.get("type") if isinstance(value, Mapping) else None


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    whole = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {**whole, "additionalProperties": False}


MUST_CALL_BLOCK = given_block("text", "system", "the answer tool must be called", 30)
"""The system block of a soft force, "IMPORTANT: you MUST call the tool answer_inquiry …": its size is assumed."""


def _open_results(last: Message, inquiry: Inquiry, number: int) -> tuple[Block, ...]:
    """A result for every call of the last message: the API wants them all, the calling one's says paused."""
    open_calls = [
        str((block.content or {}).get("id") or f"call_{index}")
        for index, block in enumerate(last.blocks)
        if block.kind == "tool_use"
    ]
    asking_id = inquiry.tool_use or (open_calls[-1] if open_calls else f"call_{number}")
    others = [call for call in open_calls if call != asking_id]
    waiting = others if asking_id in open_calls else others[:-1]
    results = [(call, "Not finished yet.") for call in waiting]
    return tuple(
        block_of("user", {"type": "tool_result", "tool_use_id": call, "content": text})
        for call, text in [*results, (asking_id, f"Paused by question {number}.")]
    )


NO_VALUES: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """How an agent sends a conversation: a Strategy.

    `model` wins over the conversation's. `params` override the conversation's parameters; None removes
    one. `rules` are the assumptions that it makes about the rulebook. Without `inquiry` the questions of a conversation
    are not asked. `inquiry_by_host` says how they are asked on a host, and why, where that is
    not the same everywhere. `what` is a line for lists, `remarks` are sentences for the report.
    """

    name: str
    what: str = ""
    source: str = ""
    date: str = ""
    placement: Placement = Placement()
    inquiry: InquiryOptions | None = None
    model: str | None = None
    params: Mapping[str, Any] = field(default_factory=lambda: NO_VALUES)
    rules: Mapping[str, Any] = field(default_factory=lambda: NO_VALUES)
    facts: Facts | None = None
    changes: tuple[AgentChange, ...] = ()
    inquiry_by_host: Callable[[HostFacts], tuple[InquiryOptions, str]] | None = None
    remarks: tuple[str, ...] = ()

    def for_host_of(self, model: str | None) -> Agent:
        """This agent with the way of asking that it has on the host of `model`; itself where it has one way.

        Raises CannotEvaluate for an unknown model, for none, and for a host of which it knows nothing.
        """
        if self.inquiry_by_host is None:
            return self
        if model is None or self.facts is None:
            raise CannotEvaluate(f"strategy '{self.name}' asks in another way on each host: no model is known")
        inquiry, why = self.inquiry_by_host(self.facts(model))
        return replace(self, inquiry=inquiry, inquiry_by_host=None, remarks=(*self.remarks, why))

    def plan(self, conversation: Conversation) -> Iterator[Call]:
        """The calls in the order they start. Raises CannotEvaluate if no model is known."""
        if self.inquiry_by_host and conversation.inquiries:
            return self.for_host_of(self.model or conversation.model).plan(conversation)
        walks = [_CallPlanner(self, conversation).calls() for conversation in self.apply_changes(conversation)]
        calls: Iterator[Call] = merge(*walks, key=lambda call: call.start) if len(walks) > 1 else walks[0]
        for change in self.changes:
            calls = change.plan_calls(calls)
        return calls

    def apply_changes(self, conversation: Conversation) -> list[Conversation]:
        """The conversation as this agent sends it, and the side conversations it adds."""
        if self.model is not None and self.model != conversation.model:
            # side calls on the main thread's model go along
            events = (
                replace(event, request=replace(event.request, model=self.model))
                if isinstance(event, Aside) and event.request.model == conversation.model
                else event
                for event in conversation.events
            )
            conversation = replace(conversation, model=self.model, events=tuple(events))
        conversations = [conversation]
        for change in self.changes:
            conversations = [
                other for conversation in conversations for other in change.apply_to(conversation, self.facts)
            ]
        return conversations

    @property
    def sees_forks(self) -> bool:
        """Whether breakpoints depend on how else threads of the plan's tree went on."""
        asked = self.inquiry.breakpoints if self.inquiry and isinstance(self.inquiry.breakpoints, tuple) else ()
        return any(primitive.sees_forks for primitive in (*self.placement.primitives, *asked))

    @property
    def shares_threads(self) -> bool:
        """Whether its threads may grow in the tree of the recorded ones: it looks at no forks and makes no messages of
        its own, which may be of another length under each variant though they are named alike."""
        return not self.changes and not self.sees_forks

    @property
    def lead_s(self) -> float:
        """How many seconds before its first event a conversation may have a call."""
        return sum(change.lead_s for change in self.changes)

    def bare_request(self, conversation: Conversation) -> Request:
        """What all main calls have in common: everything but messages and breakpoints."""
        model = conversation.model if conversation.is_chosen else self.model or conversation.model
        if model is None:
            raise CannotEvaluate(f"strategy '{self.name}': no model is given and {conversation.name} names none")
        tools = self.inquiry.main_tools(conversation.tools) if self.inquiry else conversation.tools
        params = self.parameters(conversation.params)
        return Request(model, conversation.root, tools, conversation.system, params=params)

    def parameters(self, recorded: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters that are sent, given the recorded ones: these themselves where nothing changes."""
        if not self.params and None not in recorded.values():
            return recorded
        return {key: value for key, value in {**recorded, **self.params}.items() if value is not None}

    def window(self) -> int | None:
        """Tokens that a question's thread is cut to; None where it is not cut."""
        asked = self.inquiry
        if asked is None or asked.model is None or not asked.truncate:
            return None
        with suppress(CannotEvaluate):
            return asked.window_tokens or (self.facts(asked.model).context_window if self.facts else None)
        return None

    def notes(self, conversation: Conversation) -> list[str]:
        """Sentences for the report: what this agent assumes, and what it cannot do with this conversation."""
        if self.inquiry_by_host and conversation.inquiries:
            return self.for_host_of(self.model or conversation.model).notes(conversation)
        notes = [f"Assumes {name}={show_assumption(value)}." for name, value in sorted(self.rules.items())]
        notes += self.remarks
        placement = self.placement
        if not self.source and not placement.primitives:
            notes.append("It sends no breakpoints: where caching needs them, nothing is cached.")
        elif not self.source and placement.most > placement.slots:
            left_out = "the last of its list" if placement.trim == "priority" else "the oldest in messages"
            limits = f"Its list can choose {placement.most} breakpoints and a request takes {placement.slots}"
            notes.append(f"{limits}: {left_out} are left out.")
        if conversation.inquiries:
            notes += _notes_on_questions(self, conversation)
        return notes


def _notes_on_questions(agent: Agent, conversation: Conversation) -> Iterator[str]:
    asked, inquiry = len(conversation.inquiries), agent.inquiry
    if inquiry is None:
        yield (
            f"The {asked} questions are not asked: this strategy has no way to ask them. "
            "Its cost does not include them."
        )
        return
    main = agent.bare_request(conversation)
    if inquiry.drops_thinking(main.params):
        yield (
            "A forced tool choice cannot be combined with manual thinking: questions omit thinking, "
            "so two parameters of the messages layer change at once."
        )
    model, is_refused = inquiry.model or main.model, False
    with suppress(CannotEvaluate):
        is_refused = agent.facts is not None and not agent.facts(model).accepts_forced_choice
    if inquiry.choice == "forced" and is_refused:
        yield f"{model} refuses a forced tool choice: all {asked} questions fail."
    if inquiry.model is None or not inquiry.truncate:
        return
    window = agent.window()
    if window is None:
        yield f"The context window of {inquiry.model} is unknown: questions are sent whole."
        return
    spoken = (event for event in conversation.events if isinstance(event, Human | Reply | Results))
    size = sum(block.size for event in spoken for block in event.blocks)
    if size > Window(window, (conversation.tools, conversation.system)).budget:
        yield f"Questions lose their oldest messages where they would not fit {inquiry.model} ({window:,} tokens)."


class _CallPlanner:
    """One pass over a conversation: the thread as it grows, and who must wait for whom."""

    def __init__(self, agent: Agent, conversation: Conversation) -> None:
        self._agent = agent
        self._conversation = conversation
        self._main = agent.bare_request(conversation)
        self._thread = GrowingThread(self._main.thread)
        self._trail = ThreadIndex()
        self._turn = 0
        self._ready = float("-inf")
        self._questions: QuestionPlanner | None = None
        if agent.inquiry:
            self._questions = QuestionPlanner(
                agent.inquiry, self._main, conversation.tools, agent.placement, self._trail, agent.window()
            )

    def calls(self) -> Iterator[Call]:
        asked: list[Inquiry] = []
        for event in self._conversation.events:
            if isinstance(event, Inquiry):
                asked.append(event)
                continue
            yield from self._ask(asked)
            asked = []
            if isinstance(event, Reply):
                self._ready = start = max(event.at, self._ready)
                main, thread = self._main, self._thread.thread
                view = View(thread, main.tools, main.system, self._trail)
                breakpoints, automatic = self._agent.placement.place(view)
                request = Request(main.model, thread, main.tools, main.system, breakpoints, automatic, main.params)
                yield self._plan_call(event, request, start, "main")
            elif isinstance(event, Aside):
                yield self._aside(event)
            elif isinstance(event, Switch):  # what the agent sets itself stays
                self._main = self._agent.bare_request(with_head(self._conversation, event))
                if self._questions is not None:
                    self._questions.use_main_thread(self._main, event.tools)
            self._turn += isinstance(event, Human)
            self._thread.add(event)
        yield from self._ask(asked)

    def _aside(self, event: Aside) -> Call:
        """A side call with its own head, with this agent's breakpoints for side calls."""
        agent, reply = self._agent, event.reply
        placement = agent.inquiry.placement(agent.placement) if agent.inquiry else agent.placement
        sent = event.request
        tools = self._main.tools if sent.tools is self._conversation.tools else sent.tools
        bare = replace(sent, thread=self._thread.graft(sent.thread), tools=tools, params=agent.parameters(sent.params))
        breakpoints, automatic = placement.place(View(bare.thread, bare.tools, bare.system, self._trail))
        request = replace(bare, breakpoints=breakpoints, automatic=automatic)
        start = max(event.at, self._ready)
        return self._plan_call(reply, request, start, "aside")

    def _plan_call(self, reply: Reply, request: Request, start: float, purpose: str) -> Call:
        recorded = self._conversation
        return Call(
            request,
            start,
            host=recorded.host,
            workspace=recorded.workspace,
            first_token_s=reply.first_token_s or 0.0,
            output=reply.blocks,
            output_tokens=reply.output_tokens,
            purpose=purpose,
            turn=self._turn,
            is_simulated=True,
            is_batch=recorded.is_batch,
        )

    def _ask(self, asked: list[Inquiry]) -> Iterator[Call]:
        if asked and self._questions is not None:
            calls, self._ready = self._questions.plan_questions(self._thread.thread, self._turn, asked, self._ready)
            own = {name: getattr(self._conversation, name) for name in ("host", "workspace", "is_batch")}
            yield from (replace(call, **own) for call in calls)
