"""Lengths from bills (rule 17); the tokenizer only fills the gaps between billed lengths.

A bill without server tools gives up to three lengths: of the prompt (all its input tokens), of the prefix at its last
breakpoint (read + written), and of the prefix at its last 1h breakpoint where 5m ones follow it. Where bills
contradict one another, the most that agree count: a longer prefix never has fewer tokens.

What a bill counts and no request shows (`hidden_content`: a search on the provider's side, a video), or nothing counts
(a PDF in most models), is a block of its own: what is around it keeps its estimate, and the rest of the billed tokens
is the hidden block's.

The length for a call is that of the earliest other bill, so the two earliest are all that is kept. Answers that come
back in later prompts have the lengths of the bills of the calls that got them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import attrgetter, itemgetter
from statistics import median
from typing import NamedTuple, TypeVar

import msgspec

from cachecost.caches.reporting import PromptHistory, kept_answer
from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.render import CountedSizes, Prompt
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.tokens.parts import UNRULED, hidden_content

Place = tuple[int, int]
"""Where a prefix ends: its estimated tokens and its depth in blocks. Neither ever falls along a prompt."""
Point = tuple[int, int, int]
"""A place, and the billed tokens up to it."""
START: Point = (0, 0, 0)


class OwnBill(msgspec.Struct, frozen=True):
    """The bill of a prompt: its tokens, and the place up to which it was cached (None: none was)."""

    total: int
    cached: Place | None = None


class _Link(msgspec.Struct, frozen=True, eq=False):
    """A point, and the one before it in the longest row of agreeing lengths that ends here."""

    point: Point
    before: _Link | None

    @property
    def length(self) -> int:
        return self.point[2]

    def row(self) -> list[Point]:
        found, link = [self.point], self.before
        while link is not None:
            found.append(link.point)
            link = link.before
        return found[::-1]


by_length = attrgetter("length")


class Points(msgspec.Struct, frozen=True):
    """The first `count` of these points, which prompts that go on from one another share."""

    shared: list[Point]
    count: int

    def __iter__(self) -> Iterator[Point]:
        return islice(self.shared, self.count)


class Ratios(NamedTuple):
    """Billed over estimated tokens: of the head of a conversation, and of its messages."""

    head: float
    messages: float

    @classmethod
    def of(cls, totals: Sequence[tuple[int, int]], head: int) -> Ratios:
        """What bills say of prompts with one head of so many tokens, as (estimated, billed): where all are off by the
        same tokens, however long their messages are, these are the head's; else all is off by one factor."""
        factors = [billed / estimated for estimated, billed in totals]
        off = [billed - estimated for estimated, billed in totals]
        usual = median(estimated for estimated, _ in totals)
        if head > 0 and max(off) - min(off) < (max(factors) - min(factors)) * usual:
            return cls(max(0.0, 1 + median(off) / head), 1.0)
        return cls(median(factors), median(factors))


class BilledPath:
    """The billed points from the start of a prompt, in order. Going on costs work for what is new.

    The longest path shares its points with those that it goes on from: each of them ends where its `_count` says.
    """

    __slots__ = ("_count", "_links", "_points", "_rows")

    def __init__(self, points: list[Point], count: int, links: list[_Link], rows: list[_Link]) -> None:
        self._points = points
        self._count = count
        self._links = links
        """One for each point; empty as long as all agree."""
        self._rows = rows
        """Of the rows of 1, 2, 3 … agreeing points, those whose last length is the least."""

    @classmethod
    def start(cls) -> BilledPath:
        return cls([START], 1, [], [])

    @property
    def last(self) -> Point:
        return self._points[self._count - 1]

    def then(self, new: Iterable[Point]) -> BilledPath:
        """The path continued by these points."""
        count = self._count
        is_longest = count == len(self._points)
        points = self._points if is_longest else self._points[:count]
        links = self._links if is_longest else self._links[:count]
        path = BilledPath(points, count, links, self._rows.copy())
        for point in new:
            last = path.last
            if point[:2] == last[:2]:
                continue
            if not path._links and point[2] < last[2]:
                path._link_all()
            points.append(point)
            path._count += 1
            if path._links:
                path._link(point)
        return path

    def _link_all(self) -> None:
        self._links = []
        for point in islice(self._points, self._count):
            self._link(point)

    def _link(self, point: Point) -> None:
        place = bisect_right(self._rows, point[2], key=by_length)
        link = _Link(point, self._rows[place - 1] if place else None)
        self._links.append(link)
        self._rows[place : place + 1] = [link]

    def shares(self, points: Points) -> bool:
        """Whether these are the points of the path itself, so that keeping them takes little memory."""
        return points.shared is self._points

    def agreeing(self, own: OwnBill | None) -> Points:
        """The points that count: those of the prompt's own bill, and the most that agree with it and one another.

        A row of agreeing points with the place that its bill cached, if that is billed, and the tokens of the bill, if
        these are fewer, at the end.
        """
        points, count = self._points, self._count
        tokens, depth, last = self.last
        most = last if own is None else min(last, own.total)
        if not self._links and most == last:
            return Points(points, count)
        path = self
        if not self._links:
            path = BilledPath(points, count, [], [])
            path._link_all()
        cached = None if own is None else own.cached
        at = count if cached is None else bisect_left(points, cached, 0, count)
        if at < count - 1 and points[at][:2] == cached and points[at][2] <= most:
            row = path._links[at].row()
            for point in points[at + 1 : count - 1]:
                if row[-1][2] <= point[2] <= most:
                    row.append(point)
        else:
            row = path._rows[bisect_right(path._rows, most, key=by_length) - 1].row()
        if row[-1][:2] != (tokens, depth):
            row.append((tokens, depth, most))
        return Points(row, len(row))


Stated = TypeVar("Stated")
Bills = tuple[int, Stated] | tuple[int, Stated, int, Stated]
"""The number of the earliest call, and what its bill states; then those of the next one, if there is one."""


def add_bill(bills: Bills[Stated] | None, call: int, stated: Stated) -> Bills[Stated]:
    """`bills` with that of `call`, in the place of an older one of the same call."""
    if bills is None or (len(bills) == 2 and bills[0] == call):
        return call, stated
    first, of_first = bills[:2]
    if call < first:
        return call, stated, first, of_first
    if call == first:
        return (call, stated, *bills[2:])
    return bills if len(bills) == 4 and bills[2] < call else (first, of_first, call, stated)


def find_other_bill(bills: Bills[Stated] | None, call: int) -> Stated | None:
    """What the bill of the earliest other call states; None: unknown."""
    if bills is None:
        return None
    if bills[0] != call:
        return bills[1]
    return bills[3] if len(bills) == 4 else None


NO_CALL = 0
"""Calls are numbered from 1."""
MOST_PATHS = 64
"""Conversations whose way is remembered; the one asked for first goes first."""
BILLED = itemgetter(2)
"""The billed tokens of a point."""
PromptKey = tuple[Prefix, int]
"""The last block of a prompt, and the tokens counted after it."""


@dataclass(frozen=True, slots=True)
class BilledLengths:
    """The billed lengths of a recording, each with the number of its call."""

    prefixes: dict[Prefix, Bills[int]] = field(default_factory=dict)
    prompts: dict[PromptKey, Bills[int]] = field(default_factory=dict)
    cached: dict[PromptKey, Bills[Prefix | None]] = field(default_factory=dict)
    """What the bills of whole prompts cached."""
    ends: dict[Prefix, Bills[int]] = field(default_factory=dict)
    """Lengths up to the last block: of whole prompts, less what is counted to come after it."""
    totals: dict[Prefix, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Estimated and billed tokens of whole prompts, by what they grow from (the head of a conversation)."""
    hiding: dict[Prefix, str] = field(default_factory=dict)
    """What is hidden (`hidden_content`) in prefixes that end with a block which hides something."""
    _looked_through: dict[Prefix, str] = field(default_factory=dict)
    """What the first hidden block of each prefix hides; "" for nothing."""
    _paths: dict[Prefix, BilledPath] = field(default_factory=dict)
    """What all bills tell on the way to the ends that were asked for last."""
    _agreeing: dict[PromptKey, Points] = field(default_factory=dict)
    """The points of the prompts that were asked for, where these are shared with others."""
    _usual_ratios: dict[Prefix, Ratios] = field(default_factory=dict)
    """What `totals` say under each head that was asked for."""

    def learn(self, call: int, prompt: Prompt, billed: Usage, answer: Iterable[Block] = ()) -> None:
        """Record the lengths in the bill of one call (a single pass). A bill that counts what its `answer` hides tells
        the length of the whole prompt alone."""
        self._forget_paths()
        end, tail = key = _prompt_key(prompt)
        cached = billed.read + billed.write if prompt.breakpoints else 0
        self.prompts[key] = add_bill(self.prompts.get(key), call, billed.total_input)
        hides = self._look_through(prompt)
        if any(map(hidden_content, answer)):
            return
        self.ends[end] = add_bill(self.ends.get(end), call, max(cached, billed.total_input - tail))
        cached_end = prompt.breakpoints[-1].prefix if cached else None
        self.cached[key] = add_bill(self.cached.get(key), call, cached_end)
        if not hides:
            self.totals.setdefault(prompt.head, {})[call] = (max(1, prompt.total_tokens), billed.total_input)
        if cached_end is not None:
            self.learn_prefix(call, cached_end, cached)
            hours = [breakpoint.prefix for breakpoint in prompt.breakpoints if breakpoint.ttl == "1h"]
            if billed.write_1h and billed.write_5m and hours:
                self.learn_prefix(call, hours[-1], billed.read + billed.write_1h)

    def copy(self) -> BilledLengths:
        """The same lengths, to which other bills may be added."""
        totals = {head: dict(of) for head, of in self.totals.items()}
        learned = dict(self.prefixes), dict(self.prompts), dict(self.cached), dict(self.ends), totals
        return BilledLengths(*learned, self.hiding, self._looked_through)

    def learn_prefix(self, call: int, prefix: Prefix, tokens: int) -> None:
        """Record the length of `prefix` by the bill of `call`."""
        self._forget_paths()
        self.prefixes[prefix] = add_bill(self.prefixes.get(prefix), call, tokens)

    def told_before(self, call: int, prefix: Prefix) -> int | None:
        """The length by the bill of a call before `call`."""
        bills = self.prefixes.get(prefix)
        return bills[1] if bills and bills[0] < call else None

    def told(self, prefix: Prefix) -> int | None:
        """The length by any bill; None: unknown."""
        return find_other_bill(self.prefixes.get(prefix), NO_CALL)

    def tells_beginning(self, prompt: Prompt) -> bool:
        """Whether a bill gives the length of some of the messages that a prompt begins with."""
        messages = takewhile(lambda node: node.layer is Layer.MESSAGES, prefixes_back(prompt.end))
        return any(map(self.tells_length, messages))

    def tells_length(self, prefix: Prefix) -> bool:
        """Whether a bill gives the length of a prefix."""
        return prefix in self.ends or prefix in self.prefixes

    def tells_total(self, prompt: Prompt) -> bool:
        """Whether a bill gives the length of this prompt."""
        return _prompt_key(prompt) in self.prompts

    def all(self, prompt: Prompt) -> BilledSizes:
        """Lengths for a replay: every bill counts. Costs work for what is new in the prompt."""
        key = _prompt_key(prompt)
        points = self._agreeing.get(key)
        if points is None:
            _, known = new_prefixes(prompt.end, self._paths)
            path = self._paths[known] if known is not None else BilledPath.start()
            path = path.then(_points(self, NO_CALL, prompt.end, self._paths, path.last))
            self._paths[prompt.end] = path
            if len(self._paths) > MOST_PATHS:
                del self._paths[next(iter(self._paths))]
            points = path.agreeing(self._own_bill(NO_CALL, key))
            if path.shares(points):
                self._agreeing[key] = points
        return self._sizes(NO_CALL, prompt, points)

    def without(self, call: int, prompt: Prompt) -> BilledSizes:
        """Lengths to validate `call`: only the bills of other calls count."""
        path = BilledPath.start().then(_points(self, call, prompt.end, {}, START))
        return self._sizes(call, prompt, path.agreeing(self._own_bill(call, _prompt_key(prompt))))

    def unknown_part(self, call: int, prompt: Prompt, answer: Iterable[Block] = ()) -> str:
        """What the bill of `call` counts and neither its request nor the bill of another call tells; "": nothing."""
        if self._look_through(prompt):
            for node in prefixes_back(prompt.end):
                if find_other_bill(self.ends.get(node), call) is not None:
                    break
                if hidden := self.hiding.get(node):
                    return hidden
        return next(filter(None, map(hidden_content, answer)), "")

    def _look_through(self, prompt: Prompt) -> str:
        """What the first hidden block of a prompt hides; each prefix is looked at once."""
        new, node = new_prefixes(prompt.end, self._looked_through)
        hidden = self._looked_through[node] if node is not None else ""
        for node in reversed(new):
            block = node.block
            if block is not None and (here := UNRULED if block.digest in prompt.uncounted else hidden_content(block)):
                self.hiding[node] = here
                hidden = hidden or here
            self._looked_through[node] = hidden
        return hidden

    def _forget_paths(self) -> None:
        self._paths.clear()
        self._agreeing.clear()
        self._usual_ratios.clear()

    def _sizes(self, call: int, prompt: Prompt, points: Points) -> BilledSizes:
        """The lengths by these points; what follows the last has the ratios of other calls under its head."""
        ratios = self._usual_ratios.get(prompt.head) if call == NO_CALL else None
        if ratios is None:
            others = [one for number, one in self.totals.get(prompt.head, {}).items() if number != call]
            ratios = Ratios.of(others, prompt.head.tokens) if others else Ratios(1.0, 1.0)
            if call == NO_CALL:
                self._usual_ratios[prompt.head] = ratios
        return BilledSizes(self, call, points.shared, points.count, prompt.head.tokens, ratios)

    def _own_bill(self, call: int, key: PromptKey) -> OwnBill | None:
        total = find_other_bill(self.prompts.get(key), call)
        if total is None:
            return None
        cached = find_other_bill(self.cached.get(key), call)
        return OwnBill(total, None if cached is None else _place(cached))


def _prompt_key(prompt: Prompt) -> PromptKey:
    return (prompt.end, prompt.total_tokens - prompt.end.tokens)


def _place(prefix: Prefix) -> Place:
    return (prefix.tokens, prefix.depth)


def _points(anchors: BilledLengths, call: int, end: Prefix, known: Container[Prefix], before: Point) -> list[Point]:
    """The points of other calls' bills, from the `known` one on. Around hidden blocks the estimates are points, too."""
    found = list[Point]()
    hiding = list[Prefix]()
    for node in new_prefixes(end, known)[0]:
        billed = find_other_bill(anchors.prefixes.get(node), call)
        billed = find_other_bill(anchors.ends.get(node), call) if billed is None else billed
        if billed is not None:
            found.append((node.tokens, node.depth, billed))
        if node in anchors.hiding:
            hiding.append(node)
    return _around_hidden(found[::-1], hiding[::-1], before) if hiding else found[::-1]


def _around_hidden(points: list[Point], hiding: list[Prefix], before: Point) -> list[Point]:
    """`points` with the estimated lengths up to the first and from the last hidden block between two of them."""
    made = list[Point]()
    for point in points:
        within = [node for node in hiding if before[1] < node.depth <= point[1]]
        if within and (start := within[0].parent) is not None:
            low = before[2] + start.tokens - before[0]
            high = point[2] - (point[0] - within[-1].tokens)
            if before[2] <= low <= high <= point[2]:
                made += [(*_place(start), low), (*_place(within[-1]), high)]
        made.append(point)
        before = point
    return made


@dataclass(frozen=True, slots=True)
class BilledSizes:
    """Lengths for one call: exact where another call was billed, else estimates scaled to fit between those.

    They never fall along the prompt: of bills that contradict one another, the first `count` of `points` are
    those that agree.
    """

    anchors: BilledLengths
    call: int
    points: list[Point]
    count: int
    head: int
    ratios: Ratios

    def of(self, prefix: Prefix) -> int:
        return self._length(_place(prefix))

    def told(self, prefix: Prefix) -> int | None:
        """The length by another call's bill, if that counts; None: only an estimate."""
        billed = find_other_bill(self.anchors.prefixes.get(prefix), self.call)
        return billed if billed == self.of(prefix) else None

    def told_as_end(self, prefix: Prefix) -> bool:
        """Whether another call's bill gives the length of the prompt that ends here."""
        return find_other_bill(self.anchors.ends.get(prefix), self.call) is not None

    def total(self, prompt: Prompt) -> int:
        end, tail = key = _prompt_key(prompt)
        billed = find_other_bill(self.anchors.prompts.get(key), self.call)
        return billed if billed is not None else self.of(end) + tail

    def at(self, counted: int) -> int:
        """Tokens up to the place whose counted position is `counted`."""
        return self._length((counted, -1))

    def shared(self) -> tuple[object, Place]:
        """Prompts that go on from one another share their points; lengths up to the last of them depend on no more."""
        return id(self.points), self.points[self.count - 1][:2]

    def doubt(self, tokens: int) -> int:
        """Tokens from the nearest billed length."""
        points, count = self.points, self.count
        after = bisect_left(points, tokens, 0, count, key=BILLED)
        below = tokens - points[after - 1][2] if after else tokens
        return min(below, points[after][2] - tokens) if after < count else below

    def doubt_of_total(self, prompt: Prompt) -> int:
        is_billed = find_other_bill(self.anchors.prompts.get(_prompt_key(prompt)), self.call) is not None
        return 0 if is_billed else self.doubt(self.total(prompt))

    def _length(self, place: Place) -> int:
        """Billed at a point, linear between the nearest ones, and beyond the last by the ratio of other bills."""
        points, count = self.points, self.count
        after = bisect_left(points, place, 0, count)
        low, _, at_low = points[after - 1] if after else START
        if after == count:
            in_head = min(max(0, self.head - low), place[0] - low)
            return at_low + round(in_head * self.ratios.head + (place[0] - low - in_head) * self.ratios.messages)
        high, depth, at_high = points[after]
        if place == (high, depth):
            return at_high
        if high == low:
            return at_low
        return at_low + round((place[0] - low) * (at_high - at_low) / (high - low))


class EstimatedSizes(CountedSizes):
    """Lengths without bills: for a prediction without recorded usage."""

    def told(self, prefix: Prefix) -> int | None:
        return None

    def told_as_end(self, prefix: Prefix) -> bool:
        return False


class AnswerLengths:
    """Learns into `lengths`, call by call in the order they were made."""

    def __init__(self, lengths: BilledLengths) -> None:
        self._lengths = lengths
        self._prompts = PromptHistory()
        self._bills: dict[Prefix, tuple[int, Usage]] = {}

    def learn(
        self, number: int, prompt: Prompt, rules: ModelRules, billed: Usage | None, got: Iterable[Block] = ()
    ) -> None:
        """Learn the length of the answer in the `number`-th call's prompt, then remember the call's own bill, unless it
        counts what the answer that it `got` hides."""
        if rules.bills_reasoning and any(node.is_of_assistant for node in prefixes_back(prompt.end)):
            self._lengths.totals.get(prompt.head, {}).pop(number, None)  # it says nothing of what is visible
        if not rules.keeps_answers:
            return
        asked, answer, is_whole = self._prompts.add_call(prompt.end)
        if asked is not None and asked in self._bills and answer is not None and (is_whole or rules.keeps_reasoning):
            earlier, bill = self._bills[asked]
            kept, length = kept_answer(asked, answer, rules), bill.total_input + bill.output_tokens
            length += rules.answer_end_tokens if kept is answer else kept.tokens - answer.tokens
            self._lengths.learn_prefix(earlier, kept, length)
        if billed is not None and billed.output_tokens and not any(map(hidden_content, got)):
            self._bills[prompt.end] = number, billed
            if not rules.keeps_reasoning:
                self._prompts.note_answer(prompt.end, billed.output_tokens)
