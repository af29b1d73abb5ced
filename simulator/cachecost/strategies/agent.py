"""An agent as data, and how it plans the calls of a conversation: one pass, work for what is new in each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import PlannedCall
from cachecost.conversations.model import Aside, Conversation, Event, Human, Inquiry, Reply, Results, Switch
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import Request
from cachecost.providers.assumptions import show_assumption
from cachecost.strategies.changes.base import AgentChange, GrowingThread
from cachecost.strategies.inquiry import InquiryOptions, QuestionPlanner, window_of_questions
from cachecost.strategies.model_facts import Facts, HostFacts
from cachecost.strategies.placements import Placement, ThreadIndex, View
from cachecost.strategies.window import Window

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

    def plan(self, conversation: Conversation) -> Iterator[PlannedCall]:
        """The calls in the order they start. Raises CannotEvaluate if no model is known."""
        if self.inquiry_by_host and conversation.inquiries:
            return self.for_host_of(self.model or conversation.model).plan(conversation)
        walks = [_CallPlanner(self, conversation).calls() for conversation in self.apply_changes(conversation)]
        calls: Iterator[PlannedCall] = merge(*walks, key=lambda call: call.start) if len(walks) > 1 else walks[0]
        for change in self.changes:
            calls = change.plan_calls(calls)
        return calls

    def apply_changes(self, conversation: Conversation) -> list[Conversation]:
        """The conversation as this agent sends it, and the side conversations it adds."""
        conversations = [_run_on(self.model, conversation)]
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
        try:
            return window_of_questions(self.inquiry, self.facts) if self.inquiry else None
        except CannotEvaluate:
            return None

    def notes(self, conversation: Conversation) -> list[str]:
        """Sentences for the report: what this agent assumes, and what it cannot do with this conversation."""
        if self.inquiry_by_host and conversation.inquiries:
            return self.for_host_of(self.model or conversation.model).notes(conversation)
        told = [f"Assumes {name}={show_assumption(value)}." for name, value in sorted(self.rules.items())]
        told += self.remarks
        if not self.source:
            told += _notes_on_breakpoints(self.placement)
        if conversation.inquiries:
            told += _notes_on_questions(self, conversation)
        return told


def _notes_on_breakpoints(placement: Placement) -> Iterator[str]:
    """Warnings for the author of a strategy: no breakpoints at all, or more than a request takes."""
    if not placement.primitives:
        yield "It sends no breakpoints: where caching needs them, nothing is cached."
    elif placement.most > placement.slots:
        left_out = "the last of its list" if placement.trim == "priority" else "the oldest in messages"
        yield (
            f"Its list can choose {placement.most} breakpoints and a request takes {placement.slots}: "
            f"{left_out} are left out."
        )


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
    model = inquiry.model or main.model
    if inquiry.choice == "forced" and not _accepts_forced_choice(agent, model):
        yield f"{model} refuses a forced tool choice: all {asked} questions fail."
    yield from _notes_on_window(agent, conversation)


def _accepts_forced_choice(agent: Agent, model: str) -> bool:
    try:
        return agent.facts is None or agent.facts(model).accepts_forced_choice
    except CannotEvaluate:
        return True


def _notes_on_window(agent: Agent, conversation: Conversation) -> Iterator[str]:
    inquiry, window = agent.inquiry, agent.window()
    if inquiry is None or inquiry.model is None or not inquiry.truncate:
        return
    if window is None:
        yield f"The context window of {inquiry.model} is unknown: questions are sent whole."
        return
    size = sum(block.size for event in conversation.events for block in _blocks(event))
    if size > Window(window, (conversation.tools, conversation.system)).budget:
        yield f"Questions lose their oldest messages where they would not fit {inquiry.model} ({window:,} tokens)."


def _blocks(event: Event) -> tuple[Block, ...]:
    return event.blocks if isinstance(event, Human | Reply | Results) else ()


def _run_on(model: str | None, conversation: Conversation) -> Conversation:
    """The conversation as if it had run on `model`, side calls on the main thread's model, too."""
    if model is None or model == conversation.model:
        return conversation
    events = (
        replace(event, request=replace(event.request, model=model))
        if isinstance(event, Aside) and event.request.model == conversation.model
        else event
        for event in conversation.events
    )
    return replace(conversation, model=model, events=tuple(events))


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

    def calls(self) -> Iterator[PlannedCall]:
        told = self._conversation
        if told.host is None and not told.workspace and not told.is_batch:
            yield from self._calls()
            return
        for call in self._calls():
            yield replace(call, host=told.host, workspace=told.workspace, is_batch=told.is_batch)

    def _calls(self) -> Iterator[PlannedCall]:
        asked: list[Inquiry] = []
        for event in self._conversation.events:
            if isinstance(event, Inquiry):
                asked.append(event)
                continue
            yield from self._ask(asked)
            asked = []
            yield from self._step(event)
        yield from self._ask(asked)

    def _step(self, event: Event) -> Iterator[PlannedCall]:
        if isinstance(event, Reply):
            yield self._call(event)
        elif isinstance(event, Aside):
            yield self._aside(event)
        elif isinstance(event, Switch):
            self._switch(event)
        self._turn += isinstance(event, Human)
        self._thread.take(event)

    def _call(self, reply: Reply) -> PlannedCall:
        self._ready = start = max(reply.at, self._ready)
        main, thread = self._main, self._thread.thread
        breakpoints, automatic = self._agent.placement.place(View(thread, main.tools, main.system, self._trail))
        request = Request(main.model, thread, main.tools, main.system, breakpoints, automatic, main.params)
        return self._plan_call(reply, request, start, "main")

    def _aside(self, event: Aside) -> PlannedCall:
        """A side call with its own head, with this agent's breakpoints for side calls."""
        agent, reply = self._agent, event.reply
        placement = agent.inquiry.placement(agent.placement) if agent.inquiry else agent.placement
        sent = event.request
        tools = self._main.tools if sent.tools is self._conversation.tools else sent.tools
        bare = replace(sent, thread=self._thread.graft(sent.thread), tools=tools, params=agent.parameters(sent.params))
        request = self._with_breakpoints(bare, placement)
        start = max(event.at, self._ready)
        return self._plan_call(reply, request, start, "aside")

    def _plan_call(self, reply: Reply, request: Request, start: float, purpose: str) -> PlannedCall:
        return PlannedCall(
            request,
            start,
            first_token_s=reply.first_token_s or 0.0,
            output=reply.blocks,
            output_tokens=reply.output_tokens,
            purpose=purpose,
            turn=self._turn,
        )

    def _with_breakpoints(self, bare: Request, placement: Placement) -> Request:
        breakpoints, automatic = placement.place(View(bare.thread, bare.tools, bare.system, self._trail))
        return replace(bare, breakpoints=breakpoints, automatic=automatic)

    def _switch(self, event: Switch) -> None:
        """The main thread goes on with another model or head; what the agent sets itself stays."""
        as_told = replace(
            self._conversation,
            model=event.model,
            tools=event.tools,
            system=event.system,
            params=event.params,
            is_chosen=event.is_chosen,
        )
        self._main = self._agent.bare_request(as_told)
        if self._questions is not None:
            self._questions.use_main_thread(self._main, event.tools)

    def _ask(self, asked: list[Inquiry]) -> Iterator[PlannedCall]:
        if asked and self._questions is not None:
            calls, self._ready = self._questions.plan_questions(self._thread.thread, self._turn, asked, self._ready)
            yield from calls
