"""`cache_cost`: takes the calls of a test, and reports and asserts what they would cost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import ZERO
from cachecost.providers.usage import Usage
from cachecost.testing import sentences
from cachecost.testing.simulated import SimulatedAPI
from cachecost.testing.stability import LAYERS, changes

if TYPE_CHECKING:
    from cachecost.analysis.lint import LintFinding

Severity = Literal["error", "warning", "note"]
DOLLARS = 'US dollars from 0, like 0.05 or "0.05"'
SHARE = 'a share from 0 to 1, like 0.9 or "0.9"'
SEVERITIES: Sequence[Severity] = ("error", "warning", "note")


class CacheCost(SimulatedAPI):
    """A simulated API for one test: same calls, same answers, same times, same dollars.

    `as_of` is the day whose rules and prices hold (default: that of the shipped rules); the clock starts on it.
    `tokens` selects the counter (tiktoken, bytes, ctok), `rules` are assumptions by name, `prices` is your own file,
    `answers` selects the answers (agent, agent:N, script:FILE, recording:FILE), `clock` the time (+2s: each call that
    much after the last). Requests are written to `recording`, a request log in `folder`, without any key. Raises
    InputError, CannotEvaluate, ValueError.
    """

    @property
    def dollars(self) -> Decimal:
        """What all calls cost in USD, exactly."""
        return sum((row.cost.total for row in self.calls), ZERO)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((row.usage for row in self.calls), Usage())

    @property
    def cache_hit_rate(self) -> Decimal:
        """Which share of all input tokens was read from the cache, from 0 to 1; 0 where there was no input."""
        usage = self.usage
        return Decimal(usage.read) / usage.total_input if usage.total_input else ZERO

    def explain(self) -> Explanation:
        """What the calls pay more than they must, each cause with its place and its dollars.

        Warns of calls whose cache has no lookback breakpoints, which are left out; raises CannotEvaluate where all are.
        """
        from cachecost.analysis.explain.explaining import explain_workload
        from cachecost.api.setup import only_supported
        from cachecost.simulation.workload import read_workload

        self._require_calls()
        calls = read_workload(self.recording, self._setup, self._setup.tokens)
        return explain_workload(only_supported(calls, "explain"))

    def lint(self) -> list[LintFinding]:
        """What is wrong with the calls, each alone and with the one before it."""
        from cachecost.analysis.lint import RequestLoader, lint_log
        from cachecost.conversations.readers.detect import read_calls

        self._require_calls()
        desk = RequestLoader(self._setup.rules, self._setup.host, self._setup.tokens)
        return lint_log(read_calls(self.recording), "this test", desk).findings

    def assert_costs_at_most(self, dollars: str | Decimal | float) -> None:
        """All calls together cost no more than that many USD; equal passes. 0.05 and "0.05" are the same limit.

        Raises ValueError for what is no amount of dollars.
        """
        __tracebackhide__ = True
        limit, spent = _exact(dollars, DOLLARS), self.dollars
        self._require_calls()
        if spent > limit:
            raise AssertionError(sentences.cost_message(spent, limit, self._evidence()))

    def assert_cache_hit_rate_at_least(self, share: str | float | Decimal) -> None:
        """At least this share (0 to 1) of all input tokens was read from the cache; equal passes.

        Raises ValueError for what is no share.
        """
        __tracebackhide__ = True
        limit, reached = _exact(share, SHARE, most=1), self.cache_hit_rate
        self._require_calls()
        if reached < limit:
            raise AssertionError(sentences.hit_rate_message(reached, limit, self._evidence()))

    def assert_prefix_stable(self, *layers: str, across_conversations: bool = False) -> None:
        """These layers (tools, system, messages; all if none is named) are in each call as in the one it goes on from.

        Messages are stable if they only grow. With `across_conversations` tools and system are compared with those of
        the call before, whatever its conversation. Fails where no call could be compared with another.
        """
        __tracebackhide__ = True
        if unknown := [name for name in layers if name not in LAYERS]:
            raise ValueError(f"expected {', '.join(LAYERS)}; got {', '.join(map(repr, unknown))}")
        self._require_calls()
        compared, found = changes(self._meter.taken, layers or LAYERS, across_conversations)
        if found:
            raise AssertionError(sentences.stability_message(found))
        if not compared:
            raise AssertionError(sentences.NOTHING_TO_COMPARE)

    def assert_no_lint(self, severity: Severity = "warning", *, ignore: Sequence[str] = ()) -> None:
        """Lint finds nothing this bad or worse (error, warning, note); `ignore` are codes that do not count."""
        __tracebackhide__ = True
        if severity not in SEVERITIES:
            raise ValueError(f"severity: expected {', '.join(SEVERITIES)}; got {severity!r}")
        counts = SEVERITIES[: SEVERITIES.index(severity) + 1]
        found = [one for one in self.lint() if one.severity in counts and one.code not in ignore]
        if found:
            raise AssertionError(sentences.lint_message(found))

    def _evidence(self) -> sentences.CostEvidence:
        """The calls, what of them was avoidable, and what became of tools and system within a conversation."""
        found = changes(self._meter.taken, ("tools", "system"), across=False)[1]
        return sentences.CostEvidence(self.calls, self.explain(), found)

    def _require_calls(self) -> None:
        __tracebackhide__ = True
        if not self.calls:
            raise AssertionError(sentences.NO_CALL)


def _exact(number: str | Decimal | float, what: str, most: int | None = None) -> Decimal:
    """A limit as it was written: 0.1 is a tenth, though the float is not. Raises ValueError."""
    try:
        found = Decimal(str(number))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0 or (most is not None and found > most):
        raise ValueError(f"expected {what}; got {number!r}")
    return found
