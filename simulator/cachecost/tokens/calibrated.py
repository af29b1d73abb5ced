"""Lengths from bills (rule 17); the tokenizer only fills the gaps between billed lengths.

A bill without server tools gives up to three lengths: of the prompt (all its input tokens), of the prefix at its last
breakpoint (read + written), and of the prefix at its last 1h breakpoint where 5m ones follow it. Where bills
contradict one another, those of `agreeing_lengths` count: a block never weighs less than nothing.

What a bill counts and no request shows (`hidden_content`: a search on the provider's side, a video) is a block of its
own: what is around it keeps its estimate, and the rest of the billed tokens is the hidden block's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import median

from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import CountedSizes
from cachecost.providers.usage import Usage
from cachecost.tokens.agreeing_lengths import START, BilledPath, OwnBill, Place, Point, Points
from cachecost.tokens.content import hidden_content
from cachecost.tokens.earliest_bills import Bills, add_bill, told_by_other

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
    ratios: dict[Prefix, dict[int, float]] = field(default_factory=dict)
    """Billed over estimated length of whole prompts, by what they grow from (the head of a conversation)."""
    hiding: dict[Prefix, str] = field(default_factory=dict)
    """What is hidden (`hidden_content`) in prefixes that end with a block which hides something."""
    _looked_through: dict[Prefix, str] = field(default_factory=dict)
    """What the first hidden block of each prefix hides; "" for nothing."""
    _paths: dict[Prefix, BilledPath] = field(default_factory=dict)
    """What all bills tell on the way to the ends that were asked for last."""
    _agreeing: dict[PromptKey, Points] = field(default_factory=dict)
    """The points of the prompts that were asked for, where these are shared with others."""
    _usual_ratios: dict[Prefix, float] = field(default_factory=dict)
    """The median of `ratios` under each head that was asked for."""

    def learn(self, call: int, prompt: Prompt, billed: Usage, answer: Iterable[Block] = ()) -> None:
        """Record the lengths in the bill of one call (a single pass). A bill that counts what its `answer` hides tells
        the length of the whole prompt alone."""
        self._forget_paths()
        end, tail = key = _prompt_key(prompt)
        cached = billed.read + billed.write if prompt.breakpoints else 0
        self.prompts[key] = add_bill(self.prompts.get(key), call, billed.total_input)
        hides = self._look_through(end)
        if any(map(hidden_content, answer)):
            return
        self.ends[end] = add_bill(self.ends.get(end), call, max(cached, billed.total_input - tail))
        cached_end = prompt.breakpoints[-1].prefix if cached else None
        self.cached[key] = add_bill(self.cached.get(key), call, cached_end)
        if not hides:
            self.ratios.setdefault(prompt.head, {})[call] = billed.total_input / max(1, prompt.total_tokens)
        if cached_end is not None:
            self.learn_prefix(call, cached_end, cached)
            hours = [breakpoint.prefix for breakpoint in prompt.breakpoints if breakpoint.ttl == "1h"]
            if billed.write_1h and billed.write_5m and hours:
                self.learn_prefix(call, hours[-1], billed.read + billed.write_1h)

    def copy(self) -> BilledLengths:
        """The same lengths, to which other bills may be added."""
        ratios = {head: dict(of) for head, of in self.ratios.items()}
        learned = dict(self.prefixes), dict(self.prompts), dict(self.cached), dict(self.ends), ratios
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
        return told_by_other(self.prefixes.get(prefix), NO_CALL)

    def tells_beginning(self, prompt: Prompt) -> bool:
        """Whether a bill gives the length of some of the messages that a prompt begins with."""
        node: Prefix | None = prompt.end
        while node is not None and node.layer is Layer.MESSAGES:
            if node in self.ends or node in self.prefixes:
                return True
            node = node.parent
        return False

    def all(self, prompt: Prompt) -> BilledSizes:
        """Lengths for a replay: every bill counts. Costs work for what is new in the prompt."""
        key = _prompt_key(prompt)
        points = self._agreeing.get(key)
        if points is None:
            path = self._path(prompt.end)
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
        if self._look_through(prompt.end):
            node: Prefix | None = prompt.end
            while node is not None and told_by_other(self.ends.get(node), call) is None:
                if hidden := self.hiding.get(node):
                    return hidden
                node = node.parent
        return next(filter(None, map(hidden_content, answer)), "")

    def _look_through(self, end: Prefix) -> str:
        """What the first hidden block up to `end` hides; each prefix is looked at once."""
        new = list[Prefix]()
        node: Prefix | None = end
        while node is not None and node not in self._looked_through:
            new.append(node)
            node = node.parent
        hidden = self._looked_through[node] if node is not None else ""
        for node in reversed(new):
            if node.block is not None and (here := hidden_content(node.block)):
                self.hiding[node] = here
                hidden = hidden or here
            self._looked_through[node] = hidden
        return hidden

    def _forget_paths(self) -> None:
        self._paths.clear()
        self._agreeing.clear()
        self._usual_ratios.clear()

    def _sizes(self, call: int, prompt: Prompt, points: Points) -> BilledSizes:
        return BilledSizes(self, call, points.shared, points.count, self._ratio(call, prompt.head))

    def _ratio(self, call: int, head: Prefix) -> float:
        """The median ratio of other calls than `call` under this head; 1 where there is none."""
        found = self._usual_ratios.get(head) if call == NO_CALL else None
        if found is None:
            others = [ratio for number, ratio in self.ratios.get(head, {}).items() if number != call]
            found = median(others) if others else 1.0
            if call == NO_CALL:
                self._usual_ratios[head] = found
        return found

    def _own_bill(self, call: int, key: PromptKey) -> OwnBill | None:
        """The bill of a prompt from another call than `call`; None: it has none."""
        total = told_by_other(self.prompts.get(key), call)
        if total is None:
            return None
        cached = told_by_other(self.cached.get(key), call)
        return OwnBill(total, None if cached is None else _place(cached))

    def _path(self, end: Prefix) -> BilledPath:
        """What all bills tell on the way to `end`."""
        known: Prefix | None = end
        while known is not None and known not in self._paths:
            known = known.parent
        before = self._paths[known] if known is not None else BilledPath.start()
        self._paths[end] = path = before.then(_points(self, NO_CALL, end, self._paths, before.last))
        if len(self._paths) > MOST_PATHS:
            del self._paths[next(iter(self._paths))]
        return path


def _prompt_key(prompt: Prompt) -> PromptKey:
    return (prompt.end, prompt.total_tokens - prompt.end.tokens)


def _place(prefix: Prefix) -> Place:
    return (prefix.tokens, prefix.depth)


def _points(anchors: BilledLengths, call: int, end: Prefix, known: Container[Prefix], before: Point) -> list[Point]:
    """The point of each prefix up to `end` that other calls' bills give, from the one that is `known` on, which ends
    `before`. Around hidden blocks the estimates are points, too."""
    found = list[Point]()
    hiding = list[Prefix]()
    node: Prefix | None = end
    while node is not None and node not in known:
        told = told_by_other(anchors.prefixes.get(node), call)
        told = told_by_other(anchors.ends.get(node), call) if told is None else told
        if told is not None:
            found.append((node.tokens, node.depth, told))
        if node in anchors.hiding:
            hiding.append(node)
        node = node.parent
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
    ratio: float

    def of(self, prefix: Prefix) -> int:
        return self._length(_place(prefix))

    def told(self, prefix: Prefix) -> int | None:
        """The length by another call's bill, if that counts; None: only an estimate."""
        told = told_by_other(self.anchors.prefixes.get(prefix), self.call)
        return told if told == self.of(prefix) else None

    def told_as_end(self, prefix: Prefix) -> bool:
        """Whether another call's bill gives the length of the prompt that ends here."""
        return told_by_other(self.anchors.ends.get(prefix), self.call) is not None

    def total(self, prompt: Prompt) -> int:
        told = told_by_other(self.anchors.prompts.get(_prompt_key(prompt)), self.call)
        tail = prompt.total_tokens - prompt.end.tokens
        return told if told is not None else self.of(prompt.end) + tail

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
        is_told = told_by_other(self.anchors.prompts.get(_prompt_key(prompt)), self.call) is not None
        return 0 if is_told else self.doubt(self.total(prompt))

    def _length(self, place: Place) -> int:
        """Billed at a point, linear between the nearest ones, and beyond the last by the ratio of other bills."""
        points, count = self.points, self.count
        after = bisect_left(points, place, 0, count)
        low, _, at_low = points[after - 1] if after else START
        if after == count:
            return at_low + round((place[0] - low) * self.ratio)
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
