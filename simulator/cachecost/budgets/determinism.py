"""Whether the command of a scenario sends the same in both of its runs, and what it costs that it does not.

Where nothing differs, tools and system prompt may still hold what the next run has another of: a name of this machine,
and what `lint` finds in a single request (CC531), unless the second run shows that it stays, as a time under another
clock.

Describes changes: which tool or system block, where in it, and what was written again.

Figures for the limits that are not dollars: breakpoints, lookback, unread writes, stable layers.

Finds the call since which a strategy costs more or less than in its baseline, and the block that caused it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from json import dumps
from pathlib import Path
from typing import Any

from cachecost.analysis.explain.explaining import explain
from cachecost.analysis.lint.loaded_request import texts
from cachecost.analysis.lint.volatile import find_volatile_words
from cachecost.base.formatting import count_text, dollars
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.budgets.source_lines import RunDifference, align, compared_calls, excerpt, find_differences, search_texts
from cachecost.budgets.strategy_replays import (
    Baseline,
    BaselineRow,
    BlockEntry,
    Entries,
    Figures,
    Fingerprints,
    ReplayedStrategy,
)
from cachecost.budgets.verdicts import CostChange, State, Verdict
from cachecost.caches.breakpoints import Outcome, first_difference
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.findings import Finding
from cachecost.ledger.rows import CallRow, LayerTokens
from cachecost.ledger.unread import UnreadTracker
from cachecost.prompts.blocks import Block, Layer, Thread, count_equal_blocks
from cachecost.prompts.render import lookback_steps
from cachecost.prompts.request import Breakpoint, Request, block_at, place_as_sent, sent_breakpoints, wire_path
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO
from cachecost.scenario.loading import RecordedScenario, placed_of
from cachecost.scenario.models import AS_RECORDED
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import workload_as_recorded

REORDERED = "the order of the tools changed"


def describe_finding(finding: Finding, replayed: ReplayedStrategy) -> str:
    """What a finding says changed, naming the tool or block if there is one."""
    now = replayed.request(finding.call)
    was = replayed.request(finding.since) if finding.since else None
    if finding.cause == "tools_changed" and was:
        old, new = was.tools.blocks, now.tools.blocks
        if len(old) != len(new):
            return f"{_many(len(new))} instead of {len(old) or 'none'}"
        index = count_equal_blocks(old, new)
        if sorted(block.digest for block in old) == sorted(block.digest for block in new):
            number = place_as_sent(now, Breakpoint(Layer.TOOLS, index))[2] + 1
            return f"{REORDERED} ({_block_name(now, Layer.TOOLS, index)} is now number {number})"
        return f"{_block_name(now, Layer.TOOLS, index)} changed{_where(old[index], new[index])}"
    if finding.cause == "system_changed" and was:
        return _system(was, now, finding)
    return finding.message


def _many(count: int) -> str:
    return count_text(count, "tool") if count else "no tools"


def _system(was: Request, now: Request, finding: Finding) -> str:
    old, new = was.system.blocks, now.system.blocks
    if len(old) != len(new):
        return f"{count_text(len(new), 'system block')} instead of {len(old) or 'none'}"
    index = count_equal_blocks(old, new)
    if index == len(new):
        return "a parameter that the system prompt depends on changed"
    more = f" ({finding.excerpt.replace(' at character', ', character')})" if finding.excerpt else ""
    return f"{_block_name(now, Layer.SYSTEM, index)} changed{more or _where(old[index], new[index])}"


def _block_name(request: Request, layer: Layer, index: int) -> str:
    """A rendered block in words, by its name or by its number in the request as sent: `tool read`, `system block 2`."""
    breakpoint = Breakpoint(layer, index)
    kind, _, place = place_as_sent(request, breakpoint)
    name = (block_at(request, breakpoint).content or {}).get("name")
    words = "tool" if kind is Layer.TOOLS else "system block"
    return f"{words} {name if isinstance(name, str) and kind is Layer.TOOLS else place + 1}"


def _where(old: Block, new: Block) -> str:
    """ " (description, character 212)"; without content the sizes in bytes: " (812 instead of 790 bytes)"."""
    if old.content is None or new.content is None:
        sizes = f" ({new.size:,} instead of {old.size:,} bytes)"
        return sizes if old.size != new.size else f" ({new.size:,} bytes as before)"
    for key in dict.fromkeys([*old.content, *new.content]):
        one, other = _text(old.content.get(key)), _text(new.content.get(key))
        if one != other:
            return f" ({key}, character {first_difference(one, other)})"
    return " (the order of its keys)"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class HeadChange:
    """A layer that is not as in the baseline: in words, and where on the wire."""

    layer: str
    what: str
    block: str = ""


def describe_head_change(
    layer: str, was: Sequence[BlockEntry] | None, now: Entries, request: Request
) -> HeadChange | None:
    """A changed head in words; `was` None: its blocks are not known.

    None where nothing but digests differs and there is no content: a recording made anew has another key.
    """
    if layer == "parameters":
        return HeadChange(layer, f"{_parameter(was, now)} from the baseline")
    if was is None:
        return HeadChange(layer, f"the {layer} layer differs from the baseline")
    old, new = [entry.digest for entry in was], [digest for digest, _, _ in now]
    noun = "tool" if layer == "tools" else "system block"
    if len(old) != len(new):
        words = count_text(len(new), noun) if new else f"no {noun}s"
        return HeadChange(layer, f"{words} instead of {len(old) or 'none'}")
    if sorted(old) == sorted(new):
        return HeadChange(layer, f"the order of the {noun}s differs from the baseline")
    blocks = request.tools.blocks if layer == "tools" else request.system.blocks
    is_rekeyed = not set(old) & set(new) and all(block.content is None for block in blocks)
    index = _first_changed(was, now, by_size=is_rekeyed)
    if index is None:
        return None
    name = _block_name(request, Layer(layer), index)
    sizes = _sizes(was[index].tokens, now[index][1])
    path = wire_path(request, Breakpoint(Layer(layer), index))
    return HeadChange(layer, f"{name} differs from the baseline ({sizes})", path)


def _first_changed(was: Sequence[BlockEntry], now: Entries, by_size: bool) -> int | None:
    for index, (old, (digest, tokens, _)) in enumerate(zip(was, now, strict=True)):
        if old.tokens != tokens or (not by_size and old.digest != digest):
            return index
    return None


def _sizes(old: int, new: int) -> str:
    return f"{new:,} tokens as before" if old == new else f"{new:,} tokens instead of {old:,}"


def _parameter(was: Sequence[BlockEntry] | None, now: Entries) -> str:
    old = {entry.name: entry.digest for entry in was or ()}
    new = {name: digest for digest, _, name in now}
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"{' and '.join(names)} {'differs' if len(names) == 1 else 'differ'}" if names else "parameters differ"


def effect_of(row: CallRow) -> str:
    """What was paid again: "tools, system and messages written again"."""
    paid = [str(layer) for layer in Layer if _unread(row.by_layer.get(layer))]
    if not paid:
        return ""
    names = f"{', '.join(paid[:-1])} and {paid[-1]}" if len(paid) > 1 else paid[0]
    wrote = row.usage.write_5m + row.usage.write_1h
    return f"{names} {'written again' if wrote >= row.usage.input_tokens else 'sent uncached'}"


def _unread(tokens: LayerTokens | None) -> bool:
    return tokens is not None and tokens.write_5m + tokens.write_1h + tokens.input > 0


OUT_OF_REACH = -1
"""Positions left where an entry was alive and the lookback ended before it."""


@dataclass(frozen=True, slots=True)
class CallFigure:
    """A figure, and the first call that has it."""

    value: int
    call: int


def most_breakpoints(replayed: ReplayedStrategy) -> CallFigure:
    """The most breakpoints that a call sends, the automatic one and those of refused calls included.

    To a host that caches by itself none are sent.
    """
    sent = zip(replayed.calls, replayed.simulated, strict=True)
    counts = (CallFigure(_breakpoints(call, one.rules), number) for number, (call, one) in enumerate(sent, 1))
    return max(counts, key=lambda at: (at.value, -at.call))


def _breakpoints(call: Call, rules: ModelRules | None) -> int:
    return 0 if rules and rules.is_automatic else len(sent_breakpoints(call.request).breakpoints)


def without_lookback(replayed: ReplayedStrategy) -> ModelRules | None:
    """The rules of the first call whose cache has no breakpoints that look back; None: all have."""
    return next((one.rules for one in replayed.simulated if one.rules and not one.rules.uses_breakpoints), None)


def least_margin(replayed: ReplayedStrategy) -> CallFigure | None:
    """The fewest lookback positions that any call had left when it found what it read; None where nothing was read.

    A call that reads at its breakpoint itself has one position less than the window (rule 9).
    """
    found = [CallFigure(left, one.row.call) for one in replayed.simulated if (left := _margin(one)) is not None]
    return min(found, key=lambda at: (at.value, at.call), default=None)


def _margin(one: SimulatedCall) -> int | None:
    if one.row.cause == "lookback_exceeded":
        return OUT_OF_REACH
    if one.rules is None:
        return None
    left = (_positions_left(passed.outcome, one.rules) for passed in one.passes)
    return min((number for number in left if number is not None), default=None)


def _positions_left(outcome: Outcome, rules: ModelRules) -> int | None:
    """Positions behind the hit that the nearest breakpoint could still have looked at."""
    hit = outcome.hit
    breakpoint = next(
        (breakpoint.prefix for breakpoint in outcome.breakpoints if hit and breakpoint.prefix.depth >= hit.depth), None
    )
    if hit is None or breakpoint is None:
        return None
    steps = lookback_steps(breakpoint, hit, rules)
    return rules.lookback_positions - 1 - steps


@dataclass(frozen=True, slots=True)
class UnreadWriteTotals:
    """What was written and never read: tokens, dollars above sending them unmarked, the calls that did it."""

    tokens: int
    extra: Decimal
    calls: tuple[int, ...]


def find_unread_writes(replayed: ReplayedStrategy) -> UnreadWriteTotals:
    """Writes that no later call read.

    The last call of a conversation cannot know that nothing follows, so it is let off; conversations of a single call
    are only if there is one of them (as `explain` does).
    """
    unread = UnreadTracker()
    for one in replayed.simulated:
        for passed in one.passes:
            assert one.prices is not None
            unread.add(one.row.call, passed.outcome, one.prices, passed.sizes)
    let_off = set(_last_calls(replayed))
    calls = tuple(call for call, _ in unread if call not in let_off)
    wasted = unread.of_all(calls)
    return UnreadWriteTotals(wasted.tokens, wasted.extra, calls)


def _last_calls(replayed: ReplayedStrategy) -> Iterator[int]:
    last: dict[tuple[str, Thread], int] = {}
    for number in range(1, len(replayed.calls) + 1):
        last[replayed.conversation(number)] = number
    sizes = Counter(map(replayed.conversation, range(1, len(replayed.calls) + 1)))
    lone = [key for key, size in sizes.items() if size == 1]
    yield from (number for key, number in last.items() if sizes[key] > 1 or len(lone) == 1)


@dataclass(frozen=True, slots=True)
class UnstableLayer:
    """A layer that changed within a conversation: at which calls."""

    layer: Layer
    calls: tuple[int, ...]


def find_unstable_layer(replayed: ReplayedStrategy, layer: Layer) -> UnstableLayer | None:
    """Where `layer` is not what it was in the call before of its conversation and model; None: nowhere.

    Messages are stable while they only grow.
    """
    before: dict[object, int] = {}
    calls = []
    for one in replayed.simulated:
        number = one.row.call
        key = (replayed.conversation(number), one.rules.model if one.rules else replayed.request(number).model)
        if key in before and _differs(replayed, layer, before[key], number):
            calls.append(number)
        before[key] = number
    return UnstableLayer(layer, tuple(calls)) if calls else None


def _differs(replayed: ReplayedStrategy, layer: Layer, earlier: int, later: int) -> bool:
    was, now = replayed.request(earlier), replayed.request(later)
    if layer is Layer.TOOLS:
        return was.tools.digest != now.tools.digest or _cache_key(replayed, earlier, 0) != _cache_key(
            replayed, later, 0
        )
    if layer is Layer.SYSTEM:
        return was.system.digest != now.system.digest or _cache_key(replayed, earlier, 1) != _cache_key(
            replayed, later, 1
        )
    return was.thread.common(now.thread) is not was.thread or _cache_key(replayed, earlier, 2) != _cache_key(
        replayed, later, 2
    )


def _cache_key(replayed: ReplayedStrategy, call: int, layer: int) -> str:
    """The parameters that the layer depends on (rule 2); "" for a call that was refused."""
    passes = replayed.simulated[call - 1].passes
    return passes[0].prompt.cache_keys[layer] if passes else ""


SHOWN = 3
LARGE = Decimal("0.2")
"""Share of all changed dollars, up or down, from which a cause is listed by itself."""


@dataclass(frozen=True, slots=True)
class _ChangedRow:
    """A row whose dollars are not those of the baseline; with `before` None it is new."""

    calls: range
    delta: Decimal
    now: BaselineRow
    before: BaselineRow | None


class Causes:
    """The causes of one strategy's cost today. Findings are computed on first use: they take several replays."""

    def __init__(self, replayed: ReplayedStrategy) -> None:
        self.replayed = replayed
        self._findings: list[Finding] | None = None

    @property
    def findings(self) -> list[Finding]:
        if self._findings is None:
            known = without_lookback(self.replayed) is None
            self._findings = explain(self.replayed.traffic).findings if known else []
        return self._findings

    def avoidable(self) -> tuple[CostChange, ...]:
        """What was avoidable today, most expensive cause first: for limits without a baseline."""
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.code, str(finding.layer)), []).append(finding)
        changes = [self._of_findings(found) for found in groups.values()]
        return limit_changes(sorted(changes, key=lambda change: (-change.cost, change.call)))

    def _of_findings(self, found: Sequence[Finding]) -> CostChange:
        first = min(found, key=lambda one: one.call)
        cost = sum((one.cost for one in found), ZERO)
        calls = len({one.call for one in found})
        return self.change(first, calls, cost)

    def change(self, finding: Finding, calls: int, cost: Decimal) -> CostChange:
        row = self.replayed.rows[finding.call - 1]
        what = describe_finding(finding, self.replayed)
        return CostChange(
            finding.call, calls, cost, what, effect_of(row), finding.code, str(finding.layer), finding.block
        )

    def since(self, baseline: Baseline, now: Baseline) -> tuple[CostChange, ...]:
        """What changed since the baseline; the dollars add up to the difference, exactly."""
        before, today = baseline.strategies[self.replayed.strategy], now.strategies[self.replayed.strategy]
        changed_rows = list(_find_changed_rows(before, today, Fingerprints(self.replayed), self.replayed))
        heads = _Heads(baseline, before, self.replayed)
        groups: dict[str, list[CostChange]] = {}
        for one in changed_rows:
            change = self._why(one, heads)
            groups.setdefault(_key(change), []).append(change)
        changes = [_together(changes) for changes in groups.values()]
        changes = sorted(changes, key=lambda change: (-abs(change.cost), change.call))
        fewer = _fewer(before, today)
        return limit_changes([*changes, *fewer])

    def _why(self, one: _ChangedRow, heads: _Heads) -> CostChange:
        """What a row's difference comes from: a miss that today's replay explains, else what was sent."""
        plain = CostChange(one.calls[0], len(one.calls), one.delta, last=one.calls[-1] if len(one.calls) > 1 else 0)
        if one.before is None:
            return replace(plain, what="calls that are not in the baseline", last=0)
        if one.now.read < one.before.read and (found := self._finding(one.calls)):
            return replace(self.change(found, plain.calls, plain.cost), last=0)
        head = next((changes for call in one.calls if (changes := heads.find_change(call))), None)
        if head:
            effect = self._effect(one)
            return replace(plain, what=head.what, layer=head.layer, block=head.block, effect=effect, last=0)
        what = _describe_request_change(one.before, one.now, heads.is_known(one.calls[-1]))
        return replace(plain, what=what, layer="messages", effect=self._effect(one))

    def _finding(self, calls: Iterable[int]) -> Finding | None:
        found = [one for one in self.findings if one.call in calls]
        return max(found, key=lambda one: (one.cost, -one.call), default=None)

    def _effect(self, one: _ChangedRow) -> str:
        assert one.before is not None
        if one.now.read < one.before.read:
            worst = max((self.replayed.rows[call - 1] for call in one.calls), key=lambda row: row.cost.total)
            return effect_of(worst)
        more = one.now.read + one.now.other - one.before.read - one.before.other
        return f"{abs(more):,} tokens {'longer' if more > 0 else 'shorter'}" if more else ""


def _key(change: CostChange) -> str:
    """What makes differences of several calls one: the code and place, else the words without their numbers."""
    return (
        f"{change.code} {change.layer} {change.block if change.layer != 'messages' else ''}"
        if change.code
        else (f"{change.layer} {change.block} {change.what.split(' (')[0]}")
    )


def _together(changes: Sequence[CostChange]) -> CostChange:
    """One change for all: the first that cost something, with the dollars of all."""
    lead = next((one for one in changes if one.cost > 0), changes[0])
    cost = sum((one.cost for one in changes), ZERO)
    return replace(lead, calls=sum(one.calls for one in changes), cost=cost)


def limit_changes(changes: Sequence[CostChange]) -> tuple[CostChange, ...]:
    """The causes that matter, and all others in one."""
    changed_rows = sum((abs(one.cost) for one in changes), ZERO)
    shown = [one for number, one in enumerate(changes) if not number or abs(one.cost) >= LARGE * changed_rows][:SHOWN]
    rest = [one for one in changes if one not in shown]
    if not rest:
        return tuple(shown)
    cost = sum((one.cost for one in rest), ZERO)
    return (*shown, CostChange(min(one.call for one in rest), sum(one.calls for one in rest), cost))


def _find_changed_rows(
    before: Figures, today: Figures, fingerprints: Fingerprints, replayed: ReplayedStrategy
) -> Iterator[_ChangedRow]:
    """Rows of today that cost something else, cut as the baseline's."""
    from cachecost.budgets.strategy_replays import rows_of

    step, known = before.calls_a_row, {row.call: row for row in before.rows}
    for row in rows_of(replayed, fingerprints, step):
        calls = range(row.call, min(row.call + step, len(replayed.calls) + 1))
        old = known.get(row.call)
        delta = row.cost - (old.cost if old else ZERO)
        if delta:
            yield _ChangedRow(calls, delta, row, old)


def _fewer(before: Figures, today: Figures) -> list[CostChange]:
    gone = [row for row in before.rows if row.call > today.calls]
    if not gone:
        return []
    cost = -sum((row.cost for row in gone), ZERO)
    return [CostChange(gone[0].call, before.calls - today.calls, cost, "calls that are no longer made")]


def _describe_request_change(before: BaselineRow, now: BaselineRow, is_head_known: bool) -> str:
    if before.prompt != now.prompt:
        return f"{'messages' if is_head_known else 'prompts'} differ from the baseline"
    if before.breakpoints != now.breakpoints:
        return "the breakpoints moved since the baseline"
    if before.read != now.read:
        return "identical prompts read other entries than in the baseline, because times or calls between them changed"
    if before.output != now.output:
        return "answer lengths differ from the baseline"
    return "the TTLs of cache writes differ from the baseline"


class _Heads:
    """Tools, system and parameters of each call, in the baseline and now."""

    def __init__(self, baseline: Baseline, before: Figures, replayed: ReplayedStrategy) -> None:
        self._before, self._replayed, self._fingerprints = before, replayed, Fingerprints(replayed)
        self._baseline = baseline
        self._learned: dict[tuple[str, str], HeadChange] = {}

    def is_known(self, call: int) -> bool:
        """Whether the baseline lists the head of this call; past that, a head that was another before still is."""
        return self._before.heads_known_to is None or call <= self._before.heads_known_to

    def find_change(self, call: int) -> HeadChange | None:
        """The first layer of a call that is not as in the baseline, in words; None where all are, or are not known."""
        if not self.is_known(call):
            layers = self._fingerprints.layers(call).items()
            return next((found for name, (digest, _) in layers if (found := self._learned.get((name, digest)))), None)
        for layer, (digest, entries) in self._fingerprints.layers(call).items():
            was = _at(self._before, layer, call)
            if was is not None and was != digest:
                before, request = self._baseline.parts.get(was), self._replayed.request(call)
                if changes := describe_head_change(layer, before, entries, request):
                    self._learned[layer, digest] = changes
                    return changes
        return None


def _at(figures: Figures, layer: str, call: int) -> str | None:
    found = [head.digest for head in figures.heads if head.layer == layer and head.call <= call]
    return found[-1] if found else None


NAME = "deterministic"
RECORDING = ("conversation", "recording")
PAUSE_S = 2.0
"""Seconds from the last call of the first run to the first of the second, and from one to the next."""


def check_determinism(recorded: RecordedScenario, folder: Path) -> list[Verdict]:
    """The verdict on the two runs of a command; nothing where it ran once or there is none."""
    if not recorded.runs:
        return []
    first, has_two = recorded.runs[0], len(recorded.runs) > 1
    second = align(first, recorded.runs[1]) if has_two else first
    differences = find_differences(first, second)
    if not differences:
        if volatile := list(_find_volatile(recorded)):
            one, rest = volatile[0], len(volatile) - 1
            more = f" and {count_text(rest, 'more place')}" if rest else ""
            message = f"{AS_RECORDED} may send other bytes in the next run: {one.what}{more}."
            return [_verdict(recorded, len(volatile), message, tuple(volatile))]
        clock = f"; the second run's clock: {recorded.clock or 'as the first'}"
        return [_verdict(recorded, 0, f"{AS_RECORDED} sends the same bytes in both runs{clock}.")] if has_two else []
    same, other = (_costs_after_first(recorded, folder, run) for run in (recorded.runs[0], second))
    changes = _changes(
        differences,
        [
            _determinism_at(other, number) - _determinism_at(same, number)
            for number in range(max(len(same), len(other)))
        ],
    )
    return [_verdict(recorded, len(changes), _message(differences, changes), limit_changes(changes))]


def _find_volatile(recorded: RecordedScenario) -> Iterator[CostChange]:
    """What a run alone shows of tools and system prompts, a place each: that another run would send something else."""
    places: dict[str, list[CostChange]] = {}
    for number, call in enumerate(compared_calls(recorded.runs[0]), 1):
        for layer in (Layer.TOOLS, Layer.SYSTEM):
            for block in call.blocks[layer]:
                for inner, text in texts(block.content):
                    if found := _first_volatile(text, recorded):
                        at, kind = found
                        path = f"{block.path}.{inner}"
                        what = f"{path}, character {at:,} ({kind}): “{excerpt(text, at)}”"
                        search = search_texts(text[:at], text, at)
                        change = CostChange(number, 1, ZERO, what, layer=str(layer), block=block.path, search=search)
                        places.setdefault(path, []).append(change)
    yield from (replace(found[0], calls=len(found)) for found in places.values())


def _first_volatile(text: str, recorded: RecordedScenario) -> tuple[int, str] | None:
    found = [
        (match.start(), kind)
        for kind, name in recorded.machine.items()
        if (match := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))
    ]
    has_two = len(recorded.runs) > 1
    for word in find_volatile_words(text):
        is_shown_to_stay = has_two and (word.kind != "time" or recorded.clock)
        if word.strong and not is_shown_to_stay:
            found.append((word.start, word.kind))
    return min(found, default=None)


def _message(differences: Sequence[RunDifference], changes: Sequence[CostChange]) -> str:
    first, rest = differences[0], len(changes) - 1
    more = f" and {count_text(rest, 'more place')}" if rest else ""
    cost = sum((one.cost for one in changes), ZERO)
    words = f"the second costs {dollars(cost)} more for it" if cost > 0 else "here that costs nothing more"
    where = f"{first.path} ({first.kind}) from call {first.call} on{more}"
    return f"{AS_RECORDED} is not deterministic: two runs differ in {where}; {words}."


def _verdict(recorded: RecordedScenario, places: int, message: str, changes: tuple[CostChange, ...] = ()) -> Verdict:
    place = placed_of(recorded.scenario).place(RECORDING)
    state: State = "fail" if places else "pass"
    return Verdict(recorded.scenario.name, AS_RECORDED, NAME, ZERO, Decimal(places), state, message, place, changes)


def _changes(differences: Sequence[RunDifference], costs: Sequence[Decimal]) -> list[CostChange]:
    """A change for each place, the most expensive first. What a call costs more is the effect of the first of its
    differences, in the order of the prompt; all that the others could break is broken by then.
    """
    by_place: dict[str, list[RunDifference]] = {}
    for one in differences:
        by_place.setdefault(one.path, []).append(one)
    lead = {one.call: one.path for one in reversed(differences)}
    changes = []
    for path, found in by_place.items():
        cost = sum((_determinism_at(costs, call - 1) for call, led in lead.items() if led == path), ZERO)
        first = found[0]
        changes.append(
            CostChange(
                first.call, len(found), cost, _words(first), layer=first.layer, block=first.block, search=first.search
            )
        )
    return sorted(changes, key=lambda change: (-change.cost, change.call))


def _words(one: RunDifference) -> str:
    return f"{one.path}, character {one.character:,} ({one.kind}): “{one.first}”, then “{one.second}”"


def _costs_after_first(recorded: RecordedScenario, folder: Path, second: Sequence[RecordedCall]) -> list[Decimal]:
    """What each call of `second` costs, right after those of the first run and at their pace."""
    first = recorded.runs[0]
    later = first[-1].start + PAUSE_S
    calls = [*first, *(_at_time(call, later + PAUSE_S * number) for number, call in enumerate(second))]
    simulation = workload_as_recorded(recorded.scenario, folder, calls).simulation()
    return [simulation.simulate(call).row.cost.total for call in calls][len(first) :]


def _at_time(call: RecordedCall, start: float) -> RecordedCall:
    return replace(call, start=start, timestamp=iso_milliseconds(start), day=day_of(start))


def _determinism_at(costs: Sequence[Decimal], number: int) -> Decimal:
    return costs[number] if number < len(costs) else ZERO
