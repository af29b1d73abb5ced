"""Lint of requests: of one alone, and of a request with the one that goes on from it.

How two blocks at the same place of two requests differ.

What may change in the next request, guessed from one alone: times, ids and counters before a breakpoint.

Checks a request and the next one: does the last breakpoint move, and is it within the lookback?

Compares tools and system of a request and the next one, as far as a breakpoint covers them.

Messages of a request that differ in the next one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from itertools import takewhile, zip_longest
from typing import Any

from cachecost.analysis.lint.finding import (
    LintFinding,
    check_lengths,
    check_parameters,
    check_refusals,
    merge_findings,
    settle,
)
from cachecost.analysis.lint.loaded_request import (
    LAYERS,
    LoadedRequest,
    Place,
    RequestLoader,
    SizedBreakpoint,
    beside_cache,
    excerpt,
    length_state,
    message_place,
    texts,
)
from cachecost.analysis.lint.volatile import KIND_NAMES, VolatileWord, find_volatile_words, kind_of, only_words_changed
from cachecost.caches.breakpoints import first_difference
from cachecost.caches.losses import LONG_TEXT, share_of_long_text
from cachecost.prompts.blocks import Block, Layer, Prefix, Thread, count_equal_blocks
from cachecost.prompts.render import lookback_steps
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import AUTO

VOLATILE, CHANGED, KEY_ORDER = "CC530", "CC533", "CC534"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a block differs from the one before it: the code, where in the block, and in words."""

    code: str
    inner: str
    words: str
    offset: int | None = None
    excerpt: str = ""


def difference(old: Block, new: Block) -> Difference:
    """The difference of two blocks whose digests differ. Without content it is only known that they do."""
    if old.content is None or new.content is None:
        return Difference(CHANGED, "", "differs from the previous request")
    if old.content == new.content:
        return _order(old.content, new.content)
    before, after = list(texts(old.content)), list(texts(new.content))
    if [path for path, _ in before] != [path for path, _ in after]:
        return _first(before, after, is_volatile=False)
    changed = [(one, other) for (_, one), (_, other) in zip(before, after, strict=True) if one != other]
    return _first(before, after, bool(changed) and all(only_words_changed(*pair) for pair in changed))


def _first(before: list[tuple[str, str]], after: list[tuple[str, str]], is_volatile: bool) -> Difference:
    for (path, old), (other, new) in zip(before, after, strict=False):
        if path == other and old != new:
            at = first_difference(old, new)
            shown = excerpt(new, at)
            what = f"{KIND_NAMES[kind_of(new, min(at, len(new) - 1))]} differs" if is_volatile and new else "differs"
            words = f'{what} from the previous request at character {at:,}: "{shown}"'
            return Difference(VOLATILE if is_volatile else CHANGED, path, words, at, shown)
    return Difference(CHANGED, "", "has other fields than in the previous request")


def _order(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    path, before, after = _first_other_order(old, new, "")
    words = f"the same JSON with its keys in another order: {', '.join(after)}; before: {', '.join(before)}"
    return Difference(KEY_ORDER, path, words)


def _first_other_order(old: Any, new: Any, path: str) -> tuple[str, list[str], list[str]]:
    """(path of the first object with another order of keys, the keys before, the keys after)."""
    if isinstance(old, Mapping):
        if list(old) != list(new):
            return path, list(map(str, old)), list(map(str, new))
        pairs = [(f"{path}.{key}".lstrip("."), old[key], new[key]) for key in old]
    elif isinstance(old, list):
        pairs = [
            (f"{path}.{number}".lstrip("."), one, two) for number, (one, two) in enumerate(zip(old, new, strict=True))
        ]
    else:
        pairs = []
    for inner, one, two in pairs:
        found = _first_other_order(one, two, inner)
        if found[1]:
            return found
    return path, [], []


SURE, MAYBE = "CC531", "CC532"
Candidate = tuple[str, str, VolatileWord]
"""Path within the block, the text there, the word in it."""


class Guesser:
    """Looks through the blocks that stand before a breakpoint. Each block is read once, however many requests
    repeat it.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Candidate, ...]] = {}
        self._sent: dict[bytes, tuple[float, float]] = {}

    def may_have_stood_still(self, digest: bytes) -> bool:
        """Whether all requests with this block were sent before the time of day in it could be another."""
        first, last = self._sent.get(digest, (0.0, math.inf))
        return last - first < max((word.step_s for _, _, word in self._known.get(digest, ())), default=0.0)

    def guesses(self, loaded: LoadedRequest) -> Iterator[LintFinding]:
        """One finding a text that holds a candidate: the surest, the first of equals."""
        for place, block in _early_blocks(loaded):
            if not loaded.reaches(place):
                return
            found = self._known.get(block.digest)
            if found is None:
                found = self._known[block.digest] = tuple(_find_candidates(block))
            for candidate in found:
                if loaded.start is not None:
                    first, last = self._sent.get(block.digest, (loaded.start, loaded.start))
                    self._sent[block.digest] = min(first, loaded.start), max(last, loaded.start)
                yield _finding(loaded, place, block, candidate)


def early_blocks(loaded: LoadedRequest) -> Iterator[Block]:
    """The blocks that are looked through, as long as a breakpoint covers them."""
    return (block for _, block in _early_blocks(loaded))


def _early_blocks(loaded: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """Tools, system, and what stands in messages before the first answer, tool results left out."""
    yield from loaded.head()
    messages = takewhile(lambda node: node.message is None or node.message.role != "assistant", loaded.messages())
    for node in messages:
        for index, block in enumerate(node.message_blocks):
            if block.kind == "text":
                yield message_place(node, index), block


def _find_candidates(block: Block) -> Iterator[Candidate]:
    if block.content is None:
        return
    for path, text in texts(block.content):
        found = sorted(find_volatile_words(text), key=lambda one: not one.strong)
        if found:
            yield path, text, found[0]


def _finding(loaded: LoadedRequest, place: Place, block: Block, candidate: Candidate) -> LintFinding:
    inner, text, word = candidate
    in_head = LAYERS[place[0]] is not Layer.MESSAGES
    path = inner_path(loaded.path(place), inner)
    shown = excerpt(text, word.end, word.end - word.start)
    words = f'{KIND_NAMES[word.kind]} at character {word.start:,}: "{shown}"'
    code = SURE if word.strong and in_head else MAYBE
    return LintFinding(code, path, words, loaded.behind(block), word.start, shown, digest=block.digest)


def inner_path(path: str, inner: str) -> str:
    """The path of a text within a block; that of a text block is the block's own."""
    return path if inner in ("", "text") else f"{path}.{inner}"


def check_last_breakpoint(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """The last breakpoint of `b` stands no later than that of `a`, and before the end of `a`, which `b` goes on
    from.
    """
    before, after = a.request.thread, b.request.thread
    grew = after.length > before.length > 0 and after.up_to(before.length) is before
    if not grew or not b.live or length_state(a.total, a.error(a.total), a.rules.minimum_tokens) != "enough":
        return
    end = message_place(before, len(before.message_blocks) - 1)
    last = b.live[-1]
    if last.place < end and not b.is_cached_after(last) and (not a.live or last.place <= a.live[-1].place):
        yield _stuck_finding(a, b, last)


def _stuck_finding(a: LoadedRequest, b: LoadedRequest, last: SizedBreakpoint) -> LintFinding:
    more = b.request.thread.length - a.request.thread.length
    tokens = b.total - last.tokens
    how_long = f"the {tokens:,} tokens after it are" if b.sized else "what comes after it is"
    words = f"the last breakpoint stays here while the conversation grew by {more} messages: {how_long} not cached"
    words += beside_cache(b.bill)
    return LintFinding("CC521", last.path, words, tokens if b.sized else None, bill=b.confirmation)


def check_lookback(a: LoadedRequest, b: LoadedRequest, margin: int) -> Iterator[LintFinding]:
    """How many more positions would put the last breakpoint of `a` out of reach of every breakpoint of `b`: fewer
    than `margin`?
    """
    if not a.live or a.live[-1].state != "enough":
        return
    entry = a.live[-1].prefix
    node: Prefix | None = b.prompt.end
    while node is not None and (node.depth > entry.depth or node.block is None):
        node = node.parent
    if node is not entry:
        return
    breakpoints = [breakpoint for breakpoint in b.live if breakpoint.prefix.depth >= entry.depth]
    if not breakpoints:
        return
    nearest = min(breakpoints, key=lambda breakpoint: _steps(breakpoint, entry, b))
    left = b.rules.lookback_positions - _steps(nearest, entry, b)
    if left < 1:
        yield _exceeded_finding(a, b, nearest, left)
    elif left < margin:
        yield _close_finding(a, b, nearest, left)


def _steps(breakpoint: SizedBreakpoint, entry: Prefix, b: LoadedRequest) -> int:
    return lookback_steps(breakpoint.prefix, entry, b.rules)


def _close_finding(a: LoadedRequest, b: LoadedRequest, breakpoint: SizedBreakpoint, left: int) -> LintFinding:
    more = "one more block puts" if left == 1 else f"{left} more blocks put"
    words = (
        f"{_steps(breakpoint, a.live[-1].prefix, b)} positions back to the last breakpoint of the previous request "
        f"({a.live[-1].path}); the lookback covers {b.rules.lookback_positions - 1}: {more} it out of reach"
    )
    return LintFinding("CC523", breakpoint.path, words, a.live[-1].tokens if a.sized else None)


def _exceeded_finding(a: LoadedRequest, b: LoadedRequest, breakpoint: SizedBreakpoint, left: int) -> LintFinding:
    """What is lost is what lies between the entry that is out of reach and the best of the others."""
    reached = [one.tokens for one in a.live[:-1] if _reaches(b, one.prefix)]
    lost = a.live[-1].tokens - max(reached, default=0)
    words = (
        f"{_steps(breakpoint, a.live[-1].prefix, b)} positions back to the last breakpoint of the previous request "
        f"({a.live[-1].path}), {1 - left} too many: it is missed"
    )
    return LintFinding("CC524", breakpoint.path, words, lost if a.sized else None)


def _reaches(b: LoadedRequest, entry: Prefix) -> bool:
    return any(
        breakpoint.prefix.depth >= entry.depth and _steps(breakpoint, entry, b) < b.rules.lookback_positions
        for breakpoint in b.live
    )


TOOL_ORDER, TOOL_SET, ON_CHANGING = "CC535", "CC536", "CC537"
TOOLS, SYSTEM, MESSAGES = range(3)


def block_finding(a: LoadedRequest, b: LoadedRequest, at: Place, old: Block, now: Place, new: Block) -> LintFinding:
    """The finding about a block of `a` that is another in `b`."""
    return difference_finding(a, b, at, old, b.path(now), difference(old, new))


def difference_finding(
    a: LoadedRequest, b: LoadedRequest, at: Place, old: Block, path: str, how: Difference
) -> LintFinding:
    """The finding about a difference. A breakpoint of `a` on a block that is simply another one can never be read."""
    is_marked = at[0] != TOOLS and any(breakpoint.place == at for breakpoint in a.live)
    code = ON_CHANGING if how.code == CHANGED and is_marked else how.code
    words = f"the breakpoint is on a block that {how.words}" if code == ON_CHANGING else how.words
    return LintFinding(code, inner_path(path, how.inner), words, a.behind(old), how.offset, how.excerpt)


def check_tools(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """Tools in another order, other tools, tools that are defined otherwise."""
    old, new = a.request.tools.blocks, b.request.tools.blocks
    first = count_equal_blocks(old, new)
    if a.request.tools.digest == b.request.tools.digest or not a.reaches((TOOLS, 0, first)):
        return
    if Counter(one.digest for one in old) == Counter(one.digest for one in new):
        yield _order_finding(a, b, old, new, first)
        return
    before, after = _tools_by_name(old), _tools_by_name(new)
    if before is None or after is None:
        yield _set_finding(a, b, first, "the definitions differ from the previous request")
        return
    yield from _check_names(a, b, before, after, first)
    for name in (name for name in after if name in before):
        yield from _check_definition(a, b, before[name], after[name])


def _check_definition(
    a: LoadedRequest, b: LoadedRequest, old: tuple[int, Block], new: tuple[int, Block]
) -> Iterator[LintFinding]:
    if old[1].digest != new[1].digest:
        yield block_finding(a, b, (TOOLS, 0, old[0]), old[1], (TOOLS, 0, new[0]), new[1])


def _check_names(
    a: LoadedRequest,
    b: LoadedRequest,
    before: dict[str, tuple[int, Block]],
    after: dict[str, tuple[int, Block]],
    first: int,
) -> Iterator[LintFinding]:
    came, went = [name for name in after if name not in before], [name for name in before if name not in after]
    if came or went:
        parts = [("added: ", came), ("removed: ", went)]
        yield _set_finding(a, b, first, "; ".join(words + ", ".join(names) for words, names in parts if names))
        return
    old, new = [block for _, block in before.values()], [block for _, block in after.values()]
    if list(before) != list(after):
        yield _order_finding(
            a, b, old, new, next(n for n, (x, y) in enumerate(zip(before, after, strict=True)) if x != y)
        )


def _order_finding(
    a: LoadedRequest, b: LoadedRequest, old: Sequence[Block], new: Sequence[Block], first: int
) -> LintFinding:
    names = _name(new[first]), _name(old[first])
    shown = f": {names[0]} is now where {names[1]} was" if all(names) else ""
    return LintFinding(
        TOOL_ORDER, b.path((TOOLS, 0, first)), f"the same tools in another order{shown}", a.behind(old[first])
    )


def _set_finding(a: LoadedRequest, b: LoadedRequest, first: int, words: str) -> LintFinding:
    """About the first place where the lists part; what is behind it is the same from either list."""
    old, new = a.request.tools.blocks, b.request.tools.blocks
    path = b.path((TOOLS, 0, first)) if first < len(new) else "tools"
    lost = a.behind(old[first]) if first < len(old) else a.live[-1].tokens - a.start_of(SYSTEM)
    return LintFinding(TOOL_SET, path, words, lost if a.sized else None)


def _name(block: Block) -> str:
    return str(block.content.get("name") or "") if block.content else ""


def _tools_by_name(blocks: Sequence[Block]) -> dict[str, tuple[int, Block]] | None:
    """Tools by name with their number; None where names are not known, or not each its own."""
    found = {_name(block): (number, block) for number, block in enumerate(blocks)}
    return found if len(found) == len(blocks) and "" not in found else None


def check_system(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """Blocks of the system prompt that differ, came or went. Web tools at its head are parameters' affair."""
    old, new = ([(at, block) for at, block in one.head() if at[0] == SYSTEM and block.role] for one in (a, b))
    for (at, before), (now, after) in zip(old, new, strict=False):
        if not a.reaches(at):
            return
        if before.digest != after.digest:
            yield block_finding(a, b, at, before, now, after)
    least = min(len(old), len(new))
    if len(old) > least and a.reaches(old[least][0]):
        yield difference_finding(
            a, b, *old[least], a.path(old[least][0]), Difference(CHANGED, "", "is missing from the next request")
        )
    elif len(new) > least and a.reaches((MESSAGES, 0, 0)):
        lost = a.live[-1].tokens - a.start_of(MESSAGES) if a.sized else None
        yield LintFinding(CHANGED, b.path(new[least][0]), "a block was added to the system prompt", lost)


GONE = Difference(CHANGED, "", "is missing from the next request")


def check_messages(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """What was changed in messages that go on: one finding a code, at the first block that has it.

    Another conversation, a message that was taken back, a fork: those are no faults. So a difference counts only
    if later messages of `a` stand in `b` again, or if it is in the last message of `a`, and `b` goes on from there.
    """
    shared = a.request.thread.common(b.request.thread).length
    old, new = a.messages(shared), b.messages(shared)
    if not old or not new:
        return
    kept = {node.message.digest for node in new if node.message and not node.message.is_human}
    stays, is_same = (
        any(node.message.digest in kept for node in old if node.message)
        or (shared == 0 and _rest_stays(old[0], new[0])),
        shared > 0 or _begins_alike(old[0], new[0]),
    )
    found: dict[str, LintFinding] = {}
    for one in _differences(a, b, old, new):
        is_word = one.code in (VOLATILE, KEY_ORDER)
        if stays or ((len(old) == 1 and b.request.thread.length > a.request.thread.length) and (is_same or is_word)):
            found.setdefault(one.code, one)
        if not is_word:
            break
    yield from found.values()


def _rest_stays(old: Thread, new: Thread) -> bool:
    """Whether a long block, or most of a long text, of a first message is in both, and not where they begin."""
    one, other = old.message_blocks, new.message_blocks
    known = {block.digest for block in one if block.size >= LONG_TEXT}
    first = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a.digest != b.digest), len(other))
    if any(block.digest in known for block in other[first:]):
        return True
    return any(share_of_long_text(a, b) for a, b in zip(one[first:], other[first:], strict=False))


def _begins_alike(old: Thread, new: Thread) -> bool:
    one, other = old.message_blocks, new.message_blocks
    return bool(one and other) and one[0].digest == other[0].digest


def _differences(a: LoadedRequest, b: LoadedRequest, old: list[Thread], new: list[Thread]) -> Iterator[LintFinding]:
    """Block by block, until messages no longer correspond, or no breakpoint of `a` comes after."""
    for one, other in zip(old, new, strict=False):
        if one.message is None or other.message is None or one.message.digest == other.message.digest:
            continue
        for before, after in zip_longest(_counted_blocks(one, b), _counted_blocks(other, b)):
            if before is None or not a.reaches(before[0]):
                return
            place, block = before
            if after is None:
                yield difference_finding(a, b, place, block, a.path(place), GONE)
                return
            if block.digest != after[1].digest:
                yield block_finding(a, b, place, block, *after)


def _counted_blocks(node: Thread, b: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """The blocks of a message as they count in `b`: where the model drops thinking, it does not matter who does."""
    human = b.request.thread.human
    drops = not b.rules.keeps_thinking and human is not None and node.length < human.length
    for index, block in enumerate(node.message_blocks):
        if not (drops and block.is_thinking):
            yield message_place(node, index), block


MARGIN = 3
"""A breakpoint that fewer more positions than these would put out of reach is too near to the end of the lookback."""
NO_BREAKPOINT, HEAD_ONLY = "CC520", "CC522"
NOTHING = frozenset({"CC510", "CC511"})
"""Nothing is cached, or perhaps nothing."""
ACCIDENTS = frozenset({VOLATILE, KEY_ORDER, TOOL_ORDER})
"""Changes that are never intended."""
REQUEST_CHECKS = (check_refusals, check_lengths)
"""Checks of one request."""
PAIR_CHECKS = (check_parameters, check_tools, check_system, check_messages)
"""Checks of a request with a breakpoint that counts, and the request after it."""
APART_CHECKS = (check_tools, check_system, check_messages)
"""Checks of requests of different conversations."""
CHANGES = frozenset({VOLATILE, CHANGED, KEY_ORDER, TOOL_ORDER, ON_CHANGING})
"""What differs where the rest is the same; other tools are another agent."""
Index = int
Body = Mapping[str, Any]


class Linter:
    """Takes requests in order; `findings` are what is wrong with them, alone and in pairs."""

    def __init__(self, margin: int = MARGIN) -> None:
        self._margin = margin
        self._guesser = Guesser()
        self._found: list[tuple[Index, LintFinding]] = []
        self._before: list[Index | None] = []
        self._is_live: list[bool] = []
        self._is_log: list[bool] = []
        self._sent_again: set[bytes] = set()
        self._written: set[Prefix] = set()

    def add(
        self,
        loaded: LoadedRequest,
        before: LoadedRequest | None = None,
        before_index: Index | None = None,
        *,
        is_aside: bool = False,
    ) -> Index:
        """Look at a request, and at the step to it from the one before; its number.

        A side call differs on purpose, so only accidental changes are reported for it.
        """
        index = len(self._before)
        self._before.append(before_index)
        self._is_live.append(bool(loaded.live))
        self._is_log.append(loaded.call is not None)
        found = [*(finding for check in REQUEST_CHECKS for finding in check(loaded)), *self._guesser.guesses(loaded)]
        if before is not None:
            self._sent_again |= {one.digest for one in found if one.digest} & {
                block.digest for block in early_blocks(before)
            }
            pair = _check_pair(before, loaded, self._margin, {one.code for one in found})
            pair = settle(before, loaded, pair, self._written)
            found += [one for one in pair if not is_aside or one.code in ACCIDENTS]
        self._sent_again |= _read_digests(loaded, {one.digest for one in found if one.digest})
        self._written |= {breakpoint.prefix for breakpoint in loaded.live}
        self._found += [(index, replace(one, request=loaded.label, call=loaded.call)) for one in found]
        return index

    def add_apart(self, other: LoadedRequest, loaded: LoadedRequest, index: Index) -> None:
        """Look at what the request `index` shares with one of another conversation, behind what differs."""
        found = [one for check in APART_CHECKS for one in check(other, loaded) if one.code in CHANGES]
        settled = settle(other, loaded, found, self._written)
        self._found += [(index, replace(one, request=loaded.label, call=loaded.call)) for one in settled]

    @property
    def findings(self) -> list[LintFinding]:
        """All findings, the worst first, without repeats."""
        continued, in_pair = self._find_continued(), self._in_pairs()
        kept = [
            one
            for index, one in self._found
            if not (one.code in NOTHING and index in continued)
            and not (one.code == NO_BREAKPOINT and self._is_log[index] and index not in in_pair)
        ]
        return merge_findings(_drop_settled(kept, self._sent_again, self._guesser))

    def _find_continued(self) -> set[Index]:
        """Requests that a later one with a breakpoint that counts goes on from: their conversation was only short
        yet.
        """
        continued: set[Index] = set()
        for index in range(len(self._before) - 1, -1, -1):
            before = self._before[index]
            if before is not None and (self._is_live[index] or index in continued):
                continued.add(before)
        return continued

    def _in_pairs(self) -> set[Index]:
        pairs = [(index, before) for index, before in enumerate(self._before) if before is not None]
        return {one for pair in pairs for one in pair}


def _read_digests(loaded: LoadedRequest, digests: Set[bytes]) -> set[bytes]:
    """Those of `digests` whose block the bill shows to be read from the cache: an earlier call sent it, too."""
    read = loaded.bill.usage.read if loaded.bill and not loaded.bill.is_summed else 0
    if not digests or not read:
        return set()
    ends = {node.block.digest: loaded.length(node) for node in loaded.nodes() if node.block}
    return {one for one in digests if ends.get(one, read) + loaded.error(ends.get(one, read)) < read}


def _check_pair(a: LoadedRequest, b: LoadedRequest, margin: int, alone: set[str]) -> Iterator[LintFinding]:
    """What the step from a request to the next one loses, or may lose. `alone` are the codes found in `b` by itself."""
    for check in PAIR_CHECKS if a.live else ():
        yield from check(a, b)
    yield from check_lookback(a, b, margin)
    yield from (one for one in check_last_breakpoint(a, b) if HEAD_ONLY not in alone)


def _drop_settled(found: Sequence[LintFinding], sent_again: set[bytes], guesser: Guesser) -> Iterator[LintFinding]:
    """Without guesses that pairs have settled: the same block was sent again, when a clock in it would have gone on, or
    it was seen to change.
    """
    sightings = {(one.digest, one.request, one.call) for one in found if one.digest}
    again = Counter(digest for digest, _, _ in sightings)
    seen = tuple({one.path for one in found if one.code == VOLATILE})
    for one in found:
        is_guess = one.code in (SURE, MAYBE)
        is_same = one.digest in sent_again or again[one.digest] > 1
        is_same = is_same and not (one.code == SURE and guesser.may_have_stood_still(one.digest))
        if not is_guess or not (is_same or one.path in seen):
            yield one


def lint(
    request_body: Body,
    next_body: Body | None = None,
    *,
    host: str = AUTO_HOST,
    as_of: date | str | None = None,
    tokens: str = AUTO,
    margin: int = MARGIN,
) -> list[LintFinding]:
    """What is wrong with a Messages body, or with it and the one that is sent after it, the worst first.

    `as_of` picks the rules (a date or "2026-03-07"; that of the shipped data), `tokens` the counter. With fewer than
    `margin` more positions between them the last breakpoint of the first would be out of the second's reach.
    Raises InputError where a body is none, CannotEvaluate for what is not known.
    """
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    bodies = [("request", request_body)] + ([("next", next_body)] if next_body is not None else [])
    return lint_bodies(bodies, RequestLoader(RuleBook(as_of=day), host, tokens), margin)


def lint_bodies(bodies: Iterable[tuple[str, Body]], loader: RequestLoader, margin: int = MARGIN) -> list[LintFinding]:
    """As `lint`, for bodies that were sent one after another, each with a name."""
    linter, before = Linter(margin), None
    for number, (label, body) in enumerate(bodies):
        loaded = loader.body(body, label)
        linter.add(loaded, before, number - 1 if number else None)
        before = loaded
    return linter.findings
