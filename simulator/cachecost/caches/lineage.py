"""Which earlier calls a call is compared with, and how much of its prompt was sent before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from cachecost.base.structs import identity_struct, replace, value
from cachecost.caches.alignment import are_versions
from cachecost.prompts.blocks import Layer, Prefix, Thread
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

MOST_RECENT = 16
"""Conversations of a file that a new one is compared with."""
OVERLAP = 0.5
"""The share of the messages after the first one that two threads must have in common to be one conversation."""


class ConversationLine(msgspec.Struct, eq=False):
    """A conversation, whatever its models and workspaces. `latest` is its latest call."""

    latest: EarlierCall | None = None
    _digests: tuple[Thread, frozenset[bytes]] | None = None

    def digests_of(self, thread: Thread) -> frozenset[bytes]:
        """The messages of its latest thread but the first one, gathered once for all that are compared with it."""
        if self._digests is None or self._digests[0] is not thread:
            self._digests = thread, frozenset(_later_digests(thread))
        return self._digests[1]


@value
class CallShape:
    """What calls are compared by, besides their messages. Calls that are equal in this share one object."""

    request: Request
    prompt: Prompt
    rules: ModelRules


@identity_struct
class EarlierCall:
    """An earlier call to compare with. `entry` is the deepest prefix that it had in the cache, for `ttl`.

    `number` is that of the call, `pool` where its entries are, `end` the end of its prompt.
    """

    number: int
    start: float
    shape: CallShape
    thread: Thread
    end: Prefix
    entry: Prefix | None
    ttl: str
    pool: str
    line: ConversationLine

    @property
    def rules(self) -> ModelRules:
        return self.shape.rules

    @property
    def request(self) -> Request:
        """The request as sent, without its breakpoints."""
        return replace(self.shape.request, thread=self.thread, breakpoints=())

    @property
    def prompt(self) -> Prompt:
        """The prompt, without its breakpoints."""
        return replace(self.shape.prompt, end=self.end, breakpoints=())


class Lineage:
    """All calls so far. A lookup takes time for what is new in a call, or since it diverged from its forerunner."""

    def __init__(self) -> None:
        self._sent: dict[Prefix, EarlierCall] = {}
        self._at_thread: dict[Thread, EarlierCall] = {}
        self._shapes: dict[tuple[object, ...], CallShape] = {}
        self._by_first: dict[Thread, ConversationLine] = {}
        self._begun: set[tuple[Thread, str]] = set()
        self._later: set[bytes] = set()
        self._by_file: dict[str, dict[ConversationLine, None]] = {}

    def find_shared(self, prompt: Prompt) -> Prefix:
        """The longest prefix of the prompt that was sent before, whether or not it was cached."""
        node = prompt.end
        while node not in self._sent and node.parent is not None:
            node = node.parent
        return node

    def forerunner(self, request: Request, model: str, pool: str, file: str) -> Relatives:
        """The earlier calls that a call may be compared with."""
        nearest = self._nearest(request.thread, model, pool)
        line = nearest.line if nearest else self._line_of(request.thread, file)
        return Relatives(self, nearest, line, pool, model, file)

    def sender(self, prefix: Prefix) -> EarlierCall | None:
        """The first call that sent a prefix."""
        return self._sent.get(prefix)

    def recent(self, file: str, apart_from: ConversationLine | None = None) -> Iterator[EarlierCall]:
        """The latest calls of the latest conversations of a file, latest first."""
        lines = (line for line in reversed(self._by_file.get(file, {})) if line is not apart_from)
        for line in islice(lines, MOST_RECENT):
            if line.latest is not None:
                yield line.latest

    def has_begun(self, thread: Thread, pool: str) -> bool:
        """Whether the conversation had a call in this place before."""
        return (thread.beginning, pool) in self._begun

    def remember(
        self,
        number: int,
        start: float,
        request: Request,
        prompt: Prompt,
        rules: ModelRules,
        deepest: BreakpointPrefix | None,
        relatives: Relatives,
    ) -> None:
        """Keep a call for those that come after it, and so little of it: any later one may continue it."""
        thread, pool, line = request.thread, relatives.pool, relatives.line or ConversationLine()
        shape = self._shape(request, prompt, rules)
        entry, ttl = (deepest.prefix, deepest.ttl) if deepest else (None, "5m")
        call = EarlierCall(number, start, shape, thread, prompt.end, entry, ttl, pool, line)
        self._keep_sent(call)
        self._later.update(_later_digests(thread, relatives.nearest.thread if relatives.nearest else None))
        self._at_thread[thread] = line.latest = call
        if relatives.nearest is None:
            self._by_first.setdefault(thread.beginning, line)
        if relatives.nearest is None or relatives.nearest.pool != pool:
            self._begun.add((thread.beginning, pool))
        lines = self._by_file.setdefault(relatives.file, {})
        lines.pop(line, None)
        lines[line] = None

    def _shape(self, request: Request, prompt: Prompt, rules: ModelRules) -> CallShape:
        """What `find_change` reads of an earlier call, but for its messages, is equal for all calls with this key."""
        same = request.params_id, id(request.tools), id(request.system), id(rules)
        key = (*same, prompt.cache_keys, prompt.head)
        shape = self._shapes.get(key)
        if shape is None:  # it holds all whose id is in the key, so that no other object gets that id
            shape = self._shapes[key] = CallShape(request, prompt, rules)
        return shape

    def _keep_sent(self, call: EarlierCall) -> None:
        node: Prefix | None = call.end
        while node is not None and node not in self._sent:
            self._sent[node] = call
            node = node.parent

    def _nearest(self, thread: Thread, model: str, pool: str) -> EarlierCall | None:
        """The latest call that the thread goes on from; the same messages only in the same place on the same model."""
        for node in thread.back():
            seen = self._at_thread.get(node)
            if seen and (node is not thread or (seen.pool == pool and seen.rules.model == model)):
                return seen
        return None

    def _line_of(self, thread: Thread, file: str) -> ConversationLine | None:
        """The conversation of a thread whose beginning no call sent: it begins alike, or its messages are known."""
        known = self._by_first.get(thread.beginning)
        if known is not None or thread.length < 2:
            return known
        shorter = (seen for seen in self.recent(file) if seen.thread.length < thread.length)
        found = self._most_alike(thread, file)
        return found or next((seen.line for seen in shorter if _begins_alike(thread, seen)), None)

    def _most_alike(self, thread: Thread, file: str) -> ConversationLine | None:
        """The recent conversation that has most messages in common with a thread, if those are enough."""
        digests, best, found = frozenset(_later_digests(thread)), 0.0, None
        if self._later.isdisjoint(digests):
            return None
        for seen in self.recent(file):
            share = _overlap(digests, seen.line.digests_of(seen.thread))
            if share >= OVERLAP and share > best:
                best, found = share, seen.line
        return found


def _begins_alike(thread: Thread, seen: EarlierCall) -> bool:
    """Whether a thread begins with another version of the first message of an earlier call."""
    one, other = thread.beginning.message, seen.thread.beginning.message
    if one is None or other is None:
        return False
    pairs = zip(other.blocks, one.blocks, strict=False)
    return len(one.blocks) == len(other.blocks) and all(are_versions(*pair, Layer.MESSAGES) for pair in pairs)


def _later_digests(thread: Thread, since: Thread | None = None) -> list[bytes]:
    """All messages of a thread but the first one, or those after `since`, latest first."""
    digests, node = [], thread
    while node is not since and node.length > 1:
        assert node.message is not None
        assert node.parent is not None
        digests.append(node.message.digest)
        node = node.parent
    return digests


def _overlap(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    """The share of the fewer messages that are in both."""
    return 0.0 if one.isdisjoint(other) else len(one & other) / max(1, min(len(one), len(other)))


@identity_struct
class Relatives:
    """The earlier calls to compare one call with.

    `nearest` is the latest call whose messages it sends again and goes on from, `line` its conversation.
    """

    lineage: Lineage
    nearest: EarlierCall | None
    line: ConversationLine | None
    pool: str
    model: str
    file: str

    @property
    def latest(self) -> EarlierCall | None:
        """The latest call of the conversation, which need not have been sent to the same place or model."""
        return self.line.latest if self.line else None

    def others(self) -> Iterator[EarlierCall]:
        """The latest calls of other conversations of the file, of the same place and model, latest first."""
        for call in self.lineage.recent(self.file, self.line):
            if call.pool == self.pool and call.rules.model == self.model:
                yield call
