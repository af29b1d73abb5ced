"""Lengths from bills (rule 17); the tokenizer only fills the gaps between billed lengths.

A bill without server tools gives up to three lengths: of the prompt (all its input tokens), of the prefix at its last
breakpoint (read + written), and of the prefix at its last 1h breakpoint where 5m ones follow it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import median

from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import CountedSizes
from cachecost.providers.usage import Usage

NO_CALL = 0
"""Calls are numbered from 1."""
MOST_PATHS = 64
"""Conversations whose way is remembered; the one asked for first goes first."""
Points = list[tuple[int, int]]
Bills = dict[int, int]
"""Call number to the length in tokens by its bill."""


@dataclass(frozen=True, slots=True)
class BilledLengths:
    """The billed lengths of a recording, each with the number of its call."""

    prefixes: dict[Prefix, Bills] = field(default_factory=dict)
    prompts: dict[tuple[Prefix, int], Bills] = field(default_factory=dict)
    ends: dict[Prefix, Bills] = field(default_factory=dict)
    """Lengths up to the last block: of whole prompts, less what is counted to come after it."""
    ratios: dict[Prefix, dict[int, float]] = field(default_factory=dict)
    """Billed over estimated length of whole prompts, by what they grow from (the head of a conversation)."""
    _paths: dict[Prefix, Points] = field(default_factory=dict)
    """What all bills tell on the way to the ends that were asked for last."""

    def learn(self, call: int, prompt: Prompt, billed: Usage) -> None:
        """Record the lengths in the bill of one call (a single pass)."""
        self._paths.clear()
        end, tail = _prompt_key(prompt)
        self.prompts.setdefault((end, tail), {})[call] = billed.total_input
        self.ends.setdefault(end, {})[call] = max(0, billed.total_input - tail)
        self.ratios.setdefault(prompt.head, {})[call] = billed.total_input / max(1, prompt.total_tokens)
        cached = billed.read + billed.write
        if cached and prompt.breakpoints:
            self.learn_prefix(call, prompt.breakpoints[-1].prefix, cached)
            hours = [breakpoint.prefix for breakpoint in prompt.breakpoints if breakpoint.ttl == "1h"]
            if billed.write_1h and billed.write_5m and hours:
                self.learn_prefix(call, hours[-1], billed.read + billed.write_1h)

    def learn_prefix(self, call: int, prefix: Prefix, tokens: int) -> None:
        """Record the length of `prefix` by the bill of `call`."""
        self._paths.clear()
        self.prefixes.setdefault(prefix, {})[call] = tokens

    def told_before(self, call: int, prefix: Prefix) -> int | None:
        """The length by the bill of a call before `call`."""
        bills = sorted(self.prefixes.get(prefix, {}).items())
        return next((tokens for number, tokens in bills if number < call), None)

    def told(self, prefix: Prefix) -> int | None:
        """The length by any bill; None: unknown."""
        return other_bill(self.prefixes.get(prefix), NO_CALL)

    def all(self, prompt: Prompt) -> BilledSizes:
        """Lengths for a replay: every bill counts. Costs work for what is new in the prompt."""
        return self._sizes(NO_CALL, prompt, self._path(prompt.end))

    def without(self, call: int, prompt: Prompt) -> BilledSizes:
        """Lengths to validate `call`: only the bills of other calls count."""
        return self._sizes(call, prompt, sorted([(0, 0), *_points(self, call, prompt.end, {})]))

    def _sizes(self, call: int, prompt: Prompt, points: Points) -> BilledSizes:
        others = [ratio for number, ratio in self.ratios.get(prompt.head, {}).items() if number != call]
        return BilledSizes(self, call, points, median(others) if others else 1.0)

    def _path(self, end: Prefix) -> Points:
        """(estimated, billed) tokens of each billed prefix up to `end`, from (0, 0)."""
        known: Prefix | None = end
        while known is not None and known not in self._paths:
            known = known.parent
        before = self._paths[known] if known is not None else [(0, 0)]
        new = sorted(_points(self, NO_CALL, end, self._paths))
        self._paths[end] = path = [*before, *new] if not new or before[-1] <= new[0] else sorted([*before, *new])
        if len(self._paths) > MOST_PATHS:
            del self._paths[next(iter(self._paths))]
        return path


def _prompt_key(prompt: Prompt) -> tuple[Prefix, int]:
    return (prompt.end, prompt.total_tokens - prompt.end.tokens)


def _points(anchors: BilledLengths, call: int, end: Prefix, known: Container[Prefix]) -> Iterator[tuple[int, int]]:
    """(estimated, billed) tokens of each prefix back from `end` that other calls' bills give.

    Stops at a prefix that is `known`.
    """
    node: Prefix | None = end
    while node is not None and node not in known:
        told = other_bill(anchors.prefixes.get(node), call)
        told = other_bill(anchors.ends.get(node), call) if told is None else told
        if told is not None:
            yield (node.tokens, told)
        node = node.parent


def other_bill(bills: Bills | None, call: int) -> int | None:
    """The length by the earliest other call's bill; None: unknown."""
    return next((tokens for number, tokens in sorted((bills or {}).items()) if number != call), None)


@dataclass(frozen=True, slots=True)
class BilledSizes:
    """Lengths for one call: exact where another call was billed, else estimates scaled to fit between those."""

    anchors: BilledLengths
    call: int
    points: list[tuple[int, int]]
    ratio: float

    def of(self, prefix: Prefix) -> int:
        told = self.told(prefix)
        return told if told is not None else self._between(prefix.tokens)

    def told(self, prefix: Prefix) -> int | None:
        """The length by another call's bill; None: only an estimate."""
        return other_bill(self.anchors.prefixes.get(prefix), self.call)

    def told_as_end(self, prefix: Prefix) -> bool:
        """Whether another call's bill gives the length of the prompt that ends here."""
        return other_bill(self.anchors.ends.get(prefix), self.call) is not None

    def total(self, prompt: Prompt) -> int:
        told = other_bill(self.anchors.prompts.get(_prompt_key(prompt)), self.call)
        tail = prompt.total_tokens - prompt.end.tokens
        return told if told is not None else self.of(prompt.end) + tail

    def at(self, counted: int) -> int:
        """Tokens up to the place whose counted position is `counted`."""
        return self._between(counted)

    def doubt(self, tokens: int) -> int:
        """Tokens from the nearest billed length."""
        after = bisect_left(self.points, tokens, key=itemgetter(1))
        return min((abs(tokens - billed) for _, billed in self.points[max(0, after - 1) : after + 1]), default=tokens)

    def doubt_of_total(self, prompt: Prompt) -> int:
        is_told = other_bill(self.anchors.prompts.get(_prompt_key(prompt)), self.call) is not None
        return 0 if is_told else self.doubt(self.total(prompt))

    def _between(self, estimate: int) -> int:
        """Linear between the nearest billed lengths; beyond the last, by the ratio of other bills."""
        after = bisect_left(self.points, (estimate, -1))
        low, at_low = self.points[after - 1] if after else (0, 0)
        if after == len(self.points):
            return at_low + round((estimate - low) * self.ratio)
        high, at_high = self.points[after]
        if high == low:
            return at_high
        return at_low + round((estimate - low) * (at_high - at_low) / (high - low))


class EstimatedSizes(CountedSizes):
    """Lengths without bills: for a prediction without recorded usage."""

    def told(self, prefix: Prefix) -> int | None:
        return None

    def told_as_end(self, prefix: Prefix) -> bool:
        return False
