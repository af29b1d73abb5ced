"""Automatic caches of every prefix, in fixed-size blocks of tokens (OpenAI before GPT-5.6, xAI, Mistral, vLLM …).

Prefixes by when they were last sent: the longest live one is found, and the least recently used goes first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from cachecost.base.structs import replace
from cachecost.caches.block_starts import BlockStarts, SharedTokens
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.expiry import BEFORE_TIME, State, has_expired, is_readable, ttl_s_of
from cachecost.caches.reporting import NO_PRIOR_PROMPT, PromptHistory, build_outcome, kept_answer, shared_with, tail_of
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules

Moment = tuple[float, float]
"""When tokens can be read (seconds), and the start of the call that sent them: never at that start itself (rule 11)."""
FROM_BEST: tuple[State, ...] = ("live", "unreadable", "expired", "absent")
READ_BEFORE: Moment = (BEFORE_TIME, BEFORE_TIME)


@dataclass(slots=True)
class ChainStep:
    """Tokens up to `end` that were last sent by the same call, the `call`-th. `touched` is when the call that wrote or
    refreshed them started (seconds)."""

    end: int
    call: int
    touched: float
    ready: Moment

    def state(self, now: float, ttl_s: float) -> State:
        """Expired once no call sent them for a TTL; before that readable from the earliest sender's first token."""
        if has_expired(now, self.touched, ttl_s):
            return "expired"
        return "live" if is_readable(now, self.ready[1], self.ready[0]) else "unreadable"


class Chain:
    """Prefixes that each extend the one before, from `start` tokens on, where they diverge from `parent`.

    `steps` are their cached tokens, the deepest first. A call that sends a prefix sends everything before it, so less
    deep tokens were sent later, can be read earlier and, if reads refresh, expire later: the whole state is a short
    staircase.
    """

    __slots__ = ("copies", "ends", "fork", "last", "number", "parent", "queued", "rests", "start", "steps")

    def __init__(self, number: int, parent: Chain | None, start: int, last: Prefix) -> None:
        self.number = number
        self.parent = parent
        self.start = start
        self.last = last
        self.fork = 0
        """The number of tokens after which the last chain diverges from this one; 0: none does."""
        self.queued = False
        self.steps: list[ChainStep] = []
        self.copies: dict[int, list[int]] = {}
        """Of blocks that are kept more than once, by their end: the calls that last used each, the oldest block first.
        A later call of `steps` used the oldest."""
        self.ends: list[int] = []
        """Where nodes end, of a tree that evicts whole nodes."""
        self.rests: dict[int, Chain] = {}
        """The latest chain to begin after so many tokens: a node that no boundary ends goes on in it."""

    @property
    def cached_end(self) -> int:
        """The number of tokens up to the last cached one."""
        return self.steps[0].end if self.steps else self.start

    def state(self, tokens: int, now: float, ttl_s: float) -> State:
        """The state of the first `tokens` of the prompt."""
        worst = FROM_BEST[0]
        for step in reversed(self.steps):
            worst = max(worst, step.state(now, ttl_s), key=FROM_BEST.index)
            if step.end >= tokens:
                return worst
        return "absent"

    def send(
        self,
        upto: int,
        call: int,
        now: float,
        ready: Moment,
        ttl_s: float,
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
            state, end = step.state(now, ttl_s), min(step.end, upto)
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

    def split(self, number: int, at: Prefix, start: int) -> Chain:
        """End this chain at `at`. Returns the rest as a chain that diverges from it after `start` tokens."""
        tail = Chain(number, self, start, self.last)
        tail.steps = [step for step in self.steps if step.end > start]
        self.steps = self.steps[len(tail.steps) :]
        self.last = at
        if tail.steps and self.cached_end < start:
            self.steps.insert(0, replace(tail.steps[-1], end=start))
        tail.rests = {at: chain for at, chain in self.rests.items() if at > start}
        self.rests = {at: chain for at, chain in self.rests.items() if at <= start}
        if tail.steps:
            self.rests[start] = tail
        tail.ends = [end for end in self.ends if end > start]
        self.ends = self.ends[: len(self.ends) - len(tail.ends)]
        tail.copies = {end: calls for end, calls in self.copies.items() if end > start}
        for end in tail.copies:
            del self.copies[end]
        return tail

    def last_use(self, end: int) -> int:
        """The call that last sent the cached token before `end`."""
        return next(step.call for step in reversed(self.steps) if step.end >= end)

    def add_copy(self, end: int, last: int, call: int) -> bool:
        """Keep the block that ends at `end` once more; the call `last` used it before. Returns whether it was one."""
        is_first = end not in self.copies
        calls = self.copies.setdefault(end, [last])
        calls[0] = last if last > max(calls) else calls[0]
        calls.append(call)
        return is_first

    def least_recent_copy(self, end: int) -> int:
        """The call that last used the least recent of the blocks that end at `end`."""
        calls = self.copies[end]
        last = self.last_use(end)
        calls[0] = last if last > max(calls) else calls[0]
        return min(calls)

    def drop_copy(self, end: int) -> bool:
        """Evict the least recent of the blocks that end at `end`. Returns whether more than one is left."""
        calls = self.copies[end]
        calls.remove(min(calls))
        if len(calls) == 1:
            del self.copies[end]
        return len(calls) > 1

    def end_node(self, at: int, call: int) -> None:
        """Note that a node ends at `at`. Where that is inside one, `call` used all of it."""
        place = bisect_left(self.ends, at)
        if self.start < at <= self.cached_end and self.ends[place : place + 1] != [at]:
            self.ends.insert(place, at)
            self._use_node(at, place + 1, call)

    def _use_node(self, begin: int, place: int, call: int) -> None:
        """Note that `call` used a node from `begin` to the `place`-th of `ends`, or to where the last node goes on."""
        is_last = place == len(self.ends) or self.ends[place] > self.cached_end
        end = self.cached_end if is_last else self.ends[place]
        steps, at = list[ChainStep](), self.start
        for step in reversed(self.steps):
            for cut in sorted({step.end, *(cut for cut in (begin, end) if at < cut < step.end)}):
                used = max(step.call, call) if begin <= at and cut <= end else step.call
                steps.append(replace(step, end=cut, call=used))
                at = cut
        self.steps = steps[::-1]
        if is_last and end in self.rests:
            self.rests[end]._use_node(end, 0, call)

    def drop(self, most: int, whole_nodes: bool = False) -> int:
        """Evict up to `most` tokens of the deepest step, its last ones first; or nodes, until so many are gone. Returns
        how many."""
        step = self.steps[0]
        begin = self.steps[1].end if len(self.steps) > 1 else self.start
        dropped = min(most, step.end - begin)
        if whole_nodes:
            place = bisect_right(self.ends, step.end - dropped)
            dropped = step.end - max(begin, self.ends[place - 1] if place else begin)
            del self.ends[place:]
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


MOST_MOVED = 32
"""A side call of at most so many blocks is moved aside when the conversation continues."""
LeastRecent = tuple[int, int, int]
"""The call that last sent a chain's deepest tokens, where they end (the deepest first, so negative), and the chain's
number; of a block that is kept more than once -1 minus that number."""


class Recency:
    """All prefixes that calls of one model sent, token by token. Calls come in the order they start.

    A call takes time for the blocks that are new in it and for the forks on its way, not for its length. Where two
    prompts part inside a block, they share what `shared` says both blocks begin with. Tokens are as counted.

    Only whole blocks of `step` tokens are kept and shared: what parts inside one has that block again. With
    `keeps_copies`, so has a call that reads all of its prompt, of which it computes the last token anew.

    With `evicts_nodes` they are a tree whose nodes end where prompts end or part, and are evicted whole; a call needs
    room for all that it computes, also where the tree has that already.
    """

    def __init__(self, step: int = 1, keeps_copies: bool = False, evicts_nodes: bool = False) -> None:
        self.tokens = 0
        """Cached tokens, including those that expired and were not evicted."""
        self.step = step
        self._keeps_copies = keeps_copies
        self._evicts_nodes = evicts_nodes
        self._open: tuple[Prefix, int, int] | None = None
        """What the latest call put into the tree, how much of it was there, and where it ends a node."""
        self._matched = self._inserted = 0
        self._calls = 0
        self._latest = (0.0, 0.0, 0.0, True)
        self._computed = 0
        self._chains: list[Chain] = []
        self._of: dict[Prefix, Chain] = {}
        self._starts = BlockStarts(self._of)
        self._queued: list[LeastRecent] = []

    def record_call(
        self,
        end: Prefix,
        now: float,
        readable_at: float,
        ttl_s: float,
        capacity: int | None = None,
        refreshes: bool = True,
        shared: SharedTokens | None = None,
        tail: int = 0,
    ) -> int:
        """Record a call whose prompt ends at `end`. Returns how many of its tokens it reads. Times are seconds.

        `capacity` is a limit in tokens: the least recently sent are evicted first, the last tokens of a call before
        its first ones. A call needs room for all of its prompt and the `tail` after it; the caller checks that it has
        (`lacks_room`). Without `refreshes`, what a call reads expires as if it had not. `shared` are the tokens that
        two blocks both begin with; without it prompts share whole blocks only.
        """
        self._end_nodes()
        self._open = None
        self._calls += 2
        self._latest = now, readable_at, ttl_s, refreshes
        before = self.tokens
        found = self._send(end, self.whole(end.tokens), shared, self.whole(end.tokens + tail - 1))
        self._computed = self.whole(max(end.tokens, end.tokens + tail - 1))
        if self._evicts_nodes:
            self._inserted = self.tokens - before
        if capacity is not None:
            self._evict(capacity, end.tokens + tail)
        return found

    def record_answer(self, end: Prefix, capacity: int | None = None, shared: SharedTokens | None = None) -> None:
        """Record the answer to the latest call, with which `end` ends: as its prompt is, as far as there is room."""
        tokens = end.tokens if capacity is None else min(end.tokens, capacity)
        before = self.tokens
        self._send(end, self.whole(tokens), shared, self._computed)
        if self._evicts_nodes:
            self._inserted += self.tokens - before
        if capacity is not None:
            self._evict(capacity, tokens)

    def _match_nodes(self, end: Prefix, chains: list[tuple[Chain, int]], most: int, computed: int) -> None:
        matched = 0
        for chain, upto in reversed(chains):
            matched = min(upto, chain.cached_end)
            if matched < upto:
                break
        if self._open is None:
            self._matched = min(matched, computed)
            self._end_node(end, self._matched)
        elif matched <= self._open[2]:
            matched = self._open[1]
        self._open = end, matched, most

    def _end_nodes(self) -> None:
        if self._open is not None:
            end, *places = self._open
            for tokens in places:
                self._end_node(end, tokens)

    def _end_node(self, end: Prefix, tokens: int) -> None:
        for chain, upto in _chains_to_root(self._of[end], end.tokens):
            if chain.start < tokens <= upto:
                chain.end_node(tokens, self._calls - 1)

    def _drop(self, chain: Chain, most: int) -> int:
        """Evict up to `most` of a chain's deepest tokens, or its deepest nodes until so many are gone."""
        dropped = chain.drop(most, self._evicts_nodes)
        start = chain.start
        while self._evicts_nodes and not chain.steps and chain.parent:
            chain = chain.parent
            if chain.start < start:  # where no other prefix parts from it any more, its node may begin before
                if not chain.steps or chain.cached_end != start or start in chain.ends:
                    break
                dropped, start = dropped + chain.drop(1, True), chain.start
        return dropped

    def whole(self, tokens: int) -> int:
        """The tokens of whole blocks among the first `tokens`."""
        return tokens - tokens % self.step

    def _send(self, end: Prefix, most: int, shared: SharedTokens | None, computed: int) -> int:
        """Record `most` tokens of the latest call, of which it computes those after `computed`; how many are cached."""
        now, readable_at, ttl_s, refreshes = self._latest
        way = ((chain, min(upto, most)) for chain, upto in _chains_to_root(self._chain(end, shared), most))
        chains = [(chain, upto) for chain, upto in way if upto > chain.start]
        copied = list(self._cached_blocks(chains, computed)) if self._keeps_copies else ()
        if self._evicts_nodes:
            self._match_nodes(end, chains, most, computed)
        found, before_it = 0, None
        for chain, upto in reversed(chains):
            before, is_reached = chain.cached_end, found == chain.start
            live = chain.send(upto, self._calls, now, (readable_at, now), ttl_s, refreshes, is_reached)
            self.tokens += chain.cached_end - before
            found = live if is_reached else found
            self._queue(chain)
            if before_it is not None:
                before_it.rests[chain.start] = chain
            before_it = chain
        for chain, block_end, used in copied:
            self.tokens += self.step
            if chain.add_copy(block_end, used, self._calls):
                self._queue_copy(chain, block_end)
        return found

    def _cached_blocks(self, chains: list[tuple[Chain, int]], start: int) -> Iterator[tuple[Chain, int, int]]:
        for chain, upto in chains:
            first = max(start, chain.start) + self.step
            for end in range(first, min(upto, chain.cached_end) + 1, self.step):
                yield chain, end, chain.last_use(end)

    def _evict(self, capacity: int, tokens: int) -> None:
        """Evict until the blocks of a call of so many tokens have room, and all others that are kept."""
        partial = self.whole(tokens + self.step - 1) - self.whole(tokens)
        if self._evicts_nodes:
            partial = self.whole(tokens + self.step - 1) - self._matched - self._inserted
        while self.tokens + partial > capacity and self._queued:
            if self._evicts_nodes and self._queued[0][0] == self._calls:
                break  # the call's own: what it computes although it is there takes the place of that
            call, end, number = heappop(self._queued)
            if number < 0:
                self._evict_copy(self._chains[-1 - number], call, -end)
                continue
            chain = self._chains[number]
            chain.queued = False
            if chain.steps and (chain.steps[0].call, chain.steps[0].end) == (call, -end):
                most = self.whole(self.tokens + partial - capacity + self.step - 1)
                self.tokens -= self._drop(chain, most)
                is_own = bool(chain.steps) and chain.steps[0].call == self._calls and chain.cached_end > self._matched
                if self._open is not None and is_own:  # so its node begins where the call left what was there
                    self._open = self._open[0], self._matched, self._open[2]
                    self._inserted = self.whole(tokens) - self._matched
                    partial = self.whole(tokens + self.step - 1) - self.whole(tokens)
            self._queue(chain)

    def _evict_copy(self, chain: Chain, call: int, end: int) -> None:
        if end not in chain.copies:
            return
        if chain.least_recent_copy(end) > call:
            self._queue_copy(chain, end)
            return
        self.tokens -= self.step
        if chain.drop_copy(end):
            self._queue_copy(chain, end)

    def state(self, prefix: Prefix, now: float, ttl_s: float) -> State:
        """The state of the tokens of `prefix`."""
        chain = self._of.get(prefix)
        chains = _chains_to_root(chain, self.whole(prefix.tokens)) if chain else ()
        states = [one.state(upto, now, ttl_s) for one, upto in chains if upto > one.start]
        return max(states, key=FROM_BEST.index, default="absent")

    def _chain(self, end: Prefix, shared: SharedTokens | None) -> Chain:
        """The chain of `end`. New blocks extend a chain that ends where they start, or start a new one."""
        new, node = new_prefixes(end, self._of)
        chain = self._of[node] if node is not None else None
        if not new and chain is not None:
            return chain
        begun = self._starts.add(new[-1], shared) if node and shared else None
        if node is None or chain is None or begun or not self._can_extend(chain, node):
            parent, start = chain, self.whole(node.tokens) if node else 0
            if begun is not None:
                start, parent = self.whole(begun[0]), self._of[begun[1]]
            while parent is not None and parent.parent is not None and parent.start >= start:
                parent = parent.parent
            chain = Chain(len(self._chains), parent, start, end)
            self._chains.append(chain)
            if parent:
                parent.fork = max(parent.fork, start)
        chain.last = end
        self._of.update(dict.fromkeys(new, chain))
        return chain

    def _can_extend(self, chain: Chain, node: Prefix) -> bool:
        """Whether the chain can be extended at `node`: it ends there, or its rest is short and has no forks.

        Side calls mostly come before the conversation continues. Without this, each would start a new chain for
        everything after it, and a call would take time for every side call before it.
        """
        if chain.last is node:
            return True
        start = max(self.whole(node.tokens), chain.start)
        if chain.fork > start or chain.last.depth - node.depth > MOST_MOVED:
            return False
        last = chain.last
        tail = chain.split(len(self._chains), node, start)
        self._chains.append(tail)
        for end in tail.copies:
            self._queue_copy(tail, end)
        while last is not node and last.parent is not None:
            self._of[last] = tail
            last = last.parent
        chain.fork = max(chain.fork, start)
        self._queue(tail)
        return True

    def _queue(self, chain: Chain) -> None:
        """Queue a chain with cached tokens for eviction. Its place may be too early, never too late."""
        if chain.steps and not chain.queued:
            chain.queued = True
            heappush(self._queued, (chain.steps[0].call, -chain.steps[0].end, chain.number))

    def _queue_copy(self, chain: Chain, end: int) -> None:
        """Queue a block that is kept more than once, as `_queue` does a chain."""
        heappush(self._queued, (chain.least_recent_copy(end), -end, -1 - chain.number))


def _chains_to_root(chain: Chain, tokens: int) -> Iterator[tuple[Chain, int]]:
    """The chains from the last one back to the root, each with the number of prompt tokens at its end."""
    yield chain, tokens
    while chain.parent is not None:
        yield chain.parent, chain.start
        chain = chain.parent


Engine = tuple[str, str]
"""Host and model: each has its own capacity."""


class FixedBlockCache:
    """Everything that calls sent, by host and model.

    Where the rules state `keeps_answers` (vLLM, SGLang), an answer whose content is known (`note_answer`) is cached
    like a prompt. One whose content is not known is read the first time that an answer comes back, and counts towards
    the capacity from then on. Where they state `keeps_unreasoned_answers` (OpenAI), only one whose length is billed. A
    prompt that goes on from an earlier one shares all of that but what opened its answer.

    A server with a capacity keeps whole blocks, `null_blocks` fewer than it has. It does not serve a prompt that it has
    no room for: nothing of that is read or kept.
    """

    def __init__(self) -> None:
        self._engines: dict[Engine, tuple[Recency, PromptHistory]] = {}
        self._tails: dict[Prefix, int] = {}
        """What is counted after the last block of each prompt."""

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start."""
        sent, history = self._engine(rules)
        capacity, tail = _room(rules), tail_of(prompt)
        if lacks_room(prompt.total_tokens, rules):
            return build_outcome(prompt, sizes, 0, None, rules)
        known = history.add_call(prompt.end) if _uses_history(rules) else NO_PRIOR_PROMPT
        matched = sent.record_call(
            prompt.end,
            start,
            start + ttft_s,
            ttl_s_of(rules),
            capacity,
            rules.refreshes_on_read,
            prompt.counter.shared if prompt.counter else None,
            tail,
        )
        if known.shared is not None and matched == sent.whole(known.shared.tokens):
            matched = known.shared.tokens  # nothing that follows is whole
        if not matched:
            self._tails[prompt.end] = tail
            return build_outcome(prompt, sizes, 0, None, rules)
        is_shared = known.shared is not None and matched == known.shared.tokens
        keeps = rules.keeps_answers or (rules.keeps_unreasoned_answers and known.is_billed)
        if is_shared and known.answer and known.shared and keeps:
            matched, is_shared = kept_answer(known.shared, known.answer, rules).tokens, False
        hit = next(node for node in prefixes_back(prompt.end) if node.tokens <= matched or node.parent is None)
        earlier_tail, self._tails[prompt.end] = self._tails.get(hit), tail
        if is_shared and earlier_tail is not None and hit is not prompt.end:
            tokens = shared_with(hit, earlier_tail, sizes, rules)
        else:
            tokens = sizes.of(hit) if hit.tokens == matched else sizes.at(matched)
        return build_outcome(prompt, sizes, tokens, hit, rules)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int, answer: Prefix | None = None) -> None:
        """The latest call, which had this prompt, was answered with so many tokens as billed (0: not known).

        `answer` is the prompt with that answer, where its content is known.
        """
        sent, history = self._engine(rules)
        capacity = _room(rules)
        if lacks_room(prompt.total_tokens, rules):
            return
        if answer is not None and rules.keeps_answers:
            sent.record_answer(answer, capacity, prompt.counter.shared if prompt.counter else None)
            history.add_answer(prompt.end, answer)
        elif tokens and _uses_history(rules) and not rules.keeps_reasoning:  # with it, it is billed longer than it is
            history.note_answer(prompt.end, tokens)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state of `prefix` at `now`. There is one TTL; `ttl` is ignored."""
        return self._engine(rules)[0].state(prefix, now, ttl_s_of(rules))

    def _engine(self, rules: ModelRules) -> tuple[Recency, PromptHistory]:
        key = rules.host, rules.name or rules.model
        if key not in self._engines:
            sent = (
                Recency()
                if rules.capacity_tokens is None
                else Recency(rules.step_tokens, rules.keeps_copies, rules.evicts_nodes)
            )
            self._engines[key] = sent, PromptHistory()
        return self._engines[key]


def _room(rules: ModelRules) -> int | None:
    if rules.capacity_tokens is None:
        return None
    return max(0, rules.capacity_tokens // rules.step_tokens - rules.null_blocks) * rules.step_tokens


def fits(tokens: int, capacity: int, step: int) -> bool:
    """Whether blocks of `step` tokens with room for `capacity` hold a prompt of `tokens`."""
    return -(-tokens // step) * step <= capacity


def lacks_room(tokens: int, rules: ModelRules) -> str | None:
    """Why a server does not serve a prompt of so many tokens; None: it has room, or nobody stated a capacity."""
    room, step = _room(rules), rules.step_tokens
    if room is None or fits(tokens, room, step):
        return None
    return f"prompt of {tokens:,} tokens does not fit a capacity of {rules.capacity_tokens:,}"


def _uses_history(rules: ModelRules) -> bool:
    ends_anywhere = rules.matching == "grid" and rules.step_tokens == 1
    return rules.keeps_answers or rules.keeps_unreasoned_answers or rules.opener_tokens > 0 or ends_anywhere
