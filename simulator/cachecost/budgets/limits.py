"""Checks each limit of a budget. Dollars are compared exactly: equal to the limit passes.

A baseline made with other prices, rules, models or counts says nothing about the prompts, and neither does a sum that
leaves out calls without a price: both are *not comparable*, which is no pass. A call that the API would refuse breaks
any limit of dollars, unless the baseline was refused just as often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from cachecost.base.formatting import all_of, count_text, dollars, exact, exact_dollars
from cachecost.base.yaml_text import SourcePlace
from cachecost.budgets.baseline import Baseline
from cachecost.budgets.causes import Causes
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.budgets.verdicts import CostChange, State, Verdict, against, exact_share, percent_apart
from cachecost.ledger.results import most_of
from cachecost.ledger.rows import REFUSED, CallRow
from cachecost.ledger.unread import UnreadTracker
from cachecost.prompts.blocks import Layer
from cachecost.prompts.render import lookback_steps
from cachecost.prompts.request import Request, sent_breakpoints
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO
from cachecost.scenario import Scenario
from cachecost.scenario.models import AS_RECORDED

Record = Mapping[str, str]
ABSENT = "none"
OUT_OF_REACH = -1
"""Positions left where an entry was alive and the lookback ended before it."""
SHOWN_CALLS = 3
FAIL_UNDER = "fail_under"
"""What verdicts of `--fail-under` are called."""


def differences(before: Baseline, now: Baseline, strategy: str) -> list[str]:
    """What besides the prompts of a strategy has changed since: "price of a read $0.5, now $0.4". Empty: comparable.
    Judged is what was used, not versions of the data: prices of other models may come and go."""
    pairs = [(name, getattr(before, name), getattr(now, name)) for name in ("host", "model", "as_of")]
    found = [f"{name} {old}, now {new}" for name, old, new in pairs if old != new]
    if found:
        return found
    old, new = before.strategies[strategy], now.strategies[strategy]
    prices = [(before.prices, old.prices), (now.prices, new.prices)]
    found += _compare_records(prices, {}, "the {} price of {} {}, now {}")
    # Rules that came after an older baseline are at their default there.
    rules = [(before.rules, old.rules), (now.rules, new.rules)]
    found += _compare_records(rules, rule_defaults(), "{} of {} {}, now {}")
    if old.tokens != new.tokens:
        found.append(f"tokens counted by {old.tokens}, now by {new.tokens}")
    elif old.calls_a_row == new.calls_a_row and len(old.rows) == len(new.rows):
        rows = list(zip(old.rows, new.rows, strict=True))
        is_same = all((one.prompt, one.breakpoints) == (other.prompt, other.breakpoints) for one, other in rows)
        if is_same and any(one.read + one.other != other.read + other.other for one, other in rows):
            found.append("the token counts of identical prompts changed")
    return found


@cache
def rule_defaults() -> Mapping[str, str]:
    """Rules that a model need not state, as a baseline writes their default."""
    found = msgspec.structs.fields(ModelRules)
    stated = {field.name: field.default for field in found if field.default is not msgspec.NODEFAULT}
    made = {field.name: field.default_factory() for field in found if field.default_factory is not msgspec.NODEFAULT}
    return {name: str(default) for name, default in {**stated, **made}.items()}


def _compare_records(
    tables: Sequence[tuple[Mapping[str, Record], Sequence[str]]], default: Record, words: str
) -> list[str]:
    """What differs for a model that both tables know. More ways to call it, or fewer, are a change of the prompts."""
    found = list[str]()
    by_model: list[dict[tuple[str, str], dict[tuple[tuple[str, str], ...], Record]]] = [{}, {}]
    for (table, used), groups in zip(tables, by_model, strict=True):
        for one in ({**default, **table[name]} for name in used if name in table):
            model = one.get("host", ""), one.get("model", "")
            groups.setdefault(model, {})[tuple(sorted(one.items()))] = one
    for model in sorted(by_model[0].keys() & by_model[1].keys()):
        old, new = (groups[model] for groups in by_model)
        if not (old.keys() <= new.keys() or new.keys() <= old.keys()):
            was, is_now = old[min(old.keys() - new.keys())], new[min(new.keys() - old.keys())]
            for name in sorted(was.keys() | is_now.keys()):
                values = was.get(name, ABSENT), is_now.get(name, ABSENT)
                if values[0] != values[1]:
                    found.append(words.format(name.replace("_", " "), model[1], *values))
    return found


def least_margin(replayed: ReplayedStrategy) -> tuple[int, int] | None:
    """The fewest lookback positions that any call had left when it found what it read (at its breakpoint itself one
    less than the window, rule 9), and the first such call; None where nothing was read."""
    found = list[tuple[int, int]]()
    for one in replayed.simulated:
        if one.row.cause == "lookback_exceeded":
            found.append((OUT_OF_REACH, one.row.call))
            continue
        for outcome in (passed.outcome for passed in one.passes):
            if (hit := outcome.hit) is None or one.rules is None:
                continue
            prefixes = [breakpoint.prefix for breakpoint in outcome.breakpoints]
            nearest = next((prefix for prefix in prefixes if prefix.depth >= hit.depth), None)
            if nearest is not None:
                left = one.rules.lookback_positions - 1 - lookback_steps(nearest, hit, one.rules)
                found.append((left, one.row.call))
    return min(found, default=None)


def find_changed_calls(replayed: ReplayedStrategy, layer: Layer) -> list[int]:
    """The calls in which `layer` is not what it was in the call before of their conversation and model; messages are
    stable while they only grow."""
    before: dict[object, tuple[Request, str]] = {}
    calls, number = list[int](), tuple(Layer).index(layer)
    for one in replayed.simulated:
        now = replayed.request(one.row.call)
        # The parameters that the layer depends on (rule 2); "" for a call that was refused.
        cache_key = one.passes[0].prompt.cache_keys[number] if one.passes else ""
        key = (replayed.conversation(one.row.call), one.rules.model if one.rules else now.model)
        if key in before:
            was, earlier_key = before[key]
            is_same = earlier_key == cache_key
            if layer is Layer.MESSAGES:
                is_same = is_same and was.thread.common(now.thread) is was.thread
            elif layer is Layer.TOOLS:
                is_same = is_same and was.tools.digest == now.tools.digest
            else:
                is_same = is_same and was.system.digest == now.system.digest
            if not is_same:
                calls.append(one.row.call)
        before[key] = now, cache_key
    return calls


def check_budgets(
    scenario: Scenario, replays: Sequence[ReplayedStrategy], now: Baseline, baseline: Baseline | None
) -> Iterator[Verdict]:
    """The verdict on each budget of `scenario` as written, for the strategy it names, else for each; in the file's
    order."""
    checkers = {one.strategy: LimitChecker(scenario, one, now, baseline) for one in replays}
    named = [spec.name for spec in scenario.strategies] or [AS_RECORDED]
    for number, budget in enumerate(scenario.budget):
        for strategy in [budget.strategy] if budget.strategy else named:
            for name, limit in budget.limits.items():
                yield checkers[strategy].verdict(name, limit, scenario.budget_place(number, name))


def check_hit_rates(
    scenario: Scenario, replays: Sequence[ReplayedStrategy], now: Baseline, minimum: Decimal, place: SourcePlace
) -> Iterator[Verdict]:
    """The verdict of `--fail-under` on each strategy that has a budget; without budgets on the calls as recorded, or
    where there are none on each strategy."""
    about_all = any(budget.strategy is None for budget in scenario.budget)
    named = {budget.strategy for budget in scenario.budget} if scenario.budget else {AS_RECORDED}
    found = [one for one in replays if one.strategy in named or (about_all and one.strategy != AS_RECORDED)]
    for one in found or replays:
        yield LimitChecker(scenario, one, now, None).verdict(FAIL_UNDER, minimum, place)


@dataclass(frozen=True, slots=True)
class _Result:
    """The result for one limit: a verdict without scenario, strategy and place."""

    state: State
    actual: Decimal | None
    message: str
    changes: tuple[CostChange, ...] = ()


class LimitChecker:
    """Checks one strategy of a scenario against limits."""

    def __init__(
        self, scenario: Scenario, replayed: ReplayedStrategy, now: Baseline, baseline: Baseline | None
    ) -> None:
        self._scenario, self._now, self._baseline = scenario, now, baseline
        self._replayed, self._ledger, self._causes = replayed, replayed.ledger, Causes(replayed)

    def verdict(self, name: str, limit: Any, place: SourcePlace | None) -> Verdict:
        """The verdict on the limit called `name`, which is written at `place`."""
        rows, asked, turns = self._ledger.rows, self._ledger.inquiries, self._replayed.turns
        questions = len({row.inquiry for row in asked})
        checks: Mapping[str, Callable[[Any], _Result]] = {
            "max_cost_usd": lambda limit: self._dollars(rows, limit, ""),
            "max_cost_per_call_usd": lambda limit: self._shared_out(rows, len(rows), limit, "call"),
            "max_cost_per_turn_usd": lambda limit: self._shared_out(rows, turns, limit, "turn"),
            "max_cost_per_inquiry_usd": lambda limit: self._shared_out(asked, questions, limit, "question"),
            "min_cache_hit_rate": self._cache_hit_rate,
            FAIL_UNDER: self._cache_hit_rate,
            "max_regression": self._regression,
            "max_breakpoints": self._breakpoints,
            "min_lookback_margin": self._margin,
            "no_write_never_read": self._never_read,
            "prefix_stable": self._stable,
        }
        found, strategy = checks[name](limit), self._replayed.strategy
        is_number = isinstance(limit, int | Decimal) and not isinstance(limit, bool)
        at_most = Decimal(limit) if is_number else ZERO  # of what is not to happen at all
        head = self._scenario.name, strategy, name, at_most
        return Verdict(*head, found.actual, found.state, f"{strategy} {found.message}", place, found.changes)

    def _shared_out(self, rows: Sequence[CallRow], count: int, limit: Decimal, noun: str) -> _Result:
        if not count:
            return _Result("not_comparable", None, f"has no {noun}s, so it has no cost per {noun}.")
        return self._dollars(rows, limit * count, f" a {noun}", count)

    def _dollars(self, rows: Sequence[CallRow], limit: Decimal, each: str, count: int = 1) -> _Result:
        """Compare the cost of `rows` with `limit`; messages divide both by `count`."""
        if why := self._incomplete():
            return why
        total, missed = self._ledger.cost_of(rows), most_of(rows)
        one, most = exact_share(total, count), exact_share(limit, count)
        words = (exact_dollars if dollars(one) == dollars(most) and count == 1 else dollars)(one)
        if total <= limit < missed:
            may = f"may cost {words}{each}, or {dollars(exact_share(missed, count))} without a cache hit"
            return _Result(
                "not_comparable", one, f"{may}: hits are best effort here. The limit is {exact_dollars(most)}."
            )
        if total <= limit:
            return _Result("pass", one, f"costs {words}{each}; the limit is {exact_dollars(most)}.")
        over = f"{dollars(exact_share(total - limit, count))} more than the limit of {exact_dollars(most)}"
        return _Result("fail", one, f"costs {words}{each}, {over}.", self._why())

    def _regression(self, limit: Decimal) -> _Result:
        before = self._before()
        if not isinstance(before, Decimal):
            return before
        total = self._ledger.cost.total
        change = exact_share(total - before, before) if before else (None if total else ZERO)
        day = self._baseline.accepted if self._baseline else None
        message = f"costs {against(total, before, change, limit, day)}; the limit is {exact(limit * 100)}%."
        if total - before > before * limit:
            return _Result("fail", change, message, self._why())
        return _Result("pass", change, message)

    def _before(self) -> Decimal | _Result:
        """What this strategy cost at the baseline, or why that says nothing about it now."""
        baseline, name = self._baseline, self._replayed.strategy
        if baseline is None:
            return _Result("not_comparable", None, "has no baseline yet: write one with `cachecost check --update`.")
        if name not in baseline.strategies:
            return _Result("not_comparable", None, "is not in the baseline: add it with `cachecost check --update`.")
        if changed := differences(baseline, self._now, name):
            words = "cannot be compared with its baseline, because more than the prompts changed"
            return _Result("not_comparable", None, f"{words}: {'; '.join(changed)}.")
        before, now = baseline.strategies[name], self._now.strategies[name]
        same = now.calls and (before.errors, before.refused) == (now.errors, now.refused)
        return before.cost_usd if same else self._incomplete() or before.cost_usd

    def _incomplete(self) -> _Result | None:
        """Why the sum of these calls is not what the conversation costs; None if it is."""
        rows = self._ledger.rows
        if not rows:
            return _Result("not_comparable", None, "makes no calls, so it has no cost.")
        failed = [row for row in rows if row.error is not None]
        refused = [row for row in failed if row.error_type == REFUSED]
        share = f"{len(refused or failed):,} of {count_text(len(rows), 'call')}"
        if refused:
            first = f"first call {refused[0].call}: {refused[0].error}"
            return _Result("fail", None, f"sends {share} that the API refuses, {first}")
        if failed:
            words = f"has {share} that cannot be priced, so its total is unknown: {failed[0].error}"
            return _Result("not_comparable", None, words)
        return None

    def _why(self) -> tuple[CostChange, ...]:
        before = self._before()
        if isinstance(before, Decimal) and self._baseline and self._ledger.cost.total > before:
            return self._causes.since(self._baseline, self._now)
        return self._causes.avoidable()

    def _cache_hit_rate(self, limit: Decimal) -> _Result:
        if why := self._incomplete():
            return why
        usage = self._ledger.usage
        if not usage.total_input:
            return _Result("not_comparable", None, "sends no input, so it has no cache hit rate.")
        share, words = exact_share(usage.read, usage.total_input), exact(limit * 100)
        message = f"has a cache hit rate of {percent_apart(share, limit)}; the minimum is {words}%."
        broken = usage.read < limit * usage.total_input
        if not broken and self._ledger.most is not None:
            may = f"may reach a cache hit rate of {percent_apart(share, limit)}, but hits are best effort"
            return _Result("not_comparable", share, f"{may}; the minimum is {words}%.")
        return _Result("fail" if broken else "pass", share, message, self._causes.avoidable() if broken else ())

    def _breakpoints(self, limit: int) -> _Result:
        """The automatic breakpoint and those of refused calls count; to a host that caches by itself none are sent."""
        calls, simulated = self._replayed.calls, self._replayed.simulated
        if not calls:
            return _Result("not_comparable", None, "makes no calls, so it places no breakpoints.")
        counts = [
            0 if one.rules and one.rules.is_automatic else len(sent_breakpoints(call.request).breakpoints)
            for call, one in zip(calls, simulated, strict=True)
        ]
        most = max(counts)
        where = f"{count_text(most, 'breakpoint')} in call {counts.index(most) + 1}"
        message = f"places {where}; the limit is {limit}."
        return _Result("fail" if most > limit else "pass", Decimal(most), message)

    def _margin(self, limit: int) -> _Result:
        if other := self._replayed.rules_without_lookback:
            return _Result("not_comparable", None, f"has a cache without lookback: {other.way_in_words}.")
        least = least_margin(self._replayed)
        if least is None:
            return _Result("not_comparable", None, "reads nothing from the cache, so it has no lookback margin.")
        left, call = least
        if left == OUT_OF_REACH:
            words = f"misses in call {call} what an earlier call wrote, because the lookback ends before it"
        else:
            positions = count_text(left, "lookback position") if left else "no lookback position"
            words = f"has {positions} left in call {call}"
        broken = left < limit or left == OUT_OF_REACH
        changes = self._causes.avoidable() if broken else ()
        return _Result("fail" if broken else "pass", Decimal(left), f"{words}; the minimum is {limit}.", changes)

    def _never_read(self, limit: bool) -> _Result:
        """Writes that no later call read. The last call of a conversation cannot know that nothing follows, so it is
        let off; conversations of a single call only if there is one of them (as `explain` does)."""
        if why := self._incomplete():
            return why
        replayed, unread = self._replayed, UnreadTracker()
        for one in replayed.simulated:
            for passed in one.passes:
                assert one.prices is not None
                unread.add(one.row.call, passed.outcome, one.prices, passed.sizes)
        keys = [replayed.conversation(number) for number in range(1, len(replayed.calls) + 1)]
        sizes, last = Counter(keys), {key: number for number, key in enumerate(keys, 1)}
        lone = sum(size == 1 for size in sizes.values())
        let_off = {number for key, number in last.items() if sizes[key] > 1 or lone == 1}
        calls = [call for call, _ in unread if call not in let_off]
        wasted = unread.of_all(calls)
        if not wasted.tokens:
            return _Result("pass", ZERO, "writes nothing that no later call reads.")
        where = f"{_calls(calls)}: {dollars(wasted.extra)} more than sending them uncached"
        words = f"writes {wasted.tokens:,} tokens that no later call reads, in {where}."
        return _Result("fail", Decimal(wasted.tokens), words, self._causes.avoidable())

    def _stable(self, limit: list[str]) -> _Result:
        if not self._replayed.calls:
            return _Result("not_comparable", None, "makes no calls, so nothing can change.")
        layers = " and ".join(dict.fromkeys(limit))
        found = {layer: find_changed_calls(self._replayed, layer) for layer in Layer if layer in limit}
        parts = [f"{layer} in {_calls(calls)}" for layer, calls in found.items() if calls]
        if not parts:
            return _Result("pass", ZERO, f"does not change {layers} within a conversation.")
        words = f"changes {' and '.join(parts)} within a conversation; {layers} must not change."
        return _Result("fail", Decimal(len(set().union(*found.values()))), words, self._causes.avoidable())


def _calls(calls: Sequence[int]) -> str:
    """ "call 3", "calls 3, 7 and 9", "calls 3, 7, 9 and 14 more"."""
    shown = [str(call) for call in calls[:SHOWN_CALLS]]
    if len(calls) > SHOWN_CALLS:
        return f"calls {', '.join(shown)} and {len(calls) - SHOWN_CALLS:,} more"
    return f"{'call' if len(calls) == 1 else 'calls'} {all_of(shown)}"
