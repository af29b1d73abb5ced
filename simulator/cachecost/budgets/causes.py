"""The call since which a strategy costs more or less than in its baseline, and the block that caused it, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.explain.explaining import explain
from cachecost.base.formatting import count_text
from cachecost.budgets.baseline import Baseline, BaselineRow, BlockEntry, Entries, Figures, Fingerprints, rows_of
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.budgets.verdicts import (
    CostChange,
)
from cachecost.ledger.findings import Finding
from cachecost.ledger.rows import CallRow, LayerTokens
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import (
    first_changed_block,
    first_difference,
    value_text,
)
from cachecost.prompts.request import Breakpoint, Request, block_at, place_as_sent, wire_path
from cachecost.providers.usage import ZERO

REORDERED = "the order of the tools changed"


def describe_finding(finding: Finding, replayed: ReplayedStrategy) -> str:
    """What a finding says changed, naming the tool or block if there is one."""
    now = replayed.request(finding.call)
    was = replayed.request(finding.since) if finding.since else None
    if finding.cause == "tools_changed" and was:
        old, new = was.tools.blocks, now.tools.blocks
        if len(old) != len(new):
            return f"{count_text(len(new), 'tool') if new else 'no tools'} instead of {len(old) or 'none'}"
        index = first_changed_block(old, new)
        if sorted(block.digest for block in old) == sorted(block.digest for block in new):
            number = place_as_sent(now, Breakpoint(Layer.TOOLS, index))[2] + 1
            return f"{REORDERED} ({_block_name(now, Layer.TOOLS, index)} is now number {number})"
        return f"{_block_name(now, Layer.TOOLS, index)} changed{_where(old[index], new[index])}"
    if finding.cause == "system_changed" and was:
        return _system(was, now, finding)
    return finding.message


def _system(was: Request, now: Request, finding: Finding) -> str:
    old, new = was.system.blocks, now.system.blocks
    if len(old) != len(new):
        return f"{count_text(len(new), 'system block')} instead of {len(old) or 'none'}"
    index = first_changed_block(old, new)
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
        one, other = value_text(old.content.get(key)), value_text(new.content.get(key))
        if one != other:
            return f" ({key}, character {first_difference(one, other)})"
    return " (the order of its keys)"


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
    both = enumerate(zip(was, now, strict=True))
    differing = (at for at, (one, other) in both if _differ(one, other, by_size=is_rekeyed))
    if (index := next(differing, None)) is None:
        return None
    name = _block_name(request, Layer(layer), index)
    sizes = _sizes(was[index].tokens, now[index][1])
    path = wire_path(request, Breakpoint(Layer(layer), index))
    return HeadChange(layer, f"{name} differs from the baseline ({sizes})", path)


def _differ(was: BlockEntry, now: tuple[str, int, str], by_size: bool) -> bool:
    digest, tokens, _ = now
    return was.tokens != tokens or (not by_size and was.digest != digest)


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
            known = self.replayed.rules_without_lookback is None
            self._findings = explain(self.replayed.traffic).findings if known else []
        return self._findings

    def avoidable(self) -> tuple[CostChange, ...]:
        """What was avoidable today, most expensive cause first: for limits without a baseline."""
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.code, str(finding.layer)), []).append(finding)
        changes = [
            self.change(
                min(found, key=lambda one: one.call),
                len({one.call for one in found}),
                sum((one.cost for one in found), ZERO),
            )
            for found in groups.values()
        ]
        return limit_changes(sorted(changes, key=lambda change: (-change.cost, change.call)))

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
        if gone := [row for row in before.rows if row.call > today.calls]:
            cost = -sum((row.cost for row in gone), ZERO)
            number = before.calls - today.calls
            changes.append(CostChange(gone[0].call, number, cost, "calls that are no longer made"))
        return limit_changes(changes)

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
    step, known = before.calls_a_row, {row.call: row for row in before.rows}
    for row in rows_of(replayed, fingerprints, step):
        calls = range(row.call, min(row.call + step, len(replayed.calls) + 1))
        old = known.get(row.call)
        delta = row.cost - (old.cost if old else ZERO)
        if delta:
            yield _ChangedRow(calls, delta, row, old)


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
