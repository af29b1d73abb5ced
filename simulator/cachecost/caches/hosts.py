"""What the hosts' caches do with prompts, and why. Replays and fidelity checks share this.

Cache objects that the caller creates, pays for by the hour and names in its requests (Gemini's `CachedContent`).

Caches of fixed units, each of which matches fully or not at all (DeepSeek).

Models without a prompt cache: every prompt is billed in full, whatever came before it.

Finds what a call paid for again although an earlier call had sent it: the one classification of all commands.

The cache model for each value of the rule `matching`, and the caches of all hosts of a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Protocol, runtime_checkable

from cachecost.base.structs import replace, value
from cachecost.caches.breakpoints import (
    TTLS,
    UNWRITTEN,
    CacheEntry,
    Cause,
    Outcome,
    PrefixCache,
    State,
    UnreadPrefix,
    ancestor,
    cause_of,
    cause_of_unread,
    find_change,
    find_change_or_compaction,
    find_earlier_entry,
    is_fork,
    new_entry,
    path,
)
from cachecost.caches.losses import (
    ContentChange,
    EarlierCall,
    Lineage,
    Loss,
    Relatives,
    cause_of_losses,
    find_change_since,
    find_shared_content,
    first_message_end,
    have_one_static,
    may_share,
    tokens_between,
)
from cachecost.caches.reporting import PromptHistory, build_outcome, round_read, ttl_s_of
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import (
    AS_COUNTED,
    BreakpointPrefix,
    PrefixSizes,
    Prompt,
    is_within_lookback,
    lookback_steps,
)
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


class ExplicitObjectCache:
    """Objects of all projects and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._objects: dict[Prefix, CacheEntry] = {}

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Read or create the object of the static prefix. Times are seconds; calls come in the order they start."""
        breakpoint = next(
            (
                breakpoint
                for breakpoint in reversed(prompt.breakpoints)
                if breakpoint.prefix.layer is not Layer.MESSAGES
            ),
            None,
        )
        total = sizes.total(prompt)
        if breakpoint is None or sizes.of(breakpoint.prefix) < rules.minimum_tokens:
            return Outcome(0, 0, 0, total, None, ())
        tokens, entry = sizes.of(breakpoint.prefix), self._objects.get(breakpoint.prefix)
        if entry and entry.state(start) == "live":
            entry.read(start, rules)
            return Outcome(tokens, 0, 0, total - tokens, breakpoint.prefix, (breakpoint,))
        ttl_s = rules.ttl_s[breakpoint.ttl]
        self._objects[breakpoint.prefix] = new_entry(rules, breakpoint.ttl, ttl_s, start, start + first_token_s)
        hour = tokens if breakpoint.ttl == "1h" else 0
        return Outcome(0, hour, tokens - hour, total - tokens, None, (breakpoint,))

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of the object that ends at `prefix`."""
        entry = self._objects.get(prefix)
        return entry.state(now) if entry else "absent"


class FixedUnitCache:
    """Units of all accounts and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._units: dict[Prefix, CacheEntry] = {}
        self._answers = PromptHistory()

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start."""
        shared, answer, *_ = self._answers.add_call(prompt.end)
        answer = answer if rules.keeps_answers else None
        if shared and answer and shared in self._units:
            self._units[answer] = copy(self._units[shared])  # as old as that of its prompt
        hit = self._find(answer or shared, start)
        for node in (shared, hit, prompt.end):
            if node and node.tokens:
                self._keep(node, rules, start, start + first_token_s)
        return build_outcome(prompt, sizes, sizes.of(hit) if hit else 0, hit, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of the unit that ends at `prefix`. There is one TTL; `ttl` is ignored."""
        unit = self._units.get(prefix)
        return unit.state(now) if unit else "absent"

    def _find(self, node: Prefix | None, now: float) -> Prefix | None:
        """The longest unit at or before `node` that can be read. Nothing after the shared prefix can be one."""
        while node is not None:
            unit = self._units.get(node)
            if unit and unit.state(now) == "live":
                return node
            node = node.parent
        return None

    def _keep(self, node: Prefix, rules: ModelRules, start: float, readable_at: float) -> None:
        """Refresh a live unit, keep one that another call makes readable sooner, and write any other."""
        unit = self._units.get(node)
        state = unit.state(start) if unit else "absent"
        if unit and state == "live":
            unit.read(start, rules)
        elif unit and state == "unreadable" and unit.readable_at <= readable_at:
            unit.touched = start
        else:
            self._units[node] = new_entry(rules, "5m", ttl_s_of(rules), start, readable_at)


class NoCache:
    """Keeps nothing and reads nothing: the host documents no cache for the model, or began it later."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """All of `prompt` is uncached."""
        return build_outcome(prompt, sizes, 0, None, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """Always absent."""
        return "absent"


MATERIAL = 0.01
"""The share of a prompt that must be unread before other breakpoints would be worth a change."""
SMALLEST = 100
"""Tokens; fewer are not worth a change either, as a question that no breakpoint follows."""
EXCHANGE = 2
"""Messages by which a conversation grows from call to call."""


@value
class CallInspection:
    """One call before it is made: the prompt, the cache, and the earlier calls to compare with."""

    call: int
    request: Request
    prompt: Prompt
    rules: ModelRules
    start: float
    sizes: PrefixSizes
    cache: PrefixCache
    read: int
    shared: Prefix
    relatives: Relatives

    def is_healthy(self) -> bool:
        """Whether the call reads all that was sent before, as most do: then nothing need be compared."""
        nearest, breakpoints = self.relatives.nearest, self.prompt.breakpoints
        entry = nearest.entry if nearest else None
        if nearest is None or entry is not self.shared or not breakpoints:
            return False
        last, grown = breakpoints[-1], self.request.thread.length - nearest.thread.length
        return (
            grown <= EXCHANGE
            and is_within_lookback(last.prefix, entry, self.rules)
            and self.cache.state(entry, last.ttl, self.rules, self.start) == "live"
            and self._reaches_minimum(entry)
        )

    def losses(self) -> Iterator[Loss]:
        """What comes after a change, else what was sent before unchanged: at most one."""
        changed, unread = self._find_changed(), None
        if changed:
            yield self._loss_by(changed)
            return
        if self.shared.depth > self.read:
            unread = self._find_unread(self._sent_again())
        behind = self._find_shared_behind()
        if behind and (unread is None or unread.tokens < behind.tokens):
            yield behind
        elif unread:
            yield unread

    # ------------------------------------------------------------------------------- sent before, and not read

    def _sent_again(self) -> Prefix:
        """What was sent before, without the beginning of an answer that is another one: both begin alike by chance."""
        node = self.shared
        after = path(self.prompt.end, node.depth)[:1]
        while (
            after
            and all(
                (one.layer is Layer.MESSAGES and one.block is not None and one.block.role == "assistant")
                for one in (node, *after)
            )
            and node.parent is not None
        ):
            node = node.parent
        return node

    def _find_unread(self, shared: Prefix) -> Loss | None:
        """The prefix that was sent before, byte for byte, and was not read this time."""
        entry, state, ttl, touched = self._deepest_entry(shared)
        if entry is None and not self._is_one_prefix():
            return None
        end = entry or shared
        since = self._sender(end)
        cause = self._cause(end, state if entry else "absent", since)
        tokens, first = tokens_between(self._read_prefix(), end, self.sizes), next(iter(path(end, self.read)), None)
        if first is None or (cause in UNWRITTEN and not self._is_material(tokens)):
            return None
        return Loss(
            self.call,
            cause,
            first,
            end.depth,
            since=since,
            gap_s=self.start - touched if touched is not None else 0.0,
            ttl=ttl,
            positions=self._behind(end),
            window=self.rules.lookback_positions,
            minimum=self.rules.minimum_tokens,
            tokens=tokens,
        )

    def _is_one_prefix(self) -> bool:
        """Whether what was sent before is of this conversation, or a static prefix that conversations share.

        Some equal tools at the beginning of another list are none: no breakpoint between them helps both lists.
        """
        if self.relatives.line is not None:
            return True
        shared = self.shared
        if shared.layer is Layer.TOOLS:
            return shared.depth == len(self.request.tools.blocks) and self._reaches_minimum(shared)
        return shared.depth >= self.prompt.head.depth or self._reaches_minimum(shared)

    def _is_material(self, tokens: int) -> bool:
        return tokens >= max(SMALLEST, MATERIAL * self.sizes.total(self.prompt))

    def _reaches_minimum(self, prefix: Prefix) -> bool:
        return self.sizes.of(prefix) >= self.rules.minimum_tokens

    def _sender(self, prefix: Prefix) -> EarlierCall | None:
        """The call that sent a prefix: the nearest one, the latest of the conversation, else the first of all."""
        for call in (self.relatives.nearest, self.relatives.latest):
            if call and call.pool == self.relatives.pool and _is_on(prefix, call.end):
                return call
        return self.relatives.lineage.sender(prefix)

    def _read_prefix(self) -> Prefix | None:
        return ancestor(self.prompt.end, self.read) if self.read else None

    def _behind(self, entry: Prefix) -> int:
        """Positions from an entry to the last breakpoint, both counted; below 0 if the breakpoint is before it."""
        if not self.prompt.breakpoints:
            return 0
        steps = lookback_steps(self.prompt.breakpoints[-1].prefix, entry, self.rules)
        return steps + 1 if steps >= 0 else steps

    def _deepest_entry(self, shared: Prefix) -> tuple[Prefix | None, State, str, float | None]:
        for node, entry in self.cache.entries_back(shared, self.read, self.rules):
            if self.sizes.of(node) >= entry.minimum:
                return node, entry.state(self.start), entry.ttl, entry.touched
        return None, "absent", "", None

    def _cause(self, end: Prefix, state: State, since: EarlierCall | None) -> Cause:
        unread = UnreadPrefix(
            tokens=self.sizes.of(end),
            entry=None if state == "absent" else end,
            state=state,
            is_fork=self._is_fork(),
            is_off_path=bool(since and since.entry and not _is_on(since.entry, self.prompt.end)),
        )
        return cause_of_unread(unread, self.prompt, self.rules)

    def _is_fork(self) -> bool:
        """Whether the call goes on from a place in another call than the one whose messages it repeats.

        A conversation that expired as a whole lost to time, wherever it goes on.
        """
        nearest, latest = self.relatives.nearest, self.relatives.latest
        if nearest and nearest.pool == self.relatives.pool and _is_on(self.shared, nearest.end):
            return False
        if latest is None or (latest.entry and self._is_out_of_reach(latest)):
            return False
        return is_fork(self.request, self.prompt, self.rules, self.shared, latest)

    # ------------------------------------------------------------------------------- behind a change

    def _find_changed(self) -> ContentChange | None:
        """What comes after a block or a parameter that changed since an earlier call."""
        if not self.prompt.breakpoints:
            return None
        reached, read = max(self.read, self.shared.depth), self._read_prefix()
        last, found = self.prompt.breakpoints[-1].prefix, []
        for before in self._compared():
            change = None if self._is_out_of_reach(before) else find_change_since(before, last)
            if change and change.is_loss(reached, read, self.sizes):
                found.append(change)
        return max(found, key=lambda change: change.end.depth, default=None)

    def _loss_by(self, change: ContentChange) -> Loss:
        """What is lost by a change, and what of it is new."""
        before, read = change.before, self._read_prefix()
        tokens, whole = change.tokens(read, self.sizes), tokens_between(read, change.end, self.sizes)
        first, other = change.first_pair(self.read)
        is_moved = self.relatives.pool != before.pool
        return Loss(
            self.call,
            "unknown" if is_moved else find_change_or_compaction(self.request, self.prompt, before, self.rules),
            first,
            change.end.depth,
            None if is_moved else other,
            before,
            self.start - before.start,
            tokens=tokens,
            added=whole - tokens,
            is_whole=len(change.kept) == len(change.was),
            place=self.relatives.pool if is_moved else "",
            place_before=before.pool if is_moved else "",
            is_apart=self.relatives.line is None,
        )

    def _compared(self) -> Iterator[EarlierCall]:
        """The calls that a change is looked for in: those of the conversation, else one with this static prefix.

        The latest call of the conversation counts besides the one that this call goes on from where calls must have
        been made in between: it sent their messages in another shape.
        """
        nearest, latest = self.relatives.nearest, self.relatives.latest
        length = self.request.thread.length
        if nearest:
            yield nearest
        if latest and latest is not nearest and length - (nearest.thread.length if nearest else 0) > EXCHANGE:
            if self._is_here(latest) or latest.thread.length < length:
                yield latest
        elif latest and nearest is None and self._is_here(latest):
            yield latest
        if latest is None and self.shared.depth < self.prompt.head.depth:
            yield from self._same_static_prefix()

    def _is_here(self, call: EarlierCall) -> bool:
        return call.pool == self.relatives.pool and call.rules.model == self.rules.model

    def _same_static_prefix(self) -> Iterator[EarlierCall]:
        """The latest call of another conversation with this static prefix but for an order or a few characters."""
        for call in self.relatives.others():
            has_keys = call.shape.prompt.cache_keys[:2] == self.prompt.cache_keys[:2]
            if has_keys and have_one_static(call.shape.request, self.request):
                yield call
                return

    def _find_shared_behind(self) -> Loss | None:
        """What a new conversation shares with an earlier one, long enough to be cached, behind what differs."""
        if self.relatives.nearest or self.relatives.latest:
            return None
        breakpoints, read, known = self.prompt.breakpoints, self._read_prefix(), max(self.read, self.shared.depth)
        last = breakpoints[-1].prefix if breakpoints else self.prompt.end
        own = [node.block for node in path(first_message_end(last, self.request), known) if node.block]
        for before in self.relatives.others() if own else ():
            if before.shape.prompt.cache_keys != self.prompt.cache_keys or not may_share(before, own):
                continue
            if not self._is_near(before):
                continue
            end = before.entry or before.end
            found = find_shared_content(before.request, end, self.request, last, self.sizes, known)
            parted = found.now[0].parent if found else None
            length = self.sizes.of(parted) + found.tokens if found and parted else 0
            if not found or not self._is_material(found.tokens) or length < self.rules.minimum_tokens:
                continue
            change = ContentChange(before, found.was, found.now, found.kept)
            first, other = change.first_pair(self.read)
            return Loss(
                self.call,
                find_change(self.request, self.prompt, before, self.rules),
                first,
                change.end.depth,
                other,
                before,
                self.start - before.start,
                tokens=length - (self.sizes.of(read) if read else 0),
                is_apart=True,
                is_out_of_order=True,
            )
        return None

    def _is_near(self, before: EarlierCall) -> bool:
        """Whether what a call cached can be read at this time, or could if it had had a breakpoint."""
        if before.entry is None:
            return self.start - before.start < min(self.rules.ttl_s.values(), default=0.0)
        return not self._is_out_of_reach(before)

    def _is_out_of_reach(self, before: EarlierCall) -> bool:
        """Whether nothing that a call cached can be read at this time, so that a change of it lost nothing."""
        states = {self.cache.state(before.entry, ttl, before.rules, self.start) for ttl in ("5m", "1h") if before.entry}
        return bool(states & {"expired", "unreadable"}) and "live" not in states


def _is_on(node: Prefix, end: Prefix) -> bool:
    return node.depth <= end.depth and ancestor(end, node.depth) is node


BREAKPOINT = "breakpoint"
GRID = "grid"


class CacheModel(Protocol):
    """A simulated cache. Calls come in the order they start; times are seconds."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Look up `prompt`, keep what the provider keeps of it, and say how its tokens divide."""
        ...

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of what is cached up to `prefix`."""
        ...


@runtime_checkable
class AnswerCache(Protocol):
    """A cache that keeps answers as long as they were billed."""

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None: ...


def _fixed_blocks() -> CacheModel:
    from cachecost.caches.reporting import FixedBlockCache

    return FixedBlockCache()


def _fixed_units() -> CacheModel:

    return FixedUnitCache()


def _explicit_objects() -> CacheModel:

    return ExplicitObjectCache()


def _best_effort() -> CacheModel:
    from cachecost.caches.reporting import BestEffortCache

    return BestEffortCache()


def _no_cache() -> CacheModel:

    return NoCache()


CACHE_MODELS: dict[str, Callable[[], CacheModel]] = {
    BREAKPOINT: PrefixCache,
    GRID: _fixed_blocks,
    "units": _fixed_units,
    "named": _explicit_objects,
    "best_effort": _best_effort,
    "none": _no_cache,
}
"""Models are imported when they are first used: most replays need breakpoints only."""


def create_cache(kind: str) -> CacheModel:
    """An empty cache of that kind. Raises ValueError for a kind that is not in `CACHE_MODELS`."""
    if kind not in CACHE_MODELS:
        raise ValueError(f"matching={kind!r}: expected one of {', '.join(CACHE_MODELS)}")
    return CACHE_MODELS[kind]()


class HostCaches:
    """The caches of all hosts of a replay: each call goes to the model that its rules state."""

    def __init__(self, breakpoints: PrefixCache | None = None) -> None:
        self.with_breakpoints = breakpoints if breakpoints is not None else PrefixCache()
        self._kinds: dict[str, CacheModel] = {BREAKPOINT: self.with_breakpoints}

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        outcome = self._of(rules).call(prompt, rules, start, first_token_s, sizes)
        return round_read(outcome, rules) if rules.matching == BREAKPOINT and rules.step_tokens > 1 else outcome

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        return self._of(rules).state(prefix, ttl, rules, now)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens: of use on a grid."""
        if rules.matching == GRID:
            blocks = self._of(rules)
            assert isinstance(blocks, AnswerCache)
            blocks.note_answer(prompt, rules, tokens)

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Add a breakpoint entry that was written before the call that starts at `start`."""
        breakpoints = self._of(rules)
        assert isinstance(breakpoints, PrefixCache)
        breakpoints.warm(prefix, ttl, rules, start)

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens, on hosts with breakpoints."""
        breakpoints = self._of(rules)
        if isinstance(breakpoints, PrefixCache):
            breakpoints.forget_longer(prompt, most, rules, sizes)

    def entry(self, prefix: Prefix, rules: ModelRules) -> CacheEntry | None:
        """The entry at `prefix`, expired or not; of two TTLs the one used last. None on hosts without breakpoints."""
        breakpoints = self._of(rules)
        if not isinstance(breakpoints, PrefixCache):
            return None
        ttls = [ttl for ttl in TTLS if breakpoints.state(prefix, ttl, rules, 0.0) != "absent"]
        found = (breakpoints.entry(prefix, ttl, rules) for ttl in ttls)
        return max(found, key=lambda entry: entry.touched, default=None)

    def _of(self, rules: ModelRules) -> CacheModel:
        found = self._kinds.get(rules.matching)
        if found is None:
            found = self._kinds[rules.matching] = create_cache(rules.matching)
        return found


@value
class LookedUp:
    """What the cache did with each pass of a call, the cause of the first one's outcome, and what the call lost."""

    outcomes: list[Outcome]
    cause: Cause
    losses: tuple[Loss, ...] = ()


class SimulatedHosts:
    """The caches of all hosts of a replay, and the calls that they saw."""

    explains = True
    """Whether each call is compared with earlier ones, so that its cause and its losses are known."""

    def __init__(self, cache: PrefixCache | None = None, lineage: Lineage | None = None) -> None:
        self._cache = HostCaches(cache)
        self._lineage = lineage or Lineage()
        self._calls = 0

    def inspect(
        self,
        request: Request,
        prompts: Sequence[Prompt],
        rules: ModelRules,
        workspace: str,
        times: tuple[float, float],
        sizes: Sequence[PrefixSizes],
        file: str = "",
        number: int = 0,
    ) -> LookedUp:
        """What the cache does with each pass of a call, and why.

        `times` are the start of the call and its time to first token, in seconds; calls come in the order they start.
        `number` is that of the call (0: calls are counted), `file` where it is from: calls of different files are of
        one conversation only if they begin with the same message. The cause is `unknown` unless it `explains`.
        """
        if not self.explains:
            return LookedUp(self._call(prompts, rules, times, sizes), "unknown")
        self._calls = number or self._calls + 1
        pool = rules.pool(workspace)
        relatives = self._lineage.forerunner(request, rules.model, pool, file)
        losses: tuple[Loss, ...] = ()
        if rules.uses_breakpoints:
            losses = self._losses(request, prompts[0], rules, times[0], sizes[0], relatives)
            outcomes = self._call(prompts, rules, times, sizes)
            is_first = not (losses or outcomes[0].hit or self._lineage.has_begun(request.thread, pool))
            cause = cause_of_losses(losses, outcomes[0], is_first)
        else:
            seen = relatives.nearest
            seen = seen if seen and seen.pool == pool else None
            lost = find_earlier_entry(self._cache, prompts[0], seen, times[0])
            outcomes = self._call(prompts, rules, times, sizes)
            cause = cause_of(request, prompts[0], outcomes[0], lost, rules)
        deepest = BreakpointPrefix(prompts[0].end, "5m") if rules.is_automatic else None
        if deepest is None and outcomes[0].breakpoints:
            deepest = outcomes[0].breakpoints[-1]
        self._lineage.remember(self._calls, times[0], request, prompts[0], rules, deepest, relatives)
        return LookedUp(outcomes, cause, losses)

    def _losses(
        self,
        request: Request,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        sizes: PrefixSizes,
        relatives: Relatives,
    ) -> tuple[Loss, ...]:
        cache, shared = self._cache.with_breakpoints, self._lineage.find_shared(prompt)
        call = CallInspection(self._calls, request, prompt, rules, start, sizes, cache, 0, shared, relatives)
        if call.is_healthy():
            return ()
        found = cache.find(prompt.breakpoints, rules, start, sizes)
        return tuple(replace(call, read=found[0].depth if found else 0).losses())

    def _call(
        self,
        prompts: Sequence[Prompt],
        rules: ModelRules,
        times: tuple[float, float],
        sizes: Sequence[PrefixSizes],
    ) -> list[Outcome]:
        if len(prompts) == 1:
            return [self._cache.call(prompts[0], rules, *times, sizes[0])]
        return [
            self._cache.call(prompt, rules, *moment, size)
            for moment, prompt, size in zip(pass_times(*times, len(prompts)), prompts, sizes, strict=True)
        ]

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens, on hosts with breakpoints."""
        self._cache.forget_longer(prompt, most, rules, sizes)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens."""
        self._cache.note_answer(prompt, rules, tokens)

    def warm_prefix(self, prompt: Prompt, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Add `prefix` of a prompt to the cache, and the entries that its breakpoints before it would have written."""
        for breakpoint in prompt.breakpoints:
            if breakpoint.prefix.depth < prefix.depth:
                self._cache.warm(breakpoint.prefix, breakpoint.ttl, rules, start)
        self._cache.warm(prefix, ttl, rules, start)

    def entry(self, prefix: Prefix, rules: ModelRules) -> CacheEntry | None:
        """The entry at `prefix`, expired or not. None on hosts without breakpoints."""
        return self._cache.entry(prefix, rules)


class UnexplainedHosts(SimulatedHosts):
    """The caches of all hosts of a replay that is only priced: no call is compared with earlier ones."""

    explains = False
