"""The avoidable cost of calls: one cause after another is fixed, replayed and looked at again; findings, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from functools import cached_property, partial
from itertools import takewhile
from json import dumps
from typing import NamedTuple

from cachecost.account.causes import Cause, causes
from cachecost.analysis.optimum.lower_bound import automatic_bound, lower_bound_of
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import dollars, duration
from cachecost.base.structs import replace
from cachecost.caches.causes import changed_parameter
from cachecost.caches.losses import Loss
from cachecost.changes.fix import Fix, FixContext, changed_settings
from cachecost.changes.fixes import FIXERS
from cachecost.changes.observed_replay import ObservedReplay, observe_replay
from cachecost.changes.offers import alternative_of
from cachecost.changes.steps import NO_CALL, Replays, ReplayStep, TrackedReplay
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.ledger.findings import Explanation, Finding, count_margin, open_usd
from cachecost.ledger.rows import CallRow, warm_reads
from cachecost.prompts.blocks import Layer
from cachecost.prompts.compare import first_difference, prefixes_back, text_of
from cachecost.prompts.request import Breakpoint, Request, wire_path
from cachecost.providers.listing import assumption_rows
from cachecost.providers.rules import VIA
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import CallPreparer
from cachecost.simulation.workload import Workload

MATERIAL = Decimal("0.01")
"""The share of the cost of its conversations that other breakpoints, TTLs or keep-alives must save to be worth it."""
ABOUT_AS_MUCH = Decimal("0.9")
"""The share of what the best fix saves that another one must save to be named beside it."""
MOST_TRIES = 3
"""Smaller and smaller sets of conversations for which a fix is tried."""
MOST_HIDDEN = 2
"""Causes behind one another whose fixes save nothing alone."""
MOST_FIXES = 60
"""Fixes that are tried, one after another."""
LOWER_BOUND = 1
"""The lower bound, which comes last, takes as long as a replay or longer."""


class NettedLoss(NamedTuple):
    """A loss and the replay that it was found in, the USD that its fix nets (0: nothing), and which fix it is."""

    loss: Loss
    observed: ObservedReplay
    saved: Decimal
    words: str = ""
    alternative: str = ""
    is_behind: bool = False
    """Whether it only shows once other causes are fixed."""

    @property
    def number(self) -> int:
        """The recorded call."""
        return self.observed.number(self.loss.call)


@dataclass
class _Choice:
    """The fix that saves most on some losses. What the calls lose with it is only looked at if it is taken, or saves
    nothing and may hide another cause."""

    replays: Replays
    losses: Sequence[Loss]
    observed: ObservedReplay
    fix: Fix
    after: PricedReplay
    others: dict[str, Decimal] = field(default_factory=dict)
    """What the calls cost with the other fixes, by their words."""

    @cached_property
    def fixed(self) -> ObservedReplay:
        return observe_replay(self.replays, self.fix.steps, self.observed.tracked)


@dataclass(slots=True)
class Netting:
    """Finds the losses of a log with what their fixes net.

    `simulated` and `paid` are USD by call of the recording, paid at most what was billed; `left` is what findings may
    still take of a call. `observed` and `now` are the replay with the fixes so far, and its price.
    """

    replays: Replays
    observed: ObservedReplay
    simulated: Mapping[int, Decimal]
    paid: Mapping[int, Decimal]
    now: PricedReplay = field(init=False)
    left: dict[int, Decimal] = field(init=False)
    found: list[NettedLoss] = field(default_factory=list)
    notes: list[NettedLoss] = field(default_factory=list)
    _settled: set[tuple[Cause, int, int]] = field(default_factory=set)
    _unclaimed: dict[int, Decimal] = field(default_factory=dict)
    """USD by call that fixes saved there and no finding has: another cause of the call hid the one that was fixed."""

    def __post_init__(self) -> None:
        self.now, self.left = PricedReplay(self.paid), dict(self.paid)

    def run(self) -> None:
        """Fix what can be fixed at a profit, until nothing new is found."""
        first = self.observed
        shown = {(one.cause, first.number(one.call)) for found in _group_by_cause(first).values() for one in found}
        for _ in range(MOST_FIXES):
            by_cause = _group_by_cause(self.observed)
            new: list[list[Loss]] = []  # of each cause the losses that were not looked at
            for cause in FIXERS:
                losses = [one for one in by_cause.get(cause, []) if _loss_key(one, self.observed) not in self._settled]
                new += [losses] if losses else []
            self.replays.traffic.expect(sum(FIXERS[losses[0].cause].tries for losses in new) + LOWER_BOUND)
            if not new:
                break
            self._settled.update(_loss_key(loss, self.observed) for loss in new[0])
            self._settle(new[0])
        self.found = [one._replace(is_behind=(one.loss.cause, one.number) not in shown) for one in self.found]
        found = {(one.loss.cause, one.number) for one in self.found}
        latest = {(one.loss.cause, one.number): one for one in self.notes}
        self.notes = [one for key, one in latest.items() if key not in found]

    def _settle(self, losses: Sequence[Loss]) -> None:
        first = self._find_cheapest(losses, self.observed, self.now)
        best = self._choose_fix(losses, first) or self._choose_fix_behind(first)
        kept = set(map(id, best.losses)) if best else set()
        noted = [loss for loss in losses if id(loss) not in kept]
        self.notes += [NettedLoss(loss, self.observed, ZERO) for loss in noted]
        if best is None:
            return
        # The words of the fix, those of others that save, too; and what it saves with other prices where it does.
        saved = self.now.total - best.after.total
        others = {words: self.now.total - usd for words, usd in best.others.items()}
        also = (f", or {words} ({dollars(usd)})" for words, usd in others.items() if usd >= ABOUT_AS_MUCH * saved)
        words = "".join((best.fix.words, *also))
        cheaper = sum(best.after.besides.values(), ZERO) - sum(self.now.besides.values(), ZERO)
        if cheaper > 0:
            words = words or causes()[best.losses[0].cause].fix
            words += f"; {dollars(saved + cheaper)} with the difference in price"
        still = _paid_again(best.fixed, _group_by_cause(best.fixed).get(best.losses[0].cause, []))
        paid = _paid_again(best.observed, best.losses)
        less = {number: usd - still.get(number, ZERO) for number, usd in paid.items()}
        saved_by = {number: usd - best.after.costs[number] for number, usd in self.now.costs.items()}
        numbers = [number for number, usd in less.items() if usd > 0]
        net = saved + sum((self._unclaimed.pop(one, ZERO) for one in numbers), ZERO)
        shares = share_out(net, numbers, saved_by, self.left)
        unnamed = [number for number, usd in saved_by.items() if usd > 0 and number not in shares]
        rest = net - sum(shares.values(), ZERO)
        for number, usd in share_out(rest, unnamed, saved_by, dict(saved_by)).items():
            self._unclaimed[number] = self._unclaimed.get(number, ZERO) + usd
        for loss in best.losses:
            share = shares.pop(best.observed.number(loss.call), ZERO)
            netted = NettedLoss(loss, best.observed, share, words, best.fix.alternative)
            (self.found if share else self.notes).append(netted)
        self.observed, self.now = best.fixed, best.after
        if causes()[best.losses[0].cause].fixed_in == "breakpoints":  # what is read now may be worth keeping alive
            self._settled = {key for key in self._settled if key[0] != "ttl_expired"}

    def _choose_fix(self, losses: Sequence[Loss], best: _Choice | None) -> _Choice | None:
        """The one that saves most, for the calls in whose scope it does; `best` is for all calls. None: none saves."""
        scope_of = partial(FIXERS[losses[0].cause].scope, self.observed.conversations)
        for tries in range(MOST_TRIES):
            if tries:
                best = self._find_cheapest(losses, self.observed, self.now)
            if best is None:
                return None
            before, after = (priced.by_scope(self.observed.steps, scope_of) for priced in (self.now, best.after))
            scopes = [scope_of(self.observed.call(loss.call)) for loss in losses]
            kept = [loss for loss, scope in zip(losses, scopes, strict=True) if after[scope] < before[scope]]
            if not kept:
                return None
            if len(kept) == len(losses):
                return best if self._is_worth_it(best) else None
            losses = kept
        return None

    def _find_cheapest(self, losses: Sequence[Loss], observed: ObservedReplay, now: PricedReplay) -> _Choice | None:
        best: _Choice | None = None
        costs = dict[str, Decimal]()
        for fix in FIXERS[losses[0].cause].make(FixContext(self.replays, observed), losses):
            rows = self.replays.changed_rows(fix.steps, observed.tracked)
            pairs = list(zip(fix.steps, rows, strict=True))
            if any(row.error and step.number not in observed.refused for step, row in pairs):
                continue
            besides = _price_only_savings(observed, now, fix, rows)
            by_call: dict[int, Decimal] = {}
            for number, own in {step.number: row.cost.total for step, row in pairs if step.number}.items():
                usd, simulated, paid = own + besides.get(number, ZERO), self.simulated[number], self.paid[number]
                # a call whose bill is below its simulation saves only what is below the bill, and costs more by as much
                by_call[number] = usd - (simulated - paid) if usd >= simulated else min(usd, paid)
            extras = [(step.call, row.cost.total) for step, row in pairs if step.number == NO_CALL]
            after = PricedReplay(by_call, extras, besides)
            costs[fix.words] = min(after.total, costs.get(fix.words, after.total))
            if best is None or after.total < best.after.total:
                best = _Choice(self.replays, losses, observed, fix, after)
        if best is not None and best.fix.names_others:
            best.others = {words: usd for words, usd in costs.items() if words != best.fix.words}
        return best

    def _choose_fix_behind(self, choice: _Choice | None) -> _Choice | None:
        """The fix of a cause that only shows once the one before it is fixed, if both together save something."""
        for _ in range(MOST_HIDDEN):
            if choice is None:
                return None
            fixed, cause = choice.fixed, choice.losses[0].cause
            numbers = {choice.observed.number(loss.call) for loss in choice.losses}
            shown = {loss.cause for loss in fixed.losses if fixed.number(loss.call) in numbers} - {cause}
            first = next((one for one in FIXERS if one in shown), None)
            behind = [loss for loss in fixed.losses if loss.cause == first]
            choice = self._find_cheapest(behind, fixed, choice.after) if behind else None
            if choice is not None and self._is_worth_it(choice):
                self._settled.update(_loss_key(loss, fixed) for loss in choice.losses)
                return choice
        return None

    def _is_worth_it(self, choice: _Choice) -> bool:
        cause = choice.losses[0].cause
        saved = self.now.total - choice.after.total
        if causes()[cause].fixed_in == "prompt" or cause == "concurrent_write":
            return saved > 0  # nothing else is sent
        scope_of = partial(FIXERS[cause].scope, choice.observed.conversations)
        before = self.now.by_scope(choice.observed.steps, scope_of)
        concerned = {scope_of(choice.observed.call(loss.call)) for loss in choice.losses}
        return saved > MATERIAL * sum((before[scope] for scope in concerned), ZERO)


def _loss_key(loss: Loss, observed: ObservedReplay) -> tuple[Cause, int, int]:
    """What a loss is looked at for once: after other fixes the same call may lose more or less."""
    return loss.cause, observed.number(loss.call), loss.tokens


def _group_by_cause(observed: ObservedReplay) -> dict[Cause, list[Loss]]:
    found: dict[Cause, list[Loss]] = {}
    for loss in (*observed.losses, *observed.unused):
        found.setdefault(loss.cause, []).append(loss)
    return found


def _paid_again(observed: ObservedReplay, losses: Sequence[Loss]) -> dict[int, Decimal]:
    return {observed.number(loss.call): observed.paid_again(loss) for loss in losses}


PLACES = Decimal("1e-12")
"""Shares are rounded down to so many USD; the last one takes what is left."""


def share_out(
    saved: Decimal, numbers: Sequence[int], weights: Mapping[int, Decimal], left: dict[int, Decimal]
) -> dict[int, Decimal]:
    """USD by call: `saved` in proportion to what each call saves, and to no call more than is `left` of its cost.

    `left` is reduced by what is shared out. What fits nowhere is dropped: then all sums stay too small.
    """
    weighed = {number: max(ZERO, weights.get(number, ZERO)) for number in dict.fromkeys(numbers)}
    shares = dict.fromkeys(weighed, ZERO)
    for weights_or_left in (weighed, left):
        wanted = {number: weights_or_left[number] for number in shares}
        rest, total = saved - sum(shares.values(), ZERO), sum(wanted.values(), ZERO)
        if rest <= 0 or not total:
            continue
        *most, last = sorted(wanted, key=lambda number: wanted[number])
        added = {number: (rest * wanted[number] / total).quantize(PLACES, ROUND_DOWN) for number in most}
        added[last] = rest - sum(added.values(), ZERO)
        for number, share in added.items():
            fits = min(share, left[number])
            shares[number] += fits
            left[number] -= fits
    return {number: share for number, share in shares.items() if share > 0}


@dataclass(frozen=True, slots=True)
class PricedReplay:
    """The USD of each recorded call in a replay, and of the `extras`, which were not recorded.

    `besides` is what a call is cheaper for the prices of another model or speed alone: that saves nothing here.
    """

    costs: Mapping[int, Decimal]
    extras: Sequence[tuple[Call, Decimal]] = ()
    besides: Mapping[int, Decimal] = field(default_factory=dict)

    @property
    def total(self) -> Decimal:
        return sum((usd for _, usd in self.extras), sum(self.costs.values(), ZERO))

    def by_scope(self, steps: Sequence[ReplayStep], scope_of: Callable[[Call], Hashable]) -> dict[Hashable, Decimal]:
        """USD by what the calls have in common; `steps` are the recorded calls."""
        sums: dict[Hashable, Decimal] = {}
        recorded = ((step.call, self.costs[step.number]) for step in steps if step.number != NO_CALL)
        for call, usd in (*recorded, *self.extras):
            scope = scope_of(call)
            sums[scope] = sums.get(scope, ZERO) + usd
        return sums


def _price_only_savings(
    observed: ObservedReplay, now: PricedReplay, fix: Fix, rows: Sequence[CallRow]
) -> dict[int, Decimal]:
    """USD by which calls are cheaper for other prices alone, with the fixes before; what costs more counts as it is."""
    besides = dict(now.besides)
    if not fix.keeps_prices:
        return besides
    after = {step.number: row for step, row in zip(fix.steps, rows, strict=True)}
    for position, step in enumerate(observed.steps, 1):
        prices = observed.prices.get(position)
        if step.number and prices:
            usage, before = after[step.number].usage, observed.rows[position - 1].usage
            total, wanted = usage.total_input, before.total_input
            own = replace(usage, output_tokens=before.output_tokens)
            if total and total != wanted:  # another model counts the same text otherwise
                read, five, hour = (
                    round(part * wanted / total) for part in (usage.read, usage.write_5m, usage.write_1h)
                )
                own = Usage(max(0, wanted - read - five - hour), read, five, hour, before.output_tokens)
            cheaper = max(ZERO, prices.total_cost(own) - after[step.number].cost.total)
            besides[step.number] = besides.get(step.number, ZERO) + cheaper
    return besides


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers, placed = numbers_in_sessions(calls), list[Finding]()
    for one in findings:
        call = calls[one.call - 1]
        placed.append(
            replace(
                one,
                session=call.session,
                project=call.project,
                agent=call.agent,
                timestamp=call.timestamp,
                file=call.file,
                line=call.line or None,
                session_call=numbers[one.call - 1],
            )
        )
    return placed


def numbers_in_sessions(calls: Iterable[Call] | Iterable[BilledCall]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


AROUND, AFTER = 24, 12
"""Characters of an excerpt before the first one that differs, and from there."""


def place(loss: Loss, request: Request) -> str:
    """The place of the first block in the request: `tools.3`, `system.0`, `messages.4.content.1`."""
    node = loss.first
    if node.layer is not Layer.MESSAGES:
        before = takewhile(lambda one: one.layer is node.layer, prefixes_back(node))
        return wire_path(request, Breakpoint(node.layer, sum(one.block is not None for one in before) - 1))
    for message in request.thread.back():
        assert message.message is not None
        for number, block in enumerate(message.message.blocks):
            if block is node.block or (node.block and block.digest == node.block.digest):
                return f"messages.{message.length - 1}.content.{number}"
    return str(node.layer)


def excerpt(loss: Loss) -> str | None:
    """The new text around the first character that differs: `…Current time: 2026-03-06T21:2▮`."""
    new, old = loss.first.block, loss.was.block if loss.was else None
    if new is None or old is None or new.content is None or old.content is None or new.kind != old.kind:
        return None
    text = text_of(new)
    at = first_difference(text_of(old), text)
    before = text[max(0, at - AROUND) : at]
    more = "…" if at > AROUND else ""
    return " ".join(f"{more}{before}▮{text[at : at + AFTER]}".split()) + f" at character {at}"


def message(loss: Loss, request: Request, tokens: int) -> str:
    """What happened, in the sentence of the code."""
    where = place(loss, request)
    if loss.is_out_of_order:
        return (
            f"{where} is another one than in the conversation before; {tokens:,} tokens after it or in it are the same"
        )
    before = loss.since.request if loss.since else request
    tools, tools_before = len(request.tools.blocks), len(before.tools.blocks)
    misplaced = "the breakpoint of the previous call was on a block that this call does not have"
    if loss.was is None and loss.positions < 0:
        misplaced = "the breakpoint is before what earlier calls wrote"
    (old_host, _, old_workspace), (host, _, workspace) = loss.place_before.partition("/"), loss.place.partition("/")
    moved = f"workspace changed from {old_workspace or 'the default one'} to {workspace or 'the default one'}"
    if old_host != host:
        moved = f"host changed from {old_host} to {host}"
    stated = (changed_parameter(loss.cause, one) for one in (before, request))
    was, now = (one if isinstance(one, str) else dumps(one, ensure_ascii=False) for one in stated)
    if loss.cause == "upstream_changed":
        was, now = (place.partition(VIA)[2] or "one not named" for place in (loss.place_before, loss.place))
    return causes()[loss.cause].sentence.format(
        was=was,
        now=now,
        where=where,
        system=" and ".join(changed_settings(before, request)) or f"{where} changed",
        tools=f"{tools or 'no'} tools instead of {tools_before or 'none'}"
        if tools != tools_before
        else f"{where} changed",
        tokens=f"{tokens:,}",
        gap=duration(loss.gap_s),
        ttl=loss.ttl,
        minimum=f"{loss.minimum:,}",
        positions=loss.positions,
        window=loss.window,
        shared=request.thread.common(before.thread).length,
        messages_before=before.thread.length,
        messages_fewer=before.thread.length - request.thread.length,
        appeared="were added to" if request.thread.has_image else "were removed from",
        moved=moved,
        misplaced=misplaced,
    )


Costs = Mapping[int, Decimal]
"""USD by number of the call."""
NO_LIMITS: Costs = {}


def explain_workload(traffic: Workload, tries_assumptions: bool = False) -> Explanation:
    """What the calls of the workload could have cost less, by cause, and how certain that is.

    With `tries_assumptions` every other value of each assumption is tried, and those that change the answer are
    reported. Raises CannotEvaluate, also for a cache that `explain` does not support.
    """
    return as_filed(explain_in_order(traffic, tries_assumptions=tries_assumptions), traffic.calls)


def explain_in_order(
    traffic: Workload, limits: Costs = NO_LIMITS, tries_assumptions: bool = False, earlier: TrackedReplay | None = None
) -> Explanation:
    """As `explain_workload`; calls are numbered in the order of time. No call's findings are above its limit (USD).

    `earlier` is a replay of the same calls under the same setup, but for how much they can read.
    """
    explanation = explain(traffic, limits, earlier)
    answer, flips = (dollars(explanation.avoidable), _list_codes(explanation)), list[str]()
    for switch in assumption_rows(*traffic.hosts) if tries_assumptions else ():
        for reading in switch.readings[1:] if switch.number is None else ():
            under = explain(traffic.with_assumptions({switch.name: reading.value}))
            if (dollars(under.avoidable), _list_codes(under)) != answer:
                amount = f"{dollars(under.avoidable)} of {dollars(under.cost)}"
                flips.append(f"with {switch.name}={reading.value} {amount} are avoidable, by {_list_codes(under)}")
    return replace(explanation, flips=flips)


def explain(traffic: Workload, limits: Costs = NO_LIMITS, earlier: TrackedReplay | None = None) -> Explanation:
    """Every fault of the calls, in their order, with what its fix nets.

    The findings' dollars add up to at most the difference between the cost and the lower bound of the calls as the
    fixes would send them. Faults whose fix nets nothing are notes. Raises CannotEvaluate.
    """
    traffic.require_support("explain")
    replays = Replays(traffic)
    observed = observe_replay(replays, replays.recorded, earlier)
    simulated = {number: row.cost.total for number, row in enumerate(observed.rows, 1)}
    paid = {number: min(usd, limits.get(number, usd)) for number, usd in simulated.items()}
    netting = Netting(replays, observed, simulated, paid)
    netting.run()
    fixed = netting.observed
    sent = [step for step in fixed.steps if step.number != NO_CALL]
    rows: Sequence[CallRow] | None = None
    if is_as_sent := replays.are_as_sent(sent):  # keep-alives are in no plan; other content has the bill of its call
        rows = fixed.rows if len(sent) == len(fixed.steps) else replays.changed_rows(sent, fixed.tracked)
    for replay in (observed, fixed):
        replay.tracked.release()  # the lower bound needs the memory
    preparer = None if is_as_sent else replays.preparer(sent)
    bound = _least_cost([step.call for step in sent], traffic, rows, preparer)
    findings, notes = (_sort_findings(map(_describe_finding, group)) for group in (netting.found, netting.notes))
    notes = [note for note in notes if note.paid_again > 0]  # elsewhere what is read costs as much
    cost = sum(simulated.values(), ZERO)
    avoidable = sum((one.cost for one in findings), ZERO)
    open_share = min(1.0, float(open_usd(fixed.rows) / avoidable)) if avoidable else 1.0
    return Explanation(
        len(traffic.calls),
        cost,
        cost - avoidable,
        with_places(findings, traffic.calls),
        traffic.strategy,
        traffic.setup.token_source,
        error_margin=count_margin(fixed.rows, traffic.setup.error_margin) * open_share,
        open_share=open_share,
        warm=warm_reads(observed.rows),
        notes=with_places(notes, traffic.calls),
        lower_bound=bound,
        bounds_fixed_requests=not is_as_sent,
        ranges=list(dict.fromkeys(filter(None, (one.range_in_words for one in traffic.known_rules())))),
    )


def _least_cost(
    calls: Sequence[Call], traffic: Workload, rows: Sequence[CallRow] | None, preparer: CallPreparer | None
) -> Decimal:
    """USD that the calls cost at least: with breakpoints that look back under any plan, else after any pauses."""

    def finds_by_itself(call: Call) -> bool:
        try:
            return traffic.setup.rules_for(call).finds_without_lookback
        except CannotEvaluate:
            return False

    by_kind = {kind: [n for n, call in enumerate(calls) if finds_by_itself(call) is kind] for kind in (False, True)}
    least = automatic_bound([calls[n] for n in by_kind[True]], preparer or traffic.setup.preparer())
    if planned := [calls[n] for n in by_kind[False]]:
        known = [rows[n] for n in by_kind[False]] if rows is not None else None
        least += lower_bound_of(planned, traffic.setup, known, preparer).with_pings_usd
    return least


def _sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.call, finding.code))


def as_filed(explanation: Explanation, calls: Sequence[Call]) -> Explanation:
    """Findings numbered and sorted by the calls of the file."""
    if not any(call.number for call in calls):
        return explanation
    findings, unexplained, notes = (
        _sort_findings(
            replace(one, call=calls[one.call - 1].number, since=one.since and calls[one.since - 1].number)
            for one in group
        )
        for group in (explanation.findings, explanation.not_explained, explanation.notes)
    )
    return replace(explanation, findings=findings, not_explained=unexplained, notes=notes)


def _list_codes(explanation: Explanation) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in explanation.findings)) or "nothing"


def _describe_finding(one: NettedLoss) -> Finding:
    loss, observed = one.loss, one.observed
    code, request = causes()[loss.cause], observed.call(loss.call).request
    usage = observed.rows[loss.call - 1].usage
    tokens = min(usage.unread, loss.tokens)
    return Finding(
        code.code,
        loss.cause,
        one.number,
        loss.first.layer,
        place(loss, request),
        tokens,
        one.saved,
        message(loss, request, tokens),
        one.words or code.replayed_fix,
        observed.number(loss.since.number) if loss.since else None,
        excerpt(loss),
        code.word,
        paid_again=observed.paid_again(loss),
        is_behind=one.is_behind,
        alternative=one.alternative or alternative_of(loss, observed),
    )
