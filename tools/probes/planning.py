"""Upper bounds of what probes cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from cachecost.providers.prices import STANDARD, PriceBook, Prices
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from tools.probes.harness import PricedProbe, Probe
from tools.probes.model import SETTLE_S


def plan(
    model: str,
    prices: PriceBook,
    rules: RuleBook,
    probes: Iterable[Probe],
    host: str = "anthropic",
    day: date | None = None,
) -> list[PricedProbe]:
    """Each probe on `model` with its upper bounds. Raises CannotEvaluate for an unknown model or price.

    All input is priced at the most expensive class that the breakpoints allow. Attempts without a bill are not
    included: the sender's budget bounds them.
    """
    known = rules.rules(host, model, day)
    return [_price_probe(probe, model, known, prices) for probe in probes]


def summary(planned: Sequence[PricedProbe]) -> str:
    """The totals in one line."""
    calls, dollars = sum(one.calls for one in planned), sum((one.dollars for one in planned), Decimal(0))
    minutes = sum(one.wait_s for one in planned) / 60
    return f"{len(planned)} probes: at most {calls} calls and ${dollars:.2f}, {minutes:.0f} min of waiting"


def _price_probe(probe: Probe, model: str, rules: ModelRules, prices: PriceBook) -> PricedProbe:
    longest = [max(rules.minimum_tokens + extra, probe.reaches) for _, extra in probe.sizes]
    tokens = sum(calls * size for (calls, _), size in zip(probe.sizes, longest, strict=True))
    output = probe.calls + probe.output_tokens
    quote = prices.quote(rules.host, rules.model, rules.day, STANDARD).of(max(longest))
    return PricedProbe(
        probe=probe,
        model=model,
        calls=probe.calls,
        input_tokens=tokens,
        output_tokens=output,
        dollars=_highest_cost(tokens, output, probe.uses_1h, quote),
        wait_s=probe.lives * rules.ttl_s["5m"] + probe.settles * SETTLE_S,
        minimum=rules.minimum_tokens,
        ttl_s=rules.ttl_s["5m"],
        lookback=rules.lookback_positions,
        prices=quote,
    )


def _highest_cost(tokens: int, output: int, uses_1h: bool, prices: Prices) -> Decimal:
    classes = [Usage(input_tokens=tokens), Usage(write_5m=tokens), Usage(read=tokens)]
    if uses_1h:
        classes.append(Usage(write_1h=tokens))
    return max(cost(usage, prices) for usage in classes) + cost(Usage(output_tokens=output), prices)


def cost(usage: Usage, prices: Prices) -> Decimal:
    """Dollars of a bill."""
    return prices.total_cost(usage)
