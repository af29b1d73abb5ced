"""From the tokens that match to the read that usage reports.

The cached tokens of prompts that extend each other: when they were last sent, and when they can be read.

What a prompt shares with earlier ones, and which of its blocks are the answer to one of them.

Prefixes by when they were last sent: finds the longest live one and evicts the least recently used first.

The range of reads that a host's rules state for a call, in tokens.

Automatic caches of every prefix, in fixed-size blocks of tokens (OpenAI before GPT-5.6, xAI, Mistral, vLLM …).

What a call may read where each machine of a host has a cache of its own: a range, by the shares of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import takewhile
from math import ceil, inf
from typing import NamedTuple

from cachecost.caches.breakpoints import Outcome, State
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules

Moment = tuple[float, float]
"""When tokens can be read (seconds), and the start of the call that sent them: never at that start itself (rule 11)."""
FROM_BEST: tuple[State, ...] = ("live", "unreadable", "expired", "absent")
READ_BEFORE: Moment = (float("-inf"), float("-inf"))


@dataclass(slots=True)
class ChainStep:
    """Tokens up to `end` that were last sent by the same call, the `call`-th. `touched` is when the call that wrote or
    refreshed them started (seconds)."""

    end: int
    call: int
    touched: float
    ready: Moment

    def state(self, now: float, life_s: float) -> State:
        """Expired once no call sent them for `life_s`; before that readable from the earliest sender's first token."""
        if now - self.touched >= life_s:
            return "expired"
        return "unreadable" if now < self.ready[0] or now <= self.ready[1] else "live"


class Chain:
    """Prefixes that each extend the one before, from `start` tokens on, where they diverge from `parent`.

    `steps` are their cached tokens, the deepest first. A call that sends a prefix sends everything before it, so less
    deep tokens were sent later, can be read earlier and, if reads refresh, expire later: the whole state is a short
    staircase.
    """

    __slots__ = ("fork", "last", "number", "parent", "queued", "start", "steps")

    def __init__(self, number: int, parent: Chain | None, start: int, last: Prefix) -> None:
        self.number = number
        self.parent = parent
        self.start = start
        self.last = last
        self.fork = 0
        """The number of tokens after which the last chain diverges from this one; 0: none does."""
        self.queued = False
        self.steps: list[ChainStep] = []

    @property
    def cached_end(self) -> int:
        """The number of tokens up to the last cached one."""
        return self.steps[0].end if self.steps else self.start

    def state(self, tokens: int, now: float, life_s: float) -> State:
        """The state of the first `tokens` of the prompt."""
        worst = FROM_BEST[0]
        for step in reversed(self.steps):
            worst = max(worst, step.state(now, life_s), key=FROM_BEST.index)
            if step.end >= tokens:
                return worst
        return "absent"

    def send(
        self,
        upto: int,
        call: int,
        now: float,
        ready: Moment,
        life_s: float,
        refreshes: bool = True,
        is_reached: bool = True,
    ) -> int:
        """Record a call that sends the tokens up to `upto`. Returns how far they could be read; `start`: not at all.

        Live tokens are refreshed, if reads do that. Tokens that cannot be read yet become readable when they would
        have, or with this call if that is earlier. What expired, and all after it, is written again; without
        `is_reached` everything is.
        """
        live = self.start
        pieces: list[ChainStep] = []
        while self.steps:
            step = self.steps[-1]
            state, end = step.state(now, life_s), min(step.end, upto)
            is_reached = is_reached and state == "live"
            if is_reached:
                live = end
                _extend(pieces, ChainStep(end, call, now if refreshes else step.touched, READ_BEFORE))
            elif state == "unreadable" and step.ready < ready:
                pieces.append(ChainStep(end, call, now, step.ready))
            else:
                _extend(pieces, ChainStep(end, call, now, ready))
            if step.end > upto:
                break
            self.steps.pop()
        _extend(pieces, ChainStep(upto, call, now, ready))
        self.steps += reversed(pieces)
        return live

    def split(self, number: int, at: Prefix) -> Chain:
        """End this chain at `at`. Returns the rest as a chain that diverges from it there."""
        tail = Chain(number, self, at.tokens, self.last)
        tail.steps = [step for step in self.steps if step.end > at.tokens]
        self.steps = self.steps[len(tail.steps) :]
        self.last = at
        if tail.steps and self.cached_end < at.tokens:
            self.steps.insert(0, replace(tail.steps[-1], end=at.tokens))
        return tail

    def drop(self, most: int) -> int:
        """Evict up to `most` tokens of the deepest step, its last ones first. Returns how many."""
        step = self.steps[0]
        begin = self.steps[1].end if len(self.steps) > 1 else self.start
        dropped = min(most, step.end - begin)
        step.end -= dropped
        if step.end == begin:
            del self.steps[0]
        return dropped


def _extend(pieces: list[ChainStep], step: ChainStep) -> None:
    """Add a step after `pieces`; the last of them goes on where nothing else differs."""
    last = pieces[-1] if pieces else None
    if last and last.end >= step.end:
        return
    if last and (last.touched, last.ready) == (step.touched, step.ready):
        last.end = step.end
    else:
        pieces.append(step)


LACKING_TOKENS = 32
"""How much shorter than billed an answer may come back: half of the 64 tokens that OpenAI bills reasoning in."""
SURPLUS_TOKENS = 8
"""How much longer than billed it may come back: blocks are counted by an estimate."""
CALL_TOKENS = 32
"""The same of a call of a tool, which no client writes by itself: its wrapping is estimated as well."""
SHARE = 0.05
"""Each as a share of the billed length, where that is more."""


class PriorPrompt(NamedTuple):
    """`shared`: the longest prefix that an earlier prompt also had. `answer`: the prefix that ends with the answer to
    that prompt, if `shared` is all of it and its answer follows here for the first time. `is_billed`: the length of
    that answer is known."""

    shared: Prefix | None
    answer: Prefix | None
    is_billed: bool = False


NO_PRIOR_PROMPT = PriorPrompt(None, None)


class PromptHistory:
    """All prompts so far. Each call has one answer; calls with the same prompt have one answer each."""

    def __init__(self) -> None:
        self._seen: set[Prefix] = set()
        self._awaited: dict[Prefix, list[int | None]] = {}

    def add_call(self, end: Prefix) -> PriorPrompt:
        """Record a call whose prompt ends at `end`. Takes time for the blocks that are new in it."""
        new: list[Prefix] = []
        node: Prefix | None = end
        while node is not None and node not in self._seen:
            new.append(node)
            node = node.parent
        answer, is_billed = self._answer(node, new[::-1]) if node is not None else (None, False)
        self._seen.update(new)
        self._awaited.setdefault(end, []).append(None)
        return PriorPrompt(node, answer, is_billed)

    def note_answer(self, end: Prefix, tokens: int) -> None:
        """The answer to the latest call whose prompt ends at `end` has so many tokens, thinking included."""
        awaited = self._awaited.get(end)
        if awaited:
            awaited[-1] = tokens

    def _answer(self, prompt: Prefix, after: list[Prefix]) -> tuple[Prefix | None, bool]:
        """The prefix that ends with an answer to `prompt`, and whether a bill says how long that is."""
        run = list(takewhile(_is_assistants, after))
        awaited = self._awaited.get(prompt)
        if not run or not awaited:
            return None, False
        for place, tokens in enumerate(awaited):
            found = run[-1] if tokens is None else _as_long(prompt, run, tokens)
            if found is not None:
                del awaited[place]
                return found, tokens is not None
        return None, False


def _as_long(prompt: Prefix, run: list[Prefix], tokens: int) -> Prefix | None:
    """The end of the blocks after `prompt` that are as long as an answer of `tokens`; None where none are."""
    fitting = [node for node in run if node.tokens - prompt.tokens <= tokens + _surplus(node, tokens)]
    lacking = tokens - (fitting[-1].tokens - prompt.tokens) if fitting else tokens
    return fitting[-1] if fitting and lacking <= max(LACKING_TOKENS, SHARE * tokens) else None


def _surplus(node: Prefix, tokens: int) -> float:
    is_call = node.block is not None and node.block.kind == "tool_use"
    return max(CALL_TOKENS if is_call else SURPLUS_TOKENS, SHARE * tokens)


def _is_assistants(node: Prefix) -> bool:
    return node.layer is Layer.MESSAGES and node.block is not None and node.block.role == "assistant"


def reported_read(matched: int, total: int, rules: ModelRules) -> int:
    """The tokens that usage reports as read, of a prompt of `total` tokens whose first `matched` are cached.

    They end at a block, reach the minimum, exclude what is recomputed, and are reported in whole steps.
    """
    hit = round_down_to_block(matched, rules)
    if hit < rules.minimum_tokens:
        return 0
    hit = min(hit, round_down_to_block(total - rules.recomputed_tokens, rules))
    return hit - hit % rules.reported_step_tokens


def round_down_to_block(tokens: int, rules: ModelRules) -> int:
    """The last end of a fixed-size block at or before `tokens`; blocks start at the provider's own hidden text."""
    from_its_start = tokens + rules.grid_offset_tokens
    return max(0, from_its_start - from_its_start % rules.step_tokens - rules.grid_offset_tokens)


def shared_with(end: Prefix, tail: int, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The tokens that a longer prompt shares with one that ended at `end`: all but those that opened its answer.

    A bill of the earlier prompt counts all of them, our own count the `tail` of them that it puts after `end`.
    """
    tokens = sizes.of(end)
    return tokens + tail - rules.opener_tokens if sizes.doubt(tokens) == 0 else tokens


def tail_of(prompt: Prompt) -> int:
    """The tokens that are counted after the last block of a prompt."""
    return prompt.total_tokens - prompt.end.tokens


def build_outcome(prompt: Prompt, sizes: PrefixSizes, matched: int, hit: Prefix | None, rules: ModelRules) -> Outcome:
    """The outcome where `matched` tokens are cached, up to `hit`. Writes are free, and breakpoints have no effect."""
    total = sizes.total(prompt)
    read = reported_read(matched, total, rules)
    return Outcome(read, 0, 0, total - read, hit if read else None, ())


def round_read(outcome: Outcome, rules: ModelRules) -> Outcome:
    """A breakpoint outcome with its read rounded down to a block: the rest of the hit is uncached, not written."""
    read = round_down_to_block(outcome.read, rules)
    hit = outcome.hit if read else None
    return replace(outcome, read=read, uncached=outcome.uncached + outcome.read - read, hit=hit)


def ttl_s_of(rules: ModelRules) -> float:
    """The host's only or short TTL in seconds; infinite where the rules state none."""
    return rules.ttl_s.get("5m", inf)


MOST_MOVED = 32
"""A side call of at most so many blocks is moved aside when the conversation continues."""
Oldest = tuple[int, int, int]
"""The call that last sent a chain's deepest tokens, where the chain starts (the deepest first), its number."""


class Recency:
    """All prefixes that calls of one model sent, token by token. Calls come in the order they start.

    A call takes time for the blocks that are new in it and for the forks on its way, not for its length. Prompts
    share whole blocks only, and nothing of a message that was extended. Tokens are as counted.
    """

    def __init__(self) -> None:
        self.tokens = 0
        """Cached tokens, including those that expired and were not evicted."""
        self._calls = 0
        self._chains: list[Chain] = []
        self._of: dict[Prefix, Chain] = {}
        self._oldest: list[Oldest] = []

    def send(
        self,
        end: Prefix,
        now: float,
        readable_at: float,
        life_s: float,
        capacity: int | None = None,
        refreshes: bool = True,
    ) -> int:
        """Record a call whose prompt ends at `end`. Returns how many of its tokens it reads. Times are seconds.

        `capacity` is a limit in tokens: the least recently sent are evicted first, the last tokens of a call before
        its first ones. Without `refreshes`, what a call reads expires as if it had not.
        """
        self._calls += 1
        found = 0
        way = [(chain, upto) for chain, upto in _way(self._chain(end), end.tokens) if upto > chain.start]
        for chain, upto in reversed(way):
            before, is_reached = chain.cached_end, found == chain.start
            live = chain.send(upto, self._calls, now, (readable_at, now), life_s, refreshes, is_reached)
            self.tokens += chain.cached_end - before
            found = live if is_reached else found
            self._queue(chain)
        if capacity is not None:
            self._shrink(capacity)
        return found

    def state(self, prefix: Prefix, now: float, life_s: float) -> State:
        """The state of the tokens of `prefix`."""
        chain = self._of.get(prefix)
        way = _way(chain, prefix.tokens) if chain else ()
        states = [one.state(upto, now, life_s) for one, upto in way if upto > one.start]
        return max(states, key=FROM_BEST.index, default="absent")

    def _chain(self, end: Prefix) -> Chain:
        """The chain of `end`. New blocks extend a chain that ends where they start, or start a new one."""
        new: list[Prefix] = []
        node: Prefix | None = end
        while node is not None and node not in self._of:
            new.append(node)
            node = node.parent
        chain = self._of[node] if node is not None else None
        if not new and chain is not None:
            return chain
        if node is None or chain is None or not self._makes_way(chain, node):
            chain = self._start_chain(chain, node, end)
        chain.last = end
        self._of.update(dict.fromkeys(new, chain))
        return chain

    def _start_chain(self, parent: Chain | None, node: Prefix | None, end: Prefix) -> Chain:
        """A new chain that leaves `parent` at `node`."""
        chain = Chain(len(self._chains), parent, node.tokens if node else 0, end)
        self._chains.append(chain)
        if parent and node:
            parent.fork = max(parent.fork, node.tokens)
        return chain

    def _makes_way(self, chain: Chain, node: Prefix) -> bool:
        """Whether the chain can be extended at `node`: it ends there, or its rest is short and has no forks.

        Side calls mostly come before the conversation continues. Without this, each would start a new chain for
        everything after it, and a call would take time for every side call before it.
        """
        if chain.last is node:
            return True
        if chain.fork > node.tokens or chain.last.depth - node.depth > MOST_MOVED:
            return False
        self._split(chain, node)
        return True

    def _split(self, chain: Chain, node: Prefix) -> None:
        """Split off what comes after `node` as a separate chain."""
        last = chain.last
        tail = chain.split(len(self._chains), node)
        self._chains.append(tail)
        while last is not node and last.parent is not None:
            self._of[last] = tail
            last = last.parent
        chain.fork = max(chain.fork, node.tokens)
        self._queue(tail)

    def _queue(self, chain: Chain) -> None:
        """Queue a chain with cached tokens for eviction. Its place may be too early, never too late."""
        if chain.steps and not chain.queued:
            chain.queued = True
            heappush(self._oldest, (chain.steps[0].call, -chain.start, chain.number))

    def _shrink(self, capacity: int) -> None:
        while self.tokens > capacity:
            call, _, number = heappop(self._oldest)
            chain = self._chains[number]
            chain.queued = False
            if chain.steps and chain.steps[0].call == call:
                self.tokens -= chain.drop(self.tokens - capacity)
            self._queue(chain)


def _way(chain: Chain, tokens: int) -> Iterator[tuple[Chain, int]]:
    """The chains from the last one back to the root, each with the number of prompt tokens at its end."""
    yield chain, tokens
    while chain.parent is not None:
        yield chain.parent, chain.start
        chain = chain.parent


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """From `least` to `most` tokens, in a share `coverage` of such calls (1: in all of them)."""

    least: int
    most: int
    coverage: float

    def hold(self, read: int, slack: float) -> bool:
        """Whether a billed read lies within, give or take `slack` tokens for estimated lengths."""
        return self.least - slack <= read <= self.most + slack


def least_read(rules: ModelRules, read: int) -> int | None:
    """The tokens that a call reads at least, of `read` that it can; None where the host's hits are certain."""
    return None if rules.read_range is None else ceil(rules.read_range.least * read)


def with_shared_prefix(outcome: Outcome, rules: ModelRules) -> Outcome:
    """An outcome of a billed prompt, which begins with the provider's own text: that is read at least."""
    more = min(rules.shared_prefix_tokens, outcome.read + outcome.uncached) - outcome.read
    return replace(outcome, read=outcome.read + more, uncached=outcome.uncached - more) if more > 0 else outcome


def read_bounds(rules: ModelRules, predicted: int, reach: int, total: int) -> ReadBounds | None:
    """The bounds of a call's read; None where the host's hits are certain.

    `predicted` tokens are the most that the rules let it read; earlier calls sent or got the first `reach` of its
    `total` tokens, so that more of an answer may be read than is predicted.
    """
    stated = rules.read_range
    if stated is None:
        return None
    possible = max(predicted, reported_read(min(reach, total), total, rules))
    floor = min(rules.shared_prefix_tokens, possible)
    return ReadBounds(max(floor, ceil(stated.least * possible)), possible, stated.coverage)


Engine = tuple[str, str]
"""Host and model: each has its own capacity."""


class FixedBlockCache:
    """Everything that calls sent, by host and model.

    Where the rules state `keeps_answers` (vLLM, SGLang), an answer is read the first time it is sent back. It counts
    towards the capacity from then on. Where they state `keeps_unreasoned_answers` (OpenAI), only one whose length is
    billed. A prompt that goes on from an earlier one shares all of that but what opened its answer.
    """

    def __init__(self) -> None:
        self._histories: dict[Engine, PromptHistory] = {}
        self._sent: dict[Engine, Recency] = {}
        self._tails: dict[Prefix, int] = {}
        """What is counted after the last block of each prompt."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start."""
        sent = self._of(rules)
        known = self._history(rules).add_call(prompt.end) if _uses_history(rules) else NO_PRIOR_PROMPT
        matched = sent.send(
            prompt.end, start, start + first_token_s, ttl_s_of(rules), rules.capacity_tokens, rules.refreshes_on_read
        )
        if not matched:
            self._tails[prompt.end] = tail_of(prompt)
            return build_outcome(prompt, sizes, 0, None, rules)
        is_shared = known.shared is not None and matched == known.shared.tokens
        keeps = rules.keeps_answers or (rules.keeps_unreasoned_answers and known.is_billed)
        if is_shared and known.answer and keeps:
            matched, is_shared = known.answer.tokens, False
        hit = _at(prompt.end, matched)
        tail, self._tails[prompt.end] = self._tails.get(hit), tail_of(prompt)
        if is_shared and tail is not None and hit is not prompt.end:
            return build_outcome(prompt, sizes, shared_with(hit, tail, sizes, rules), hit, rules)
        return build_outcome(prompt, sizes, _size(hit, matched, sizes), hit, rules)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens."""
        if _uses_history(rules) and not rules.keeps_reasoning:  # with it, what comes back is shorter than its bill
            self._history(rules).note_answer(prompt.end, tokens)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state of `prefix` at `now`. There is one TTL; `ttl` is ignored."""
        return self._of(rules).state(prefix, now, ttl_s_of(rules))

    def _history(self, rules: ModelRules) -> PromptHistory:
        return self._histories.setdefault((rules.host, rules.model), PromptHistory())

    def _of(self, rules: ModelRules) -> Recency:
        return self._sent.setdefault((rules.host, rules.model), Recency())


def _uses_history(rules: ModelRules) -> bool:
    ends_anywhere = rules.matching == "grid" and rules.step_tokens == 1
    return rules.keeps_answers or rules.keeps_unreasoned_answers or rules.opener_tokens > 0 or ends_anywhere


def _at(end: Prefix, tokens: int) -> Prefix:
    """The longest prefix of `end` with at most `tokens`. Takes time for the blocks after it."""
    node = end
    while node.tokens > tokens and node.parent is not None:
        node = node.parent
    return node


def _size(hit: Prefix, matched: int, sizes: PrefixSizes) -> int:
    """The length of the `matched` tokens according to `sizes`: of a prefix, or up to a place inside a block."""
    return sizes.of(hit) if hit.tokens == matched else sizes.at(matched)


class BestEffortCache(FixedBlockCache):
    """A cache that promises nothing and does not say how it matches (Gemini implicit, Qwen implicit …): the most it
    could read.

    Every earlier prefix is found, in steps of the rules (1 token where they state none), for as long as they state
    (without end where they state nothing). The least is no read, so a result is a range and never one number.
    """


COVERED = 0.9
"""The share of calls whose read the range is to hold."""
PLACES = ("latest", "previous", "older")


class _Sender(NamedTuple):
    """A call, in tokens: what is counted after its prompt's last block, its answer, and what it read (0: nothing); of
    the calls on the way to it, the longest read that was shorter, and the shortest."""

    tail: int
    answer: int
    read: int
    shorter: int
    least: int

    def read_before(self, most: int) -> int:
        """The longest read on its way that is shorter than `most`, or `most` where none is."""
        return next((read for read in (self.read, self.shorter) if 0 < read < most), most)


class MachineRanges:
    """The prompts of a replay so far: for each prefix, a call that sent it, the latest where prompts end or part."""

    def __init__(self) -> None:
        self._senders: dict[Prefix, _Sender] = {}

    def add(self, prompt: Prompt, read: int, answer: int = 0) -> None:
        """Record the prompt of a call that read so many tokens and was answered with so many (0: not known).

        Takes time for the blocks that are new in it.
        """
        new: list[Prefix] = []
        node: Prefix | None = prompt.end
        while node is not None and node not in self._senders:
            new.append(node)
            node = node.parent
        before = self._senders[node] if node else _Sender(0, 0, 0, 0, 0)
        shorter = before.read if before.read < read else before.shorter
        least = min(filter(None, (before.least, read)), default=0)
        sender = _Sender(0, 0, read, shorter, least)
        self._senders.update(dict.fromkeys(new, sender))
        if node is not None and read:
            self._senders[node] = before._replace(read=read, shorter=shorter, least=least)
        self._senders[prompt.end] = sender._replace(tail=tail_of(prompt), answer=answer)

    def range_of(
        self, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules, most: int, reach: int = 0
    ) -> ReadBounds | None:
        """The range of a call that reads `most` tokens on the machine that has the latest prompt it goes on from.

        None where it reads nothing anywhere, or its rules know no other machine. Earlier calls sent the first `reach`
        tokens: a range that holds for every call goes up to there.
        """
        if not most or not rules.varies_by_machine:
            return None
        node: Prefix | None = prompt.end
        while node is not None and node not in self._senders:
            node = node.parent
        latest = self._senders[node] if node else None
        place = _worst_place(rules.machine_shares if latest and latest.read else rules.first_shares)
        if node is None or latest is None or place == "none":
            return ReadBounds(0, max(most, reach - reach % rules.reported_step_tokens), 1.0)
        least = {"latest": most, "previous": latest.read_before(most), "older": latest.least}[place]
        return ReadBounds(min(least, most), max(most, _with_answer(node, latest, prompt, sizes, rules)), COVERED)


def _with_answer(node: Prefix, sender: _Sender, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The most that a call reads of a prompt that ended at `node` and of its answer, where answers are kept.

    What a client wrote in the place of an answer may begin with the same words.
    """
    if not rules.keeps_answers or not sender.answer or node is prompt.end:
        return 0
    shared = shared_with(node, sender.tail, sizes, rules) + rules.opener_tokens + sender.answer
    return reported_read(shared, sizes.total(prompt), rules)


def _worst_place(shares: Mapping[str, float]) -> str:
    """The last of the places that the range takes in."""
    covered = 0.0
    for place in PLACES:
        covered += shares.get(place, 0.0)
        if covered >= COVERED:
            return place
    return "none"
