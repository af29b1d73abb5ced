"""A cache and a lineage that note what each call looks at, so that a changed replay need not make all calls again.

A call whose every question to the cache and to the lineage has the answer that it had before is made as it was before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from copy import copy
from operator import itemgetter
from typing import Any

import msgspec

from cachecost.caches.breakpoints import Key, PrefixCache
from cachecost.caches.expiry import CacheEntry
from cachecost.caches.losses import ConversationLine, EarlierCall, Lineage, Relatives
from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import TTLS

POSITION = itemgetter(0)
LOOK_UP = dict[Key, Any].get
START = 0
"""Calls are numbered from 1: the position before the first one."""


class EntryHistory:
    """The entries of a cache after each call of a replay: of a key, those that differ from the one before."""

    def __init__(self) -> None:
        self._states: dict[Key, list[tuple[float, CacheEntry | None]]] = {}

    def clear(self) -> None:
        self._states.clear()

    def at(self, key: Key, position: float) -> CacheEntry | None:
        """The entry after the call at `position`, not to be changed; None: there was none."""
        states = self._states.get(key)
        if states is None:
            return None
        found = bisect_right(states, position, key=POSITION)
        return states[found - 1][1] if found else None

    def add(self, key: Key, position: float, entry: CacheEntry | None) -> bool:
        """The call at `position` left this entry, which is copied; whether it differs from the one before."""
        states = self._states.get(key)
        if entry is None and states is None:
            return False
        if are_equal(states[-1][1] if states else None, entry):
            return False
        self._states.setdefault(key, []).append((position, copy(entry)))
        return True


class CacheUse(msgspec.Struct, frozen=True):
    """The prefixes that a call looked up in the cache, and the keys of the entries that it changed. `is_warm`: what it
    read was put there before."""

    prefixes: tuple[Prefix, ...]
    changed: tuple[Key, ...]
    is_warm: bool


def are_equal(one: CacheEntry | None, other: CacheEntry | None) -> bool:
    """Whether two entries behave alike from now on."""
    if one is None or other is None:
        return one is other
    return (
        one.touched == other.touched
        and one.readable_at == other.readable_at
        and one.started == other.started
        and one.ttl_s == other.ttl_s
        and one.ttl == other.ttl
        and one.minimum == other.minimum
    )


def are_alike(one: CacheEntry | None, other: CacheEntry | None, now: float) -> bool:
    """Whether two entries behave alike from `now` on: when they became readable does not matter any more after that."""
    if are_equal(one, other):
        return True
    if one is None or other is None:
        return False
    is_ready = max(one.readable_at, other.readable_at) <= now and max(one.started, other.started) < now
    return is_ready and one.touched == other.touched and _have_one_life(one, other)


def _have_one_life(one: CacheEntry, other: CacheEntry) -> bool:
    return one.ttl_s == other.ttl_s and one.ttl == other.ttl and one.minimum == other.minimum


def _answer_alike(one: CacheEntry | None, other: CacheEntry | None, now: float) -> bool:
    """Whether a call finds the same in two entries that differ, and leaves the same where `other` changes."""
    if one is None or other is None or not _have_one_life(one, other):
        return False
    return one.state(now) == other.state(now) and other.touched < now  # else it is not touched again


class TrackedEntries(dict[Key, CacheEntry]):
    """The entries of a cache; the keys that were looked at or changed are `used`."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[Key] = set()

    def get(self, key: Key, default: Any = None) -> Any:
        self.used.add(key)
        return LOOK_UP(self, key, default)

    def __getitem__(self, key: Key) -> CacheEntry:
        self.used.add(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Key, entry: CacheEntry) -> None:
        self.used.add(key)
        super().__setitem__(key, entry)

    def pop(self, key: Key, default: Any = None) -> Any:
        self.used.add(key)
        return super().pop(key, default)


class TrackedCache(PrefixCache):
    """A cache whose `history` can be asked for its entries after each call."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: TrackedEntries = TrackedEntries()
        self.history = EntryHistory()
        self._is_warm = False

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> CacheEntry:
        self._is_warm = True
        return super().warm(prefix, ttl, rules, start)

    def end_call(self, position: int) -> CacheUse:
        """Note what the call at `position` left; returns what it used."""
        used, is_warm = self._entries.used, self._is_warm
        self._entries.used, self._is_warm = set(), False
        entries, add = self._entries, self.history.add
        changed = [key for key in used if add(key, position, LOOK_UP(entries, key))]
        return CacheUse(tuple([prefix for prefix, _ in used]), tuple(changed), is_warm)


class ChangedEntries(TrackedEntries):
    """Entries where they differ from those of the earlier replay; the others are looked up in its history."""

    def __init__(self, history: EntryHistory) -> None:
        super().__init__()
        self._history = history
        self.position: float = START
        self.absent: set[Key] = set()
        """Keys without an entry where the earlier replay may have one."""

    def get(self, key: Key, default: Any = None) -> Any:
        self.used.add(key)
        return self.look_up(key)

    def look_up(self, key: Key) -> CacheEntry | None:
        """The entry of a key as it is now."""
        if key in self.absent:
            return None
        entry = dict.get(self, key)
        if entry is None and (before := self._history.at(key, self.position)):
            entry = copy(before)
            dict.__setitem__(self, key, entry)
        return entry

    def __getitem__(self, key: Key) -> CacheEntry:
        entry: CacheEntry | None = self.get(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def __setitem__(self, key: Key, entry: CacheEntry) -> None:
        self.absent.discard(key)
        super().__setitem__(key, entry)

    def pop(self, key: Key, default: Any = None) -> Any:
        found = self.get(key)
        self.absent.add(key)
        dict.pop(self, key, None)
        return default if found is None else found

    def settle(self, key: Key, is_as_before: bool) -> None:
        """Keep the entry of a key only where the earlier replay has another one."""
        if is_as_before:
            dict.pop(self, key, None)
            self.absent.discard(key)
        elif dict.get(self, key) is None:
            self.absent.add(key)


class ChangedCache(PrefixCache):
    """The cache of a replay that makes some calls of an earlier one anew. `changed` are the prefixes whose entries
    differ from those of the earlier replay at the same place, each with the number of these entries."""

    def __init__(self, history: EntryHistory) -> None:
        super().__init__()
        self._entries: ChangedEntries = ChangedEntries(history)
        self._history = history
        self._differs: set[Key] = set()
        self.changed: dict[Prefix, int] = {}

    def finds_alike(self, use: CacheUse, now: float, has_loss: bool) -> bool:
        """Whether the call that comes next in the earlier replay, at `now` in seconds, finds what it found there.

        What it lost says how old an entry was. Where it lost nothing, an entry may differ that answers alike.
        """
        if self.changed.keys().isdisjoint(use.prefixes):
            return True
        for key in [(prefix, ttl) for prefix in use.prefixes if prefix in self.changed for ttl in ("", *TTLS)]:
            if key not in self._differs:
                continue
            entry, before = self._entries.look_up(key), self._history.at(key, self._entries.position)
            if are_alike(entry, before, now):
                self._settle(key, True)
            elif has_loss or not _answer_alike(entry, before, now):
                return False
        return True

    def pass_over(self, position: int, changed_before: Iterable[Key] = ()) -> None:
        """The call of the earlier replay at `position` finds what it found there, and changes these keys likewise."""
        self._entries.position = position
        for key in changed_before:
            if key in self._differs:
                self._settle(key, True)

    def end_call(self, position: int, start: float, changed_before: Iterable[Key] = ()) -> None:
        """A call was made that starts at `start` (seconds): the one at `position` of the earlier replay, which changed
        the entries of these keys there, or one after it that is new."""
        entries = self._entries
        used = entries.used.union(changed_before)
        now = [(key, entries.look_up(key)) for key in used]  # before the call at `position` where it did not look
        entries.position, entries.used = position, set()
        for key, entry in now:
            self._settle(key, are_alike(entry, self._history.at(key, position), start))

    def _settle(self, key: Key, is_as_before: bool) -> None:
        """Note whether the entry of a key is as before; where that changes, it differs from now on, or not any more."""
        self._entries.settle(key, is_as_before)
        if is_as_before != (key in self._differs):
            return
        left = self.changed.get(key[0], 0) + (-1 if is_as_before else 1)
        self._differs.symmetric_difference_update((key,))
        if left:
            self.changed[key[0]] = left
        else:
            del self.changed[key[0]]


class LineageAnswers(msgspec.Struct):
    """What the lineage answered to a call: the numbers of the calls that it goes on from and of the latest one of its
    conversation, what was sent before, the first senders of prefixes, whether the conversation had begun (None: it was
    not asked). `is_recent`: it was also compared with other conversations. `deepest` is what was remembered of it."""

    nearest: int = START
    latest: int = START
    shared: Prefix | None = None
    senders: list[tuple[Prefix, int]] = []
    begun: bool | None = None
    is_recent: bool = False
    deepest: BreakpointPrefix | None = None


class TrackedLineage(Lineage):
    """A lineage that notes its answers to each call."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = LineageAnswers()

    def end_call(self) -> LineageAnswers:
        """The answers since the last call."""
        answers, self._answers = self._answers, LineageAnswers()
        return answers

    def find_shared(self, prompt: Prompt) -> Prefix:
        shared = self._answers.shared = super().find_shared(prompt)
        return shared

    def forerunner(self, request: Request, model: str, pool: str) -> Relatives:
        found = super().forerunner(request, model, pool)
        self._answers.nearest, self._answers.latest = number_of(found.nearest), number_of(found.latest)
        return found

    def sender(self, prefix: Prefix) -> EarlierCall | None:
        found = super().sender(prefix)
        self._answers.senders.append((prefix, number_of(found)))
        return found

    def recent(self, apart_from: ConversationLine | None = None) -> Iterator[EarlierCall]:
        self._answers.is_recent = True
        return super().recent(apart_from)

    def has_begun(self, thread: Thread, pool: str) -> bool:
        begun = self._answers.begun = super().has_begun(thread, pool)
        return begun

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
        self._answers.deepest = deepest
        super().remember(number, start, request, prompt, rules, deepest, relatives)


def number_of(call: EarlierCall | None) -> int:
    """The number of an earlier call; 0: there is none."""
    return call.number if call else START
