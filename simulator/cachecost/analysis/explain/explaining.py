"""The avoidable cost of calls: what the fix of each fault would have netted, from replays with the fixes.

Where the calls of findings were recorded: session, time, file and line, so that people find them.

A loss in words: what happened, where in the request, and the text around the first difference.

What fixes net: one cause after another is fixed, replayed, and looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from json import dumps
from typing import NamedTuple

from cachecost.account.causes import Cause, causes
from cachecost.analysis.explain.fix_prices import FixPricing, PricedReplay, share_out
from cachecost.analysis.explain.fixes.catalogue import FIXERS
from cachecost.analysis.explain.fixes.fix import Fix, FixContext, changed_settings
from cachecost.analysis.explain.observed_replay import LoneCall, ObservedReplay, observe_replay
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.analysis.replays.steps import NO_CALL, Replays, ReplayStep, TrackedReplay
from cachecost.base.formatting import dollars
from cachecost.caches.breakpoints import (
    changed_parameter,
    first_difference,
    text_of,
)
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Explanation, Finding, count_margin, open_usd
from cachecost.ledger.rows import CallRow, warm_reads
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.request import Breakpoint, Request, wire_path
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers = _numbers_in_sessions(calls)
    return [_placed(finding, calls[finding.call - 1], numbers[finding.call - 1]) for finding in findings]


def _numbers_in_sessions(calls: Sequence[Call]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


def _placed(finding: Finding, call: Call, number: int | None) -> Finding:
    return replace(
        finding,
        session=call.session,
        project=call.project,
        agent=call.agent,
        timestamp=call.timestamp,
        file=call.file,
        line=call.line or None,
        session_call=number,
    )


AROUND = 24
"""Characters of an excerpt before the first one that differs."""
AFTER = 12
HERE = "▮"


def place(loss: Loss, request: Request) -> str:
    """The place of the first block in the request: `tools.3`, `system.0`, `messages.4.content.1`."""
    node = loss.first
    if node.layer is not Layer.MESSAGES:
        return wire_path(request, Breakpoint(node.layer, _index_in_layer(node)))
    for message in request.thread.back():
        assert message.message is not None
        for number, block in enumerate(message.message.blocks):
            if block is node.block or (node.block and block.digest == node.block.digest):
                return f"messages.{message.length - 1}.content.{number}"
    return str(node.layer)


def _index_in_layer(node: Prefix) -> int:
    number = -1
    step: Prefix | None = node
    while step is not None and step.layer is node.layer:
        number += step.block is not None
        step = step.parent
    return number


def excerpt(loss: Loss) -> str | None:
    """The new text around the first character that differs: `…Current time: 2026-03-06T21:2▮`."""
    new, old = loss.first.block, loss.was.block if loss.was else None
    if new is None or old is None or new.content is None or old.content is None or new.kind != old.kind:
        return None
    text = text_of(new)
    at = first_difference(text_of(old), text)
    before = text[max(0, at - AROUND) : at]
    more = "…" if at > AROUND else ""
    return " ".join(f"{more}{before}{HERE}{text[at : at + AFTER]}".split()) + f" at character {at}"


def message(loss: Loss, request: Request, tokens: int) -> str:
    """What happened, in the sentence of the code."""
    if loss.is_out_of_order:
        where = place(loss, request)
        return (
            f"{where} is another one than in the conversation before; {tokens:,} tokens after it or in it are the same"
        )
    return causes()[loss.cause].sentence.format(**_facts(loss, request, tokens))


def _facts(loss: Loss, request: Request, tokens: int) -> dict[str, object]:
    before = loss.since.request if loss.since else request
    was, now = _parameter(loss.cause, before), _parameter(loss.cause, request)
    shared = request.thread.common(before.thread).length
    return {
        "was": was,
        "now": now,
        "where": place(loss, request),
        "system": " and ".join(changed_settings(before, request)) or f"{place(loss, request)} changed",
        "tools": _tools(loss, request, before),
        "tokens": f"{tokens:,}",
        "gap": duration(loss.gap_s),
        "ttl": loss.ttl,
        "minimum": f"{loss.minimum:,}",
        "positions": loss.positions,
        "window": loss.window,
        "shared": shared,
        "messages_before": before.thread.length,
        "messages_fewer": before.thread.length - request.thread.length,
        "appeared": "were added to" if request.thread.has_image else "were removed from",
        "moved": _describe_move(loss),
        "misplaced": _describe_misplacement(loss),
    }


def _tools(loss: Loss, request: Request, before: Request) -> str:
    now, was = len(request.tools.blocks), len(before.tools.blocks)
    if now != was:
        return f"{now or 'no'} tools instead of {was or 'none'}"
    return f"{place(loss, request)} changed"


def _describe_move(loss: Loss) -> str:
    """Both workspaces, or both hosts; a pool is `HOST/WORKSPACE`."""
    (host_before, _, before), (host, _, now) = loss.place_before.partition("/"), loss.place.partition("/")
    if host_before != host:
        return f"host changed from {host_before} to {host}"
    return f"workspace changed from {before or 'the default one'} to {now or 'the default one'}"


def _describe_misplacement(loss: Loss) -> str:
    if loss.was is None and loss.positions < 0:
        return "the breakpoint is before what earlier calls wrote"
    return "the breakpoint of the previous call was on a block that this call does not have"


def _parameter(cause: str, request: Request) -> str:
    stated = changed_parameter(cause, request)
    return stated if isinstance(stated, str) else dumps(stated, ensure_ascii=False)


def duration(seconds: float) -> str:
    """Seconds for people: `7 ms`, `1.4 s`, `70 s`, `12 min`, `2.5 h`."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s" if seconds >= 1 else f"{max(1, round(seconds * 1000))} ms"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


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
IN_PROMPT = "prompt"
LossKey = tuple[Cause, int, int]


class NettedLoss(NamedTuple):
    """A loss and the replay that it was found in, the USD that its fix nets (0: nothing), and which fix it is."""

    loss: Loss
    observed: ObservedReplay
    saved: Decimal
    words: str = ""
    is_behind: bool = False
    """Whether it only shows once other causes are fixed."""

    @property
    def number(self) -> int:
        """The recorded call."""
        return self.observed.number(self.loss.call)


@dataclass(slots=True)
class _Choice:
    """Losses, the replay that they were found in, the fix that saves most on them, and what the calls cost with it.

    What they lose with it is only looked at if the fix is taken, or saves nothing and may hide another cause.
    """

    replays: Replays
    losses: Sequence[Loss]
    observed: ObservedReplay
    fix: Fix
    after: PricedReplay
    others: dict[str, Decimal] = field(default_factory=dict)
    """What the calls cost with the other fixes, by their words."""
    _fixed: ObservedReplay | None = None

    @property
    def fixed(self) -> ObservedReplay:
        """The replay with the fix."""
        if self._fixed is None:
            self._fixed = observe_replay(self.replays, self.fix.steps, self.observed.tracked)
        return self._fixed


@dataclass(slots=True)
class Netting:
    """Finds the losses of a log with what their fixes net. `left` is what findings may still take of a call, USD."""

    replays: Replays
    pricing: FixPricing
    observed: ObservedReplay
    now: PricedReplay
    left: dict[int, Decimal]
    found: list[NettedLoss] = field(default_factory=list)
    notes: list[NettedLoss] = field(default_factory=list)
    _settled: set[LossKey] = field(default_factory=set)
    _unclaimed: dict[int, Decimal] = field(default_factory=dict)
    """USD by call that fixes saved there and no finding has: another cause of the call hid the one that was fixed."""

    def run(self) -> None:
        """Fix what can be fixed at a profit, until nothing new is found."""
        first = self.observed
        shown = {(one.cause, first.number(one.call)) for found in _by_cause(first).values() for one in found}
        for _ in range(MOST_FIXES):
            losses = self._next_losses()
            if not losses:
                break
            self._settled.update(_key(loss, self.observed) for loss in losses)
            self._settle(losses)
        self.found = [one._replace(is_behind=(one.loss.cause, one.number) not in shown) for one in self.found]
        found = {(one.loss.cause, one.number) for one in self.found}
        latest = {(one.loss.cause, one.number): one for one in self.notes}
        self.notes = [one for key, one in latest.items() if key not in found]

    def _next_losses(self) -> list[Loss]:
        """The losses of the first cause that has any that were not looked at."""
        by_cause = _by_cause(self.observed)
        unsettled = [
            [one for one in by_cause.get(cause, []) if _key(one, self.observed) not in self._settled]
            for cause in FIXERS
        ]
        new = [losses for losses in unsettled if losses]
        self.replays.traffic.expect(sum(FIXERS[losses[0].cause].tries for losses in new) + LOWER_BOUND)
        return new[0] if new else []

    def _settle(self, losses: Sequence[Loss]) -> None:
        first = self._cheapest(losses, self.observed, self.now)
        best = self._best(losses, first) or self._best_behind(first)
        kept = set(map(id, best.losses)) if best else set()
        noted = [loss for loss in losses if id(loss) not in kept]
        self.notes += [NettedLoss(loss, self.observed, ZERO) for loss in noted]
        if best is not None:
            self._take(best)

    def _take(self, best: _Choice) -> None:
        shares, words = self._share_out(best, best.fixed), self._words(best)
        for loss in best.losses:
            share = shares.pop(best.observed.number(loss.call), ZERO)
            netted = NettedLoss(loss, best.observed, share, words)
            (self.found if share else self.notes).append(netted)
        self.observed, self.now = best.fixed, best.after
        if causes()[best.losses[0].cause].fixed_in == "breakpoints":  # what is read now may be worth keeping alive
            self._settled = {key for key in self._settled if key[0] != "ttl_expired"}

    def _words(self, best: _Choice) -> str:
        """The words of the fix, those of others that save, too; and what it saves with other prices where it does."""
        least = ABOUT_AS_MUCH * (self.now.total - best.after.total)
        saved = {words: self.now.total - usd for words, usd in best.others.items()}
        others = (f", or {words} ({dollars(usd)})" for words, usd in saved.items() if usd >= least)
        text = "".join((best.fix.words, *others))
        cheaper = sum(best.after.besides.values(), ZERO) - sum(self.now.besides.values(), ZERO)
        if cheaper <= 0:
            return text
        whole = self.now.total - best.after.total + cheaper
        return f"{text or causes()[best.losses[0].cause].fix}; {dollars(whole)} with the difference in price"

    def _share_out(self, best: _Choice, fixed: ObservedReplay) -> dict[int, Decimal]:
        still = _paid_again(fixed, _by_cause(fixed).get(best.losses[0].cause, []))
        paid = _paid_again(best.observed, best.losses)
        less = {number: usd - still.get(number, ZERO) for number, usd in paid.items()}
        saved = {number: usd - best.after.costs[number] for number, usd in self.now.costs.items()}
        numbers = [number for number, usd in less.items() if usd > 0]
        net = self.now.total - best.after.total + sum((self._unclaimed.pop(one, ZERO) for one in numbers), ZERO)
        shares = share_out(net, numbers, saved, self.left)
        others = [number for number, usd in saved.items() if usd > 0 and number not in shares]
        rest = net - sum(shares.values(), ZERO)
        for number, usd in share_out(rest, others, saved, dict(saved)).items():
            self._unclaimed[number] = self._unclaimed.get(number, ZERO) + usd
        return shares

    def _best(self, losses: Sequence[Loss], best: _Choice | None) -> _Choice | None:
        """The fix that saves most, for the calls in whose scope it does; None: none saves anything.

        `best` is the one for all calls.
        """
        for tries in range(MOST_TRIES):
            if tries:
                best = self._cheapest(losses, self.observed, self.now)
            worth = self._scopes_worth_it(best) if best else set()
            kept = [loss for loss in losses if self._scope(loss) in worth]
            if best is None or not kept:
                return None
            if len(kept) == len(losses):
                return best if self._is_worth_it(best) else None
            losses = kept
        return None

    def _cheapest(self, losses: Sequence[Loss], observed: ObservedReplay, now: PricedReplay) -> _Choice | None:
        best: _Choice | None = None
        costs = dict[str, Decimal]()
        for fix in FIXERS[losses[0].cause].make(FixContext(self.replays, observed), losses):
            rows = self.replays.changed_rows(fix.steps, observed.tracked)
            after = self.pricing.price(fix, rows, observed, now)
            if after is not None:
                costs[fix.words] = min(after.total, costs.get(fix.words, after.total))
            if after is not None and (best is None or after.total < best.after.total):
                best = _Choice(self.replays, losses, observed, fix, after)
        if best is not None and best.fix.names_others:
            best.others = {words: usd for words, usd in costs.items() if words != best.fix.words}
        return best

    def _best_behind(self, choice: _Choice | None) -> _Choice | None:
        """The fix of a cause that only shows once the one before it is fixed, if both together save something."""
        for _ in range(MOST_HIDDEN):
            if choice is None:
                return None
            fixed = choice.fixed
            behind = self._find_behind(choice, fixed)
            choice = self._cheapest(behind, fixed, choice.after) if behind else None
            if choice is not None and self._is_worth_it(choice):
                self._settled.update(_key(loss, fixed) for loss in choice.losses)
                return choice
        return None

    def _find_behind(self, choice: _Choice, fixed: ObservedReplay) -> list[Loss]:
        numbers = {choice.observed.number(loss.call) for loss in choice.losses}
        causes = {loss.cause for loss in fixed.losses if fixed.number(loss.call) in numbers}
        first = next((cause for cause in FIXERS if cause in causes - {choice.losses[0].cause}), None)
        return [loss for loss in fixed.losses if loss.cause == first]

    def _is_worth_it(self, choice: _Choice) -> bool:
        cause = choice.losses[0].cause
        saved = self.now.total - choice.after.total
        if causes()[cause].fixed_in == IN_PROMPT or cause == "concurrent_write":
            return saved > 0  # nothing else is sent
        scope_of = partial(FIXERS[cause].scope, choice.observed.conversations)
        before = self.now.by_scope(choice.observed.steps, scope_of)
        concerned = {scope_of(choice.observed.call(loss.call)) for loss in choice.losses}
        return saved > MATERIAL * sum((before[scope] for scope in concerned), ZERO)

    def _scopes_worth_it(self, choice: _Choice) -> set[Hashable]:
        """The scopes in which the fix makes calls cheaper."""
        scope_of = partial(FIXERS[choice.losses[0].cause].scope, self.observed.conversations)
        before, after = (priced.by_scope(self.observed.steps, scope_of) for priced in (self.now, choice.after))
        return {scope for scope in set(map(self._scope, choice.losses)) if after[scope] < before[scope]}

    def _scope(self, loss: Loss) -> Hashable:
        return FIXERS[loss.cause].scope(self.observed.conversations, self.observed.call(loss.call))


def _key(loss: Loss, observed: ObservedReplay) -> LossKey:
    """What a loss is looked at for once: after other fixes the same call may lose more or less."""
    return loss.cause, observed.number(loss.call), loss.tokens


def _by_cause(observed: ObservedReplay) -> dict[Cause, list[Loss]]:
    found: dict[Cause, list[Loss]] = {}
    for loss in (*observed.losses, *observed.idle_hours, *_needless_writes(observed)):
        found.setdefault(loss.cause, []).append(loss)
    return found


def _paid_again(observed: ObservedReplay, losses: Sequence[Loss]) -> dict[int, Decimal]:
    """USD by recorded call."""
    return {observed.number(loss.call): observed.paid_again(loss) for loss in losses}


def _needless_writes(observed: ObservedReplay) -> Iterator[Loss]:
    """What single-call conversations wrote and no call read, if that happened more than once."""
    if len(observed.lone) > 1:
        yield from map(_as_loss, observed.lone)


def _as_loss(one: LoneCall) -> Loss:
    return Loss(one.call, "written_never_read", one.written, one.written.depth, tokens=one.tokens)


Costs = Mapping[int, Decimal]
"""USD by number of the call."""
NO_LIMITS: Costs = {}


def explain_workload(traffic: Workload, tries_assumptions: bool = False) -> Explanation:
    """What the calls of the workload could have cost less, by cause, and how certain that is.

    With `tries_assumptions` every other value of each assumption is tried, and those that change the answer are
    reported. Raises CannotEvaluate for other caches than those with breakpoints.
    """
    return as_filed(explain_in_order(traffic, tries_assumptions=tries_assumptions), traffic.calls)


def explain_in_order(
    traffic: Workload, limits: Costs = NO_LIMITS, tries_assumptions: bool = False, earlier: TrackedReplay | None = None
) -> Explanation:
    """As `explain_workload`; calls are numbered in the order of time. No call's findings are above its limit (USD).

    `earlier` is a replay of the same calls under the same setup, but for how much they can read.
    """
    explanation = explain(traffic, limits, earlier)
    flips = list(_flips(traffic, explanation)) if tries_assumptions else []
    return replace(explanation, flips=flips)


def explain(traffic: Workload, limits: Costs = NO_LIMITS, earlier: TrackedReplay | None = None) -> Explanation:
    """Every fault of the calls, in their order, with what its fix nets.

    The findings' dollars add up to at most the difference between the cost and the lower bound of the calls as the
    fixes would send them. Faults whose fix nets nothing are notes. Raises CannotEvaluate.
    """
    traffic.require_breakpoints("explain")
    replays = Replays(traffic)
    observed = observe_replay(replays, replays.recorded, earlier)
    simulated = {number: row.cost.total for number, row in enumerate(observed.rows, 1)}
    paid = {number: min(usd, limits.get(number, usd)) for number, usd in simulated.items()}
    pricing = FixPricing(simulated, paid)
    netting = Netting(replays, pricing, observed, pricing.price_recording(), dict(paid))
    netting.run()
    fixed = netting.observed
    sent = [step for step in fixed.steps if step.number != NO_CALL]
    bound = _lower_bound(replays, observed, fixed, sent)
    findings = _in_order(_finding(one) for one in netting.found)
    notes = _in_order(_finding(one) for one in netting.notes)
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
        bounds_fixed_requests=not replays.are_as_sent(sent),
    )


def _lower_bound(
    replays: Replays, observed: ObservedReplay, fixed: ObservedReplay, sent: Sequence[ReplayStep]
) -> Decimal:
    """Of the calls with all fixes, in their lengths: other content has no bill, but that of its call, scaled."""
    rows: Sequence[CallRow] | None = None
    if is_as_sent := replays.are_as_sent(sent):  # keep-alives are in no plan
        rows = fixed.rows if len(sent) == len(fixed.steps) else replays.changed_rows(sent, fixed.tracked)
    for replay in (observed, fixed):
        replay.tracked.release()  # the lower bound needs the memory
    preparer = None if is_as_sent else replays.preparer(sent)
    return lower_bound_of([step.call for step in sent], replays.traffic.setup, rows, preparer).with_pings_usd


def _in_order(findings: Iterator[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.call, finding.code))


def as_filed(explanation: Explanation, calls: Sequence[Call]) -> Explanation:
    """Findings numbered and sorted by the calls of the file."""
    if not any(call.number for call in calls):
        return explanation
    findings, unexplained, notes = (
        _filed(one, calls) for one in (explanation.findings, explanation.not_explained, explanation.notes)
    )
    return replace(explanation, findings=findings, not_explained=unexplained, notes=notes)


def _filed(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    return _in_order(
        replace(one, call=calls[one.call - 1].number, since=one.since and calls[one.since - 1].number)
        for one in findings
    )


def _flips(traffic: Workload, explanation: Explanation) -> Iterator[str]:
    """A sentence for each value of an assumption that leads to other causes or other dollars."""
    for switch in assumption_rows(*traffic.hosts):
        for reading in switch.readings[1:] if switch.number is None else ():
            under = explain(traffic.with_assumptions({switch.name: reading.value}))
            if _answer(under) != _answer(explanation):
                amount = f"{dollars(under.avoidable)} of {dollars(under.cost)}"
                yield f"with {switch.name}={reading.value} {amount} are avoidable, by {_names(under)}"


def _answer(explanation: Explanation) -> tuple[str, str]:
    return dollars(explanation.avoidable), _names(explanation)


def _names(explanation: Explanation) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in explanation.findings)) or "nothing"


def _finding(one: NettedLoss) -> Finding:
    loss, observed = one.loss, one.observed
    code, request = causes()[loss.cause], observed.call(loss.call).request
    usage = observed.rows[loss.call - 1].usage
    tokens = min(usage.total_input - usage.read, loss.tokens)
    return Finding(
        code.code,
        loss.cause,
        one.number,
        loss.first.layer,
        place(loss, request),
        tokens,
        one.saved,
        message(loss, request, tokens),
        one.words or code.fix,
        observed.number(loss.since.number) if loss.since else None,
        excerpt(loss),
        code.word,
        paid_again=observed.paid_again(loss),
        is_behind=one.is_behind,
    )
