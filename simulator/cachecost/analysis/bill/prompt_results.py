"""The results of tools in the prompts of billed calls: how many tokens of each were read, written and uncached.

A call's prompt is that of the call before it, its answer, and what people and tools added since then. So the bills say
how many tokens were added; the results among them get their share by length in bytes (an estimate). From there on a
result has its place in every prompt that continues this one, until the history is compacted or cleared; of a
micro-compaction the oldest results go first. What the bill of a call reads, then writes for an hour, then for five
minutes, then leaves uncached is charged in this order, so each result is charged by where it stands (rule 15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cachecost.analysis.bill.call_prices import missing_output
from cachecost.conversations.input_files import BilledCall, SessionFile, ToolResults, unpack_results

RESETS = ("compaction", "clear")
"""Events after which no result is in the prompt."""
BYTES_PER_TOKEN = 2
"""At least: what the bill adds beyond that for a result is something else, such as an attachment."""


class PlacedResult(NamedTuple):
    """A result in a prompt: its place in tokens, and the result before it in the same prompt."""

    name: str
    start: int
    end: int
    before: PlacedResult | None


@dataclass(frozen=True, slots=True)
class PromptResults:
    """The results in the prompt of a call: the last of them, and the tokens of all by name.

    `added` are those that the call was the first to send: (name, tokens).
    """

    last: PlacedResult | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    added: Sequence[tuple[str, int]] = ()

    def unread(self, call: BilledCall, most: int | None = None) -> Iterator[tuple[str, int, int]]:
        """(name, from, to) of what the call did not read, in tokens from the end of what it read; the first `most`."""
        read, one = call.read, self.last
        end = call.total_input if most is None else read + most
        while one is not None and one.end > read:
            if one.name and min(one.end, end) > max(one.start, read):
                yield one.name, max(one.start, read) - read, min(one.end, end) - read
            one = one.before

    def tokens(self, call: BilledCall) -> dict[str, list[int]]:
        """The tokens of each name as the call was billed for them, in the order of a bill."""
        found = {name: [0, count, 0, 0, 0] for name, count in self.totals.items()}
        five, hour = call.tokens[2:4]
        edges = ((3, 0, hour), (2, hour, hour + five), (0, hour + five, call.total_input - call.read))
        for name, start, end in self.unread(call):
            found[name][1] -= end - start
            for position, low, high in edges:
                found[name][position] += max(0, min(end, high) - max(start, low))
        return found

    def then(self, call: BilledCall, before: BilledCall, added: ToolResults | None) -> PromptResults:
        """The results in the prompt of the next call, and those that it adds; where a usage sums several passes, it
        does not say how long the prompt is."""
        last = self.last
        if call.is_summed or before.is_summed:
            return PromptResults(last, self.totals)
        grown = call.total_input - before.total_input - before.tokens[4] - missing_output(before)
        if grown < 0 and "edit" in call.events:
            return self.without_oldest(-grown)
        if last is not None and last.end > call.total_input:
            return PromptResults()
        if added is None or grown <= 0:
            return PromptResults(last, self.totals)
        at, totals, sizes = call.total_input - grown, dict(self.totals), list[tuple[str, int]]()
        for name, size in added.sizes:
            tokens = min(size * grown // max(1, added.input_bytes), size // BYTES_PER_TOKEN)
            last = PlacedResult(name, at, at + tokens, last)
            at += tokens
            if name:
                totals[name] = totals.get(name, 0) + tokens
                sizes.append((name, tokens))
        return PromptResults(last, totals, sizes)

    def without_oldest(self, removed: int) -> PromptResults:
        """The results without the oldest `removed` tokens of them; what follows moves to the front."""
        places, last = list[PlacedResult](), self.last
        while last is not None:
            places.append(last)
            last = last.before
        gone, totals = 0, dict[str, int]()
        for one in reversed(places):
            cut = min(one.end - one.start, removed - gone)
            gone += cut
            if left := one.end - one.start - cut:
                last = PlacedResult(one.name, one.end - left - gone, one.end - gone, last)
                if one.name:
                    totals[one.name] = totals.get(one.name, 0) + left
        return PromptResults(last, totals)


def prompt_results(file: SessionFile, name_of: Callable[[str], str]) -> Iterator[tuple[BilledCall, PromptResults]]:
    """The calls of a file, each with the results in its prompt; none where the file does not show results. `name_of`
    a tool is what its results are counted as ("": not at all)."""
    added = {one.call: one for one in unpack_results(file.results)} if file.results else {}
    for results in added.values():
        results.sizes = [(name_of(tool), size) for tool, size in results.sizes]
    found: list[PromptResults] = []
    for call in file.calls if added else ():
        if not call.before or any(event in call.events for event in RESETS):
            found.append(PromptResults())
        else:
            found.append(found[call.before - 1].then(call, file.calls[call.before - 1], added.get(call.number)))
        yield call, found[-1]
