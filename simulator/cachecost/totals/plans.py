"""What agents send, each once: whatever model they are told, and whatever lifetime their placement gives its marks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, cast

from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results, Rewrite
from cachecost.facts import thing
from cachecost.prompts.blocks import Block, Thread
from cachecost.prompts.refusals import SentMarks, marks_sent
from cachecost.prompts.request import TTL, Request
from cachecost.strategies.agent import Agent
from cachecost.strategies.plan import PlannedCall
from cachecost.terms import in_time
from cachecost.totals.lookback import Numbers, Tree

UNSAID = cast("TTL", "as the placement says")
"""The lifetime of marks that name none."""
SOME_MODEL = "as the agent is told"
"""The model of requests that name no other."""


class Unusual(Exception):
    """Nothing that can be shared: it goes the plain way, call by call."""


class Sent(NamedTuple):
    """A planned call; `marks` are those the API sees. All else are numbers: what calls, plans and models share.

    `content` is of all but marks, `places` of where these stand; `shape` and `way` are of the plan's lists.
    """

    call: PlannedCall
    request: Request
    marks: SentMarks
    content: int
    places: Numbers
    shape: int
    way: int


class Way(NamedTuple):
    """Where a call goes, and what its prices depend on besides its length; `params` are numbered.

    No host is that of the comparison; the model may be SOME_MODEL.
    """

    host: str | None
    model: str
    workspace: str
    params: int
    is_batch: bool


class Shape(NamedTuple):
    """A request as an example for all that are refused, or not, for the same reasons (rule 6), length apart."""

    request: Request
    marks: SentMarks

    def lasting(self, ttl: TTL) -> tuple[Request, SentMarks]:
        """The request where marks that name no lifetime last for `ttl`."""
        automatic = ttl if self.request.automatic is UNSAID else self.request.automatic
        marks = tuple(replace(mark, ttl=ttl) if mark.ttl is UNSAID else mark for mark in self.marks.marks)
        return replace(self.request, automatic=automatic), SentMarks(marks, self.marks.fault)


@thing
class Plan:
    """The calls of an agent in the order they start. `window` is what its questions are cut to, in tokens.

    `looked` is what its calls may find, for every way that their prompts stood to each other so far.
    """

    agent: Agent
    window: int | None
    sent: list[Sent]
    shapes: list[Shape]
    ways: list[Way]
    looked: list[tuple[Tree, list[Numbers]]] = field(default_factory=list)

    def candidates(self, tree: Tree) -> list[Numbers]:
        """Of each call the entries that it may find: the same on models whose prompts stand alike."""
        for known, found in self.looked:
            if known == tree:
                return found
        self.looked.append((tree, tree.candidates()))
        return self.looked[-1][1]


class Numbering(dict[tuple[Any, ...], int]):
    """Numbers from 0, in the order things are met."""

    def of(self, thing: tuple[Any, ...]) -> int:
        return self.setdefault(thing, len(self))


class Plans:
    """The plans of some conversations. Threads of agents that cannot see each other's grow in one tree."""

    def __init__(self, talks: Sequence[Conversation]) -> None:
        self._talks = talks
        self._root = Thread()
        self._known: list[Plan] = []
        self._are_plain = are_plain(talks)
        self._params, self._contents, self._places = Numbering(), Numbering(), Numbering()

    def of(self, agent: Agent) -> Plan:
        """What `agent` sends. Raises Unusual, CannotEvaluate."""
        if agent.changes or not self._are_plain:
            raise Unusual
        bare, window = bare_of(agent), agent.window()
        for known in self._known:
            if known.window == window and known.agent == bare:
                return known
        root = Thread() if sees_forks(agent) else self._root
        calls = in_time(replace(bare, facts=agent.facts), self._talks, root)
        shapes: dict[Hashable, tuple[int, Shape]] = {}
        ways = Numbering()
        sent = list(self._sent(calls, shapes, ways))
        plan = Plan(bare, window, sent, [shape for _, shape in shapes.values()], [Way(*way) for way in ways])
        self._known.append(plan)
        return plan

    def _sent(
        self, calls: Iterator[PlannedCall], shapes: dict[Hashable, tuple[int, Shape]], ways: Numbering
    ) -> Iterator[Sent]:
        last: Mapping[str, Any] | None = None
        params = 0
        content_of, place_of, way_of = self._contents.of, self._places.of, ways.of
        for call in calls:
            request = call.request
            if request.params is not last:
                last, params = request.params, self._params.of((repr(request.params),))
            marks = marks_sent(request)
            if _is_unusual(request, marks):
                raise Unusual
            key = (params, tuple([mark.ttl for mark in marks.marks]), request.automatic, marks.fault is None)
            shape = shapes.get(key)
            if shape is None:
                shape = shapes[key] = (len(shapes), Shape(request, marks))
            content = content_of((request.thread, request.tools.digest, request.system.digest, params))
            places = tuple([place_of((mark.layer, mark.node, mark.index)) for mark in marks.marks])
            way = way_of((call.host, request.model, call.workspace, params, call.is_batch))
            yield Sent(call, request, marks, content, places, shape[0], way)


def _is_unusual(request: Request, marks: SentMarks) -> bool:
    """Whether what is sent is not what is rendered, or lifetimes must be known to tell what is marked."""
    is_edited = request.thread.compaction is not None or "context_management" in request.params
    return is_edited or request.fault is not None or bool(marks.fault and _is_unsaid(request))


def _is_unsaid(request: Request) -> bool:
    """Whether the lifetimes of marks on one block may turn out to be equal, or not."""
    return request.automatic is UNSAID or any(mark.ttl is UNSAID for mark in request.marks)


def bare_of(agent: Agent) -> Agent:
    """What decides where marks stand: not whose they are, who says so, on which model, nor how long most last."""
    model = None if agent.model is None else SOME_MODEL
    placement = replace(agent.placement, ttl=UNSAID)
    return replace(agent, name="", what="", source="", date="", rules={}, facts=None, model=model, placement=placement)


def sees_forks(agent: Agent) -> bool:
    """Whether marks depend on how else threads of the plan's tree went on."""
    marks = agent.asking.marks if agent.asking and isinstance(agent.asking.marks, tuple) else ()
    return any(primitive.sees_forks for primitive in (*agent.placement.primitives, *marks))


def are_plain(talks: Sequence[Conversation]) -> bool:
    """Whether blocks of one digest are of one length, so that it does not matter who sends which of them first."""
    known: dict[bytes, Block] = {}
    for talk in talks:
        for block in _blocks(talk):
            first = known.setdefault(block.digest, block)
            if (first.tokens, first.size, first.counts) != (block.tokens, block.size, block.counts):
                return False
    return True


def _blocks(talk: Conversation) -> Iterator[Block]:
    for event in talk.events:
        if isinstance(event, Human | Reply | Results):
            yield from event.blocks
        elif isinstance(event, Rewrite):
            for message in event.messages:
                yield from message.blocks
        elif isinstance(event, Inquiry):
            yield from (event.question, event.answer)
