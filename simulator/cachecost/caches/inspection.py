"""Finds what a call paid for again although an earlier call had sent it: the one classification of all commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Protocol

import msgspec

from cachecost.account.causes import Cause, causes
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.causes import (
    ENTRY_STATES,
    cause_of_distance,
    cause_of_unread,
    find_change,
    find_change_or_compaction,
    is_fork,
)
from cachecost.caches.expiry import State
from cachecost.caches.losses import (
    ContentChange,
    EarlierCall,
    Loss,
    Relatives,
    find_change_since,
    find_shared_content,
    first_message_end,
    have_one_static,
    may_share,
    tokens_between,
)
from cachecost.caches.reporting import reported_read
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.compare import ancestor, begins_with, path
from cachecost.prompts.render import PrefixSizes, Prompt, is_within_lookback, lookback_steps
from cachecost.prompts.request import Request
from cachecost.providers.rules import VIA, ModelRules
from cachecost.providers.usage import TTLS

MATERIAL = 0.01
"""The share of a prompt that must be unread before other breakpoints would be worth a change."""
SMALLEST = 100
"""Tokens; fewer are not worth a change either, as a question that no breakpoint follows."""
EXCHANGE = 2
"""Messages by which a conversation grows from call to call."""


class EntryStates(Protocol):
    """A cache whose entries can be asked for."""

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State: ...


class CallInspection(msgspec.Struct, frozen=True):
    """One call, and the earlier calls to compare it with. `read` is the depth up to which its prompt is cached."""

    call: int
    request: Request
    prompt: Prompt
    rules: ModelRules
    start: float
    sizes: PrefixSizes
    read: int
    shared: Prefix
    relatives: Relatives

    @property
    def last(self) -> Prefix | None:
        """The end of what is cached of the prompt; None: nothing is."""
        if self.rules.is_automatic:
            return self.prompt.end
        return self.prompt.breakpoints[-1].prefix if self.prompt.breakpoints else None

    def state(self, entry: Prefix, ttl: str, rules: ModelRules) -> State:
        """The state of an entry when the call starts."""
        raise NotImplementedError

    def _find_unread(self, shared: Prefix) -> Loss | None:
        """The prefix that was sent before, byte for byte, and was not read this time."""
        raise NotImplementedError

    def losses(self) -> Iterator[Loss]:
        """What comes after a change, else what was sent before unchanged: at most one."""
        changed, unread = self._find_changed(), None
        if changed:
            yield changed
            return
        if self.shared.depth > self.read:
            sent = self.shared
            after = path(self.prompt.end, sent.depth)[:1]
            while after and after[0].is_of_assistant and sent.is_of_assistant and sent.parent is not None:
                sent = sent.parent  # the beginning of an answer that is another one: both begin alike by chance
            unread = self._find_unread(sent)
        behind = self._find_shared_behind()
        if behind and (unread is None or unread.tokens < behind.tokens):
            yield behind
        elif unread:
            yield unread

    def _is_material(self, tokens: int) -> bool:
        return tokens >= max(SMALLEST, MATERIAL * self.sizes.total(self.prompt))

    def _reaches_minimum(self, prefix: Prefix) -> bool:
        return self.sizes.of(prefix) >= self.rules.minimum_tokens

    def _read_prefix(self) -> Prefix | None:
        return ancestor(self.prompt.end, self.read) if self.read else None

    def _find_changed(self) -> Loss | None:
        last, found = self.last, []
        if last is None:
            return None
        reached, read = max(self.read, self.shared.depth), self._read_prefix()
        for earlier in self._compared():
            difference = None if self._is_out_of_reach(earlier) else find_change_since(earlier, last)
            if difference and difference.is_loss(reached, read, self.sizes):
                found.append(difference)
        change = max(found, key=lambda change: change.end.depth, default=None)
        return self._loss_by(change, read) if change else None

    def _loss_by(self, change: ContentChange, read: Prefix | None) -> Loss:
        before, pool = change.before, self.relatives.pool
        tokens, whole = change.tokens(read, self.sizes), tokens_between(read, change.end, self.sizes)
        first, other = change.first_pair(self.read)
        is_moved = pool != before.pool
        cause: Cause = "upstream_changed" if pool.partition(VIA)[0] == before.pool.partition(VIA)[0] else "unknown"
        return Loss(
            self.call,
            cause if is_moved else find_change_or_compaction(self.request, self.prompt, before, self.rules),
            first,
            change.end.depth,
            None if is_moved else other,
            before,
            self.start - before.start,
            tokens=tokens,
            added=whole - tokens,
            is_whole=len(change.kept) == len(change.was),
            place=pool if is_moved else "",
            place_before=before.pool if is_moved else "",
            is_apart=self.relatives.line is None,
        )

    def _compared(self) -> Iterator[EarlierCall]:
        """The calls that a change is looked for in: those of the conversation, else the latest call of another one with
        this static prefix but for an order or a few characters.

        The latest call of the conversation counts besides the one that this call goes on from where calls must have
        been made in between: it sent their messages in another shape.
        """
        nearest, latest = self.relatives.nearest, self.relatives.latest
        length, place = self.request.thread.length, (self.relatives.pool, self.rules.model)
        is_here = latest is not None and (latest.pool, latest.rules.model) == place
        if nearest:
            yield nearest
        if latest and latest is not nearest and length - (nearest.thread.length if nearest else 0) > EXCHANGE:
            if is_here or latest.thread.length < length:
                yield latest
        elif latest and nearest is None and is_here:
            yield latest
        if latest is None and self.shared.depth < self.prompt.head.depth:
            keys = self.prompt.cache_keys[:2]
            others = (one for one in self.relatives.others() if one.shape.prompt.cache_keys[:2] == keys)
            alike = (one for one in others if have_one_static(one.shape.request, self.request))
            yield from islice(alike, self._writers, self._writers + 1)

    @property
    def _writers(self) -> int:
        """How many others send it before one can read it: a unit ends there only once two prompts have parted."""
        return int(self.rules.matching == "units")

    def _find_shared_behind(self) -> Loss | None:
        """What a new conversation shares with an earlier one, long enough to be cached, behind what differs."""
        if self.relatives.nearest or self.relatives.latest:
            return None
        read, known = self._read_prefix(), max(self.read, self.shared.depth)
        last = self.last or self.prompt.end
        own = [node.block for node in path(first_message_end(last, self.request), known) if node.block]
        alike = 0
        for before in self.relatives.others() if own else ():
            if before.shape.prompt.cache_keys != self.prompt.cache_keys or not may_share(before, own):
                continue
            if before.entry is None:  # could what it sent be read, if it had had a breakpoint?
                is_near = self.start - before.start < min(self.rules.ttl_s.values(), default=0.0)
            else:
                is_near = not self._is_out_of_reach(before)
            if not is_near:
                continue
            end = before.entry or before.end
            found = find_shared_content(before.request, end, self.request, last, self.sizes, known)
            parted = found.now[0].parent if found else None
            length = self.sizes.of(parted) + found.tokens if found and parted else 0
            if not found or not self._is_material(found.tokens) or length < self.rules.minimum_tokens:
                continue
            alike += 1
            if alike <= self._writers:
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

    def _is_out_of_reach(self, before: EarlierCall) -> bool:
        """Whether nothing that a call cached can be read at this time, so that a change of it lost nothing."""
        states = {self.state(before.entry, ttl, before.rules) for ttl in TTLS if before.entry}
        return bool(states & {"expired", "unreadable"}) and "live" not in states


class BreakpointInspection(CallInspection, frozen=True):
    """The same on a host that looks back from breakpoints, before the call is made."""

    cache: PrefixCache

    def state(self, entry: Prefix, ttl: str, rules: ModelRules) -> State:
        return self.cache.state(entry, ttl, rules, self.start)

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
            and self.state(entry, last.ttl, self.rules) == "live"
            and self._reaches_minimum(entry)
        )

    def _find_unread(self, shared: Prefix) -> Loss | None:
        back = self.cache.entries_back(shared, self.read, self.rules)
        end, entry = next(((node, one) for node, one in back if self.sizes.of(node) >= one.minimum), (shared, None))
        if entry is None and not self._is_one_prefix():
            return None
        relatives, breakpoints = self.relatives, self.prompt.breakpoints
        near = (one for one in (relatives.nearest, relatives.latest) if one and one.pool == relatives.pool)
        since = next((one for one in near if begins_with(one.end, end)), None) or relatives.lineage.sender(end)
        cause = cause_of_unread(
            self.prompt,
            self.rules,
            self.sizes.of(end),
            end if entry else None,
            entry.state(self.start) if entry else "absent",
            self._is_fork(),
            bool(since and since.entry and not begins_with(self.prompt.end, since.entry)),
        )
        tokens, first = tokens_between(self._read_prefix(), end, self.sizes), next(iter(path(end, self.read)), None)
        if first is None or (causes()[cause].unwritten and not self._is_material(tokens)):
            return None
        steps = lookback_steps(breakpoints[-1].prefix, end, self.rules) if breakpoints else -1
        return Loss(
            self.call,
            cause,
            first,
            end.depth,
            since=since,
            gap_s=self.start - entry.touched if entry else 0.0,
            ttl=entry.ttl if entry else "",
            positions=(steps + (steps >= 0)) if breakpoints else 0,
            window=self.rules.lookback_positions,
            minimum=self.rules.minimum_tokens,
            tokens=tokens,
        )

    def _is_one_prefix(self) -> bool:
        """Whether one breakpoint could serve both: some equal tools at the beginning of another list are no prefix."""
        if self.relatives.line is not None:
            return True
        shared = self.shared
        if shared.layer is Layer.TOOLS:
            return shared.depth == len(self.request.tools.blocks) and self._reaches_minimum(shared)
        return shared.depth >= self.prompt.head.depth or self._reaches_minimum(shared)

    def _is_fork(self) -> bool:
        """Whether it goes on from elsewhere than the call whose messages it repeats; not where all of that expired."""
        nearest, latest = self.relatives.nearest, self.relatives.latest
        if nearest and nearest.pool == self.relatives.pool and begins_with(nearest.end, self.shared):
            return False
        if latest is None or (latest.entry and self._is_out_of_reach(latest)):
            return False
        return is_fork(self.request, self.prompt, self.rules, self.shared, latest)


class SentInspection(CallInspection, frozen=True):
    """The same on a host that finds by itself what was sent, after the call was made and read so many tokens.

    `states` are those of earlier prefixes before it was: it refreshed what it sent.
    """

    read_tokens: int
    states: Mapping[Prefix, State]
    cache: EntryStates

    def state(self, entry: Prefix, ttl: str, rules: ModelRules) -> State:
        return self.states[entry] if entry in self.states else self.cache.state(entry, ttl, rules, self.start)

    def losses(self) -> Iterator[Loss]:
        """As of any host, in the tokens that the host reports: those up to the end of a step."""
        for loss in CallInspection.losses(self):
            read = self._read_prefix()
            limit = loss.tokens + (self.sizes.of(read) if read else 0)
            lost = reported_read(limit, self.sizes.total(self.prompt), self.rules) - self.read_tokens
            if lost > 0:
                yield replace(loss, tokens=lost)

    def cut(self) -> Loss | None:
        """What changed since the call that this one continues, whatever was read: bills may show that it was lost.

        Its tokens are all up to where both are alike again.
        """
        last = self.last
        for before in self._compared() if last else ():
            if last and (change := find_change_since(before, last)):
                limit = reported_read(change.tokens(None, self.sizes), self.sizes.total(self.prompt), self.rules)
                return replace(self._loss_by(change, None), tokens=limit)
        return None

    def _find_unread(self, shared: Prefix) -> Loss | None:
        near = [one for one in (self.relatives.nearest, self.relatives.latest) if one and one.entry]
        entry, sender = shared, self.relatives.lineage.sender(shared)
        if self.rules.is_automatic:
            since = next((one for one in near if begins_with(one.end, shared)), sender)
        else:
            since = next((one for one in near if one.entry and begins_with(self.prompt.end, one.entry)), None)
            if since and since.entry:
                entry = since.entry
            elif self.states.get(shared) in ENTRY_STATES:
                since = sender
        first = next(iter(path(entry, self.read)), None) if entry.depth > self.read else None
        if first is None or since is None:
            return None
        state, tokens = self.states.get(entry, "live"), tokens_between(self._read_prefix(), entry, self.sizes)
        cause = ENTRY_STATES.get(state)
        if state == "absent" and self.rules.capacity_tokens:
            cause = "evicted"
        elif state == "live" and not self.rules.is_automatic and self._reaches_minimum(entry):
            cause = cause_of_distance(entry, self.prompt, self.prompt.breakpoints)
        if cause is None:
            return None
        gap, ttl = self.start - since.start, since.ttl if cause == "ttl_expired" else ""
        return Loss(self.call, cause, first, entry.depth, since=since, gap_s=gap, ttl=ttl, tokens=tokens)
