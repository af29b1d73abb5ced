"""The call since which a strategy costs more or less than in its baseline, and the block that caused it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from cachecost.analysis.explain.explaining import explain
from cachecost.base.formatting import all_of, count_text
from cachecost.base.structs import replace
from cachecost.budgets.baseline import Baseline, BaselineRow, BlockEntry, Entries, Figures, Fingerprints, rows_of
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.budgets.verdicts import CostChange
from cachecost.ledger.findings import Finding
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import first_changed_block, first_difference, value_text
from cachecost.prompts.request import Breakpoint, Request, block_at, place_as_sent, wire_path
from cachecost.providers.usage import ZERO

REORDERED = "the order of the tools changed"
SHOWN = 3
LARGE = Decimal("0.2")
"""Share of all changed dollars, up or down, from which a cause is listed by itself."""


def describe_finding(finding: Finding, replayed: ReplayedStrategy) -> str:
    """What a finding says changed, naming the tool or block if there is one."""
    layer = {"tools_changed": Layer.TOOLS, "system_changed": Layer.SYSTEM}.get(finding.cause)
    if layer is None or not finding.since:
        return finding.message
    was, now = replayed.request(finding.since), replayed.request(finding.call)
    is_tools = layer is Layer.TOOLS
    old, new = (one.tools.blocks if is_tools else one.system.blocks for one in (was, now))
    if len(old) != len(new):
        count = count_text(len(new), "tool" if is_tools else "system block")
        return f"{count if new or not is_tools else 'no tools'} instead of {len(old) or 'none'}"
    index = first_changed_block(old, new)
    if is_tools and sorted(block.digest for block in old) == sorted(block.digest for block in new):
        number = place_as_sent(now, Breakpoint(layer, index))[2] + 1
        return f"{REORDERED} ({_block_name(now, layer, index)} is now number {number})"
    if not is_tools and index == len(new):
        return "a parameter that the system prompt depends on changed"
    where = _difference_place(old[index], new[index])
    if finding.excerpt and not is_tools:
        where = f" ({finding.excerpt.replace(' at character', ', character')})"
    return f"{_block_name(now, layer, index)} changed{where}"


def _block_name(request: Request, layer: Layer, index: int) -> str:
    """A rendered block in words, by its name or by its number in the request as sent: `tool read`, `system block 2`."""
    breakpoint = Breakpoint(layer, index)
    kind, _, place = place_as_sent(request, breakpoint)
    name = (block_at(request, breakpoint).content or {}).get("name")
    words = "tool" if kind is Layer.TOOLS else "system block"
    return f"{words} {name if isinstance(name, str) and kind is Layer.TOOLS else place + 1}"


def _difference_place(old: Block, new: Block) -> str:
    """ " (description, character 212)"; without content the sizes in bytes: " (812 instead of 790 bytes)"."""
    if old.content is None or new.content is None:
        sizes = f" ({new.size:,} instead of {old.size:,} bytes)"
        return sizes if old.size != new.size else f" ({new.size:,} bytes as before)"
    for key in dict.fromkeys([*old.content, *new.content]):
        one, other = value_text(old.content.get(key)), value_text(new.content.get(key))
        if one != other:
            return f" ({key}, character {first_difference(one, other)})"
    return " (the order of its keys)"


class HeadChange(NamedTuple):
    """A layer that is not as in the baseline: in words, and where on the wire."""

    layer: str
    what: str
    block: str = ""


def describe_head_change(
    layer: str, was: Sequence[BlockEntry] | None, now: Entries, request: Request
) -> HeadChange | None:
    """A changed head in words; `was` None: its blocks are not known. None where nothing but digests differs and there
    is no content: a recording made anew has another key."""
    if layer == "parameters":
        then, today = ({one.name: one.digest for one in entries} for entries in (was or (), now))
        names = sorted(name for name in then.keys() | today.keys() if then.get(name) != today.get(name))
        words = f"{' and '.join(names)} {'differs' if len(names) == 1 else 'differ'}" if names else "parameters differ"
        return HeadChange(layer, f"{words} from the baseline")
    if was is None:
        return HeadChange(layer, f"the {layer} layer differs from the baseline")
    old, new = [entry.digest for entry in was], [entry.digest for entry in now]
    noun = "tool" if layer == "tools" else "system block"
    if len(old) != len(new):
        words = count_text(len(new), noun) if new else f"no {noun}s"
        return HeadChange(layer, f"{words} instead of {len(old) or 'none'}")
    if sorted(old) == sorted(new):
        return HeadChange(layer, f"the order of the {noun}s differs from the baseline")
    blocks = request.tools.blocks if layer == "tools" else request.system.blocks
    is_rekeyed = not set(old) & set(new) and all(block.content is None for block in blocks)
    for index, (before, after) in enumerate(zip(was, now, strict=True)):
        if before.tokens != after.tokens or (not is_rekeyed and before.digest != after.digest):
            name = _block_name(request, Layer(layer), index)
            size = "as before" if before.tokens == after.tokens else f"instead of {before.tokens:,}"
            path = wire_path(request, Breakpoint(Layer(layer), index))
            return HeadChange(layer, f"{name} differs from the baseline ({after.tokens:,} tokens {size})", path)
    return None


def effect_of(row: CallRow) -> str:
    """What was paid again: "tools, system and messages written again"."""
    paid = [
        str(layer)
        for layer in Layer
        if (one := row.by_layer.get(layer)) is not None and one.write_5m + one.write_1h + one.input > 0
    ]
    if not paid:
        return ""
    wrote = row.usage.write_5m + row.usage.write_1h
    return f"{all_of(paid)} {'written again' if wrote >= row.usage.input_tokens else 'sent uncached'}"


class Causes:
    """The causes of one strategy's cost today. Findings are computed on first use: they take several replays."""

    def __init__(self, replayed: ReplayedStrategy) -> None:
        self.replayed = replayed

    @cached_property
    def findings(self) -> list[Finding]:
        return explain(self.replayed.traffic).findings if self.replayed.rules_without_lookback is None else []

    def avoidable(self) -> tuple[CostChange, ...]:
        """What was avoidable today, most expensive cause first: for limits without a baseline."""
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.code, str(finding.layer)), []).append(finding)
        changes = []
        for found in groups.values():
            cost = sum((one.cost for one in found), ZERO)
            first = min(found, key=lambda one: one.call)
            changes.append(self.change(first, len({one.call for one in found}), cost))
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
        heads = _Heads(baseline, before, self.replayed)
        step, known = before.calls_a_row, {row.call: row for row in before.rows}
        groups: dict[str, list[CostChange]] = {}
        for row in rows_of(self.replayed, Fingerprints(self.replayed), step):  # today's, cut as the baseline's
            old = known.get(row.call)
            delta = row.cost - (old.cost if old else ZERO)
            if delta:
                calls = range(row.call, min(row.call + step, len(self.replayed.calls) + 1))
                one = self._explain_row(calls, delta, row, old, heads)
                # Differences of several calls are one by code and place, else by the words without their numbers.
                key = f"{one.layer} {one.block} {one.what.split(' (')[0]}"
                if one.code:
                    key = f"{one.code} {one.layer} {one.block if one.layer != 'messages' else ''}"
                groups.setdefault(key, []).append(one)
        changes = [
            replace(
                next((one for one in group if one.cost > 0), group[0]),
                calls=sum(one.calls for one in group),
                cost=sum((one.cost for one in group), ZERO),
            )
            for group in groups.values()
        ]
        changes.sort(key=lambda change: (-abs(change.cost), change.call))
        if gone := [row for row in before.rows if row.call > today.calls]:
            cost = -sum((row.cost for row in gone), ZERO)
            number = before.calls - today.calls
            changes.append(CostChange(gone[0].call, number, cost, "calls that are no longer made"))
        return limit_changes(changes)

    def _explain_row(
        self, calls: range, delta: Decimal, now: BaselineRow, before: BaselineRow | None, heads: _Heads
    ) -> CostChange:
        """What a row's difference comes from: a miss that today's replay explains, else what was sent."""
        plain = CostChange(calls[0], len(calls), delta)
        if before is None:
            return replace(plain, what="calls that are not in the baseline")
        if now.read < before.read:
            found = [one for one in self.findings if one.call in calls]
            if found:
                return self.change(max(found, key=lambda one: (one.cost, -one.call)), plain.calls, delta)
            worst = max((self.replayed.rows[call - 1] for call in calls), key=lambda row: row.cost.total)
            effect = effect_of(worst)
        else:
            more = now.read + now.other - before.read - before.other
            effect = f"{abs(more):,} tokens {'longer' if more > 0 else 'shorter'}" if more else ""
        head = next((changes for call in calls if (changes := heads.find_change(call))), None)
        if head:
            return replace(plain, what=head.what, layer=head.layer, block=head.block, effect=effect)
        if before.prompt != now.prompt:
            what = f"{'messages' if heads.is_known(calls[-1]) else 'prompts'} differ from the baseline"
        elif before.breakpoints != now.breakpoints:
            what = "the breakpoints moved since the baseline"
        elif before.read != now.read:
            what = "identical prompts read other entries than in the baseline"
            what += ", because times or calls between them changed"
        elif before.output != now.output:
            what = "answer lengths differ from the baseline"
        else:
            what = "the TTLs of cache writes differ from the baseline"
        last = calls[-1] if len(calls) > 1 else 0
        return replace(plain, what=what, layer="messages", effect=effect, last=last)


def limit_changes(changes: Sequence[CostChange]) -> tuple[CostChange, ...]:
    """The causes that matter, and all others in one."""
    total = sum((abs(one.cost) for one in changes), ZERO)
    shown = [one for number, one in enumerate(changes) if not number or abs(one.cost) >= LARGE * total][:SHOWN]
    rest = [one for one in changes if one not in shown]
    if not rest:
        return tuple(shown)
    cost = sum((one.cost for one in rest), ZERO)
    return (*shown, CostChange(min(one.call for one in rest), sum(one.calls for one in rest), cost))


class _Heads:
    """Tools, system and parameters of each call, in the baseline and now."""

    def __init__(self, baseline: Baseline, before: Figures, replayed: ReplayedStrategy) -> None:
        self._baseline, self._before = baseline, before
        self._replayed, self._fingerprints = replayed, Fingerprints(replayed)
        self._learned: dict[tuple[str, str], HeadChange] = {}

    def is_known(self, call: int) -> bool:
        """Whether the baseline lists the head of this call; past that, a head that was another before still is."""
        return self._before.heads_known_to is None or call <= self._before.heads_known_to

    def find_change(self, call: int) -> HeadChange | None:
        """The first layer of a call that is not as in the baseline, in words; None where all are, or are not known."""
        layers = self._fingerprints.layers(call).items()
        if not self.is_known(call):
            return next((found for name, (digest, _) in layers if (found := self._learned.get((name, digest)))), None)
        for layer, (digest, entries) in layers:
            digests = [one.digest for one in self._before.heads if one.layer == layer and one.call <= call]
            if digests and digests[-1] != digest:
                before, request = self._baseline.parts.get(digests[-1]), self._replayed.request(call)
                if changes := describe_head_change(layer, before, entries, request):
                    self._learned[layer, digest] = changes
                    return changes
        return None
