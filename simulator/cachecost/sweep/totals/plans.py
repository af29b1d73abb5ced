"""What agents send, planned once for all models and TTLs of their placements, and the prompts of it.

Under one set of assumptions each prompt is rendered once for all strategies and breakpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple, cast

import msgspec

from cachecost.base.structs import identity_struct
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Prefix, Thread
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import TTL, Breakpoint, Request, SentBreakpoints, as_sent, sent_breakpoints
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import host_of
from cachecost.providers.rules import ModelRules, OwnRules, RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.agent import Agent
from cachecost.sweep.entries import EntryTree, Numbers

UNSAID = cast("TTL", "as the placement says")
"""The TTL of breakpoints that have none of their own."""
MOST_CALLS = 50_000
"""Planned calls that are kept, about a kilobyte each; the plan used least recently goes first."""
SOME_MODEL = "as the agent is told"
"""The model of requests that name no other."""


class NotShared(Exception):
    """Raised for what cannot be shared: it is replayed call by call instead."""


class PlannedRequest(NamedTuple):
    """A planned request; `breakpoints` are those the API sees. All else are numbers: what calls, plans and models
    share.

    `content` is of all but breakpoints, `places` of where these stand; `shape` and `way` are of the plan's lists.
    """

    request: Request
    breakpoints: tuple[Breakpoint, ...]
    content: int
    places: Numbers
    shape: int
    route: int


class CallTarget(NamedTuple):
    """Where a call goes, and what its prices depend on besides its length; `params` are numbered.

    No host is that of the comparison; the model may be SOME_MODEL.
    """

    host: str | None
    model: str
    workspace: str
    params: int
    is_batch: bool


class RequestExample(NamedTuple):
    """A request as an example for all that are refused, or not, for the same reasons (rule 6), length apart."""

    request: Request
    breakpoints: SentBreakpoints

    def lasting(self, ttl: TTL) -> tuple[Request, SentBreakpoints]:
        """The request with `ttl` on breakpoints that have no TTL of their own."""
        automatic = ttl if self.request.automatic is UNSAID else self.request.automatic
        breakpoints, idle = (
            tuple(replace(breakpoint, ttl=ttl) if breakpoint.ttl is UNSAID else breakpoint for breakpoint in some)
            for some in (self.breakpoints.breakpoints, self.breakpoints.idle)
        )
        return replace(self.request, automatic=automatic), SentBreakpoints(breakpoints, self.breakpoints.fault, idle)


@identity_struct
class AgentPlan:
    """The calls of an agent in the order they start, as columns; times are seconds.

    `window` is what its questions are cut to, in tokens. `outputs` are tokens, or blocks to be counted. `looked` is
    what its calls may find, for every way that their prompts stood to each other so far; `unusual` are grounds and
    models for which it must be replayed call by call.
    """

    agent: Agent
    window: int | None
    shapes: list[RequestExample]
    routes: list[CallTarget]
    sent: list[PlannedRequest] = msgspec.field(default_factory=list)
    starts: list[float] = msgspec.field(default_factory=list)
    first_tokens: list[float] = msgspec.field(default_factory=list)
    outputs: list[int | tuple[Block, ...]] = msgspec.field(default_factory=list)
    looked: list[tuple[EntryTree, list[Numbers]]] = msgspec.field(default_factory=list)
    unusual: list[tuple[Any, str | None]] = msgspec.field(default_factory=list)

    def candidates(self, tree: EntryTree) -> list[Numbers]:
        """Of each call the entries that it may find: the same on models whose prompts stand alike."""
        for known, found in self.looked:
            if known == tree:
                return found
        self.looked.append((tree, tree.find_candidates()))
        return self.looked[-1][1]


class Numbering(dict[tuple[Any, ...], int]):
    """Numbers from 0, in the order things are met."""

    def of(self, thing: tuple[Any, ...]) -> int:
        return self.setdefault(thing, len(self))


class PlanStore:
    """The plans of some conversations. Threads of agents that cannot see each other's grow in one tree."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._root = Thread()
        self._known: list[AgentPlan] = []
        self._are_plain = are_plain(conversations)
        self._params, self._contents, self._places = Numbering(), Numbering(), Numbering()

    def of(self, agent: Agent) -> AgentPlan:
        """What `agent` sends. Raises Unusual, CannotEvaluate."""
        if agent.changes or not self._are_plain:
            raise NotShared
        # what decides where breakpoints stand: not whose they are, who says so, on which model, nor how long most last
        unnamed: dict[str, Any] = {"name": "", "what": "", "source": "", "date": "", "remarks": (), "rules": {}}
        model, placement = None if agent.model is None else SOME_MODEL, replace(agent.placement, ttl=UNSAID)
        bare = replace(agent, **unnamed, facts=None, model=model, placement=placement)
        window = agent.window()
        for number, known in enumerate(self._known):
            if known.window == window and known.agent == bare:
                self._known.append(self._known.pop(number))
                return known
        root = Thread() if agent.sees_forks else self._root
        plan = AgentPlan(bare, window, [], [])
        self._add_calls(plan, plan_calls(replace(bare, facts=agent.facts), self._conversations, root))
        self._known.append(plan)
        while len(self._known) > 1 and sum(len(known.sent) for known in self._known) > MOST_CALLS:
            self._known.pop(0)
        return plan

    def _add_calls(self, plan: AgentPlan, calls: Iterator[Call]) -> None:
        """Add the calls, and new shapes and routes, to the plan.

        Raises NotShared where the API edits a request, or which breakpoints it accepts depends on their TTLs.
        """
        shapes, routes = Numbering(), Numbering()
        last: Mapping[str, Any] | None = None
        params = 0
        for call in calls:
            request = call.request
            if request.params is not last:
                last, params = request.params, self._params.of((repr(request.params),))
            sent = sent_breakpoints(request)
            if (
                call.tool_uses
                or request.fault is not None
                or request.thread.compaction
                or "context_management" in request.params
            ):
                raise NotShared
            if sent.fault and UNSAID in (request.automatic, *(one.ttl for one in request.breakpoints)):
                raise NotShared
            ttls = tuple([breakpoint.ttl for breakpoint in as_sent(request, sent)])
            shape = shapes.of((params, ttls, request.automatic, sent.fault))
            if shape == len(plan.shapes):
                plan.shapes.append(RequestExample(request, sent))
            target = CallTarget(call.host, request.model, call.workspace, params, call.is_batch)
            route = routes.of(target)
            if route == len(plan.routes):
                plan.routes.append(target)
            content = self._contents.of((request.thread, request.tools.digest, request.system.digest, params))
            places = tuple([self._places.of((one.layer, one.node, one.index)) for one in sent.breakpoints])
            plan.sent.append(PlannedRequest(request, sent.breakpoints, content, places, shape, route))
            plan.starts.append(call.start)
            plan.first_tokens.append(call.first_token_s or 0.0)
            plan.outputs.append(call.output if call.output_tokens is None else call.output_tokens)


def are_plain(conversations: Sequence[Conversation]) -> bool:
    """Whether blocks of one digest are of one length, so that it does not matter who sends which of them first."""
    known: dict[bytes, Block] = {}
    for conversation in conversations:
        for block in _blocks(conversation):
            first = known.setdefault(block.digest, block)
            if (first.tokens, first.size, first.counts) != (block.tokens, block.size, block.counts):
                return False
    return True


def _blocks(conversation: Conversation) -> Iterator[Block]:
    for event in conversation.events:
        if isinstance(event, Human | Reply | Results):
            yield from event.blocks
        elif isinstance(event, ThreadRewrite):
            for message in event.messages:
                yield from message.blocks
        elif isinstance(event, Inquiry):
            yield from (event.question, event.answer)


PromptSetup = tuple[str, date | None, Assumptions, frozenset[str], OwnRules, str]
"""What prompts depend on besides requests: host, day, assumptions and those that the user set, own rules, counter."""


class ModelPrompts:
    """The prompts for one model on one host in one workspace."""

    def __init__(self, rules: ModelRules, renderer: Renderer, workspace: str) -> None:
        self.rules = rules
        self.counter = renderer.counter
        self._renderer = renderer
        self._workspace = workspace
        self._bare: dict[int, tuple[int, dict[int, Prefix]]] = {}
        """By content, the length of a prompt in tokens, and the prefixes that breakpoints may end, by the numbers of
        their places: one place is another prefix under another head, and where another human message leaves less
        thinking."""
        self._prefixes: dict[tuple[Prefix, Thread | None], dict[int, Prefix]] = {}

    def prompt(self, sent: PlannedRequest) -> tuple[int, list[Prefix]]:
        """The length in tokens, and the prefixes that breakpoints end. Raises CannotEvaluate."""
        bare = self._bare.get(sent.content)
        if bare is not None:
            try:
                return bare[0], [bare[1][place] for place in sent.places]
            except KeyError:
                pass
        made = self._renderer.render(sent.request, sent.breakpoints, self.rules, self._workspace)
        prefixes = self._prefixes.setdefault((made.head, sent.request.thread.human), {})
        self._bare[sent.content] = made.total_tokens, prefixes
        found = [breakpoint.prefix for breakpoint in made.breakpoints]
        prefixes.update(zip(sent.places, found, strict=True))
        return made.total_tokens, found


class PromptStore:
    """All prompts on one ground, in one tree a tokenizer generation."""

    def __init__(self, terms: ReplaySetup, book: RuleBook) -> None:
        self.setup = prompt_setup(terms, book)
        self._book = book
        self._terms = terms
        self._renderers: dict[str, Renderer] = {}
        self._sides: dict[tuple[str, str, str], ModelPrompts] = {}

    def side(self, host: str | None, model: str, workspace: str) -> ModelPrompts:
        """The prompts for a model in a workspace. Raises CannotEvaluate for one that is not known, Unusual."""
        key = (host_of(host, self._terms.host, model), model, workspace)
        if key not in self._sides:
            rules = self._book.rules(key[0], model)
            if not rules.uses_breakpoints:
                raise NotShared
            self._sides[key] = ModelPrompts(rules, self._renderer(rules.generation), workspace)
        return self._sides[key]

    def _renderer(self, generation: str) -> Renderer:
        if generation not in self._renderers:
            self._renderers[generation] = Renderer(self._terms.counter(generation))
        return self._renderers[generation]


def prompt_setup(terms: ReplaySetup, book: RuleBook) -> PromptSetup:
    assumptions = book.assumptions
    return terms.host, book.as_of, assumptions, assumptions.given, book.own, terms.tokens
