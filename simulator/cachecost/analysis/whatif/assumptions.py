"""Alternatives under other assumptions: which turn from a gain into a loss, or back?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from cachecost.analysis.whatif.alternatives import Alternative
from cachecost.analysis.whatif.catalogue import RecordingProfile
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.base.formatting import dollars
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import WARM_START
from cachecost.prompts.blocks import TOOL_RUNS
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.providers.listing import assumption_rows
from cachecost.simulation.workload import Workload

PLAYS: dict[str, Callable[[Call], bool]] = {
    "tool_choice_invalidation": lambda call: "tool_choice" in call.request.params,
    "thinking_rendered_at": lambda call: bool({"thinking", "output_config"} & call.request.params.keys()),
    "structured_output_at": lambda call: bool({"output_config", "output_format"} & call.request.params.keys()),
    "lookback_runs": lambda call: _has_run(call),
    "shallow_breakpoints": lambda call: (
        len(sent_breakpoints(call.request).breakpoints) > 1 or bool(call.request.system.blocks)
    ),
    WARM_START: lambda call: False,  # what was cached before is so under every alternative
}
"""Which calls an assumption can matter to; one that is not listed can matter to all."""
NEAR, FAR = Decimal("0.05"), Decimal("0.25")
"""Shares of the dollars of a recording: alternatives that cost more than the first are not tried, nor those that
save more than the second by their price alone."""
BY_PRICE = frozenset({"model", "batch", "us"})


def other_assumptions(traffic: Workload) -> Iterator[tuple[str, str]]:
    """Every other value of an assumption that can matter to some call, as (assumption, value)."""
    for switch in assumption_rows(*traffic.hosts):
        if switch.number is None and any(map(PLAYS.get(switch.name, lambda call: True), traffic.calls)):
            now = str(getattr(traffic.setup.rules.assumptions, switch.name)).lower()
            yield from ((switch.name, one.value) for one in switch.readings if one.value.lower() != now)


def _has_run(call: Call) -> bool:
    node = call.request.thread
    kinds = [block.kind in TOOL_RUNS for one in node.back() if one.message for block in one.message.blocks]
    return any(one and other for one, other in itertools.pairwise(kinds))


def find_reversals(
    pricing: AlternativePricing, options: Sequence[Option], alternatives: Sequence[Alternative]
) -> dict[str, list[str]]:
    """By name of the alternative, the assumptions under which its saving changes sign, in words."""
    known = {option.name: option for option in options}
    asked = [one for one in alternatives if not known[one.name].unchanged and _may_reverse(one, pricing.now)]
    found: dict[str, list[str]] = {}
    for switch, value in other_assumptions(pricing.replays.traffic):
        other = _with_assumption(pricing, switch, value)
        again = {option.name: option for option in RecordingProfile.of(other.replays.traffic, other.base).options()}
        for alternative in asked:
            saving = other.saving([again[alternative.name]]) if alternative.name in again else alternative.saving
            if _sign(saving) != _sign(alternative.saving):
                words = f"with {switch}={value} it {_in_words(saving)}"
                found.setdefault(alternative.name, []).append(words)
    return found


def _may_reverse(alternative: Alternative, now: Decimal) -> bool:
    """Whether it saves, or costs so little more that it might."""
    if alternative.saving is None or alternative.saving <= -NEAR * now:
        return False
    return alternative.kind not in BY_PRICE or alternative.saving < FAR * now


def _with_assumption(pricing: AlternativePricing, switch: str, value: str) -> AlternativePricing:
    other = pricing.replays.with_workload(pricing.replays.traffic.with_assumptions({switch: value}))
    return AlternativePricing(other, pricing.now)


def _sign(saving: Decimal | None) -> int:
    return 0 if not saving else 1 if saving > 0 else -1


def _in_words(saving: Decimal | None) -> str:
    if not saving:
        return "saves nothing"
    return f"saves {dollars(saving)}" if saving > 0 else f"costs {dollars(-saving)} more"
