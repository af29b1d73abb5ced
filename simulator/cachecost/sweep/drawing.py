"""What a seed varies: the times alone, or the whole of a synthetic conversation."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError, nearest
from cachecost.conversations.distributions import Distribution, parse_distribution
from cachecost.conversations.synthetic import SyntheticSpec
from cachecost.scenario.models import Scenario
from cachecost.sweep.montecarlo.draws import Draw, Retries

PAUSES = ("turn", "loop", "first_token")
SHARES = ("eviction", "lag_probability", "retry_rate")
OTHERS = ("lag_s", "retry_wait", "retry_billed")
NAMES = (*PAUSES, *SHARES, *OTHERS)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The requested draws by name: pauses as distributions, shares as numbers. Empty: the conversation's own."""

    values: dict[str, Any] = field(default_factory=dict)

    def apply_to(self, draw: Draw) -> Draw:
        """`draw` with the requested values."""
        own = {name: value for name, value in self.values.items() if name in {one.name for one in fields(Draw)}}
        retries = draw.retries
        if "retry_rate" in self.values:
            options = {
                name.removeprefix("retry_"): self.values[name] for name in self.values if name.startswith("retry_")
            }
            retries = Retries(**options)
        return replace(draw, **own, retries=retries)


def parse_draws(texts: tuple[str, ...]) -> Drawing:
    """`turn={mean: 120, sd: 300}`, `eviction=0.05` … as draws. Raises InputError with every fault."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            if not equals or name not in NAMES:
                raise ValueError(f"expected NAME=VALUE, NAME one of {', '.join(NAMES)}{nearest(name, NAMES)}")
            values[name] = _value(name, yaml_text.parse(value, "--draw").value)
        except ValueError as error:
            faults.append(Fault(f"--draw {text}:", str(error)))
        except InputError as error:
            faults += [Fault(f"--draw {text}:", fault.message) for fault in error.faults]
    if any(name.startswith("retry_") for name in values) and "retry_rate" not in values:
        faults.append(Fault("--draw retry_rate:", "expected a share from 0 to 1 with the other retry draws; got none"))
    if faults:
        raise InputError(faults)
    return Drawing(values)


def _value(name: str, value: Any) -> Distribution | float | bool:
    if name == "retry_billed":
        if isinstance(value, bool):
            return value
        raise ValueError(f"expected true or false; got {value!r}")
    if name in SHARES or name == "lag_s":
        most = 1 if name in SHARES else float("inf")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
            return float(value)
        raise ValueError(f"expected a number from 0{' to 1' if name in SHARES else ''}; got {value!r}")
    return parse_distribution(value)


def varies_in_times_only(scenario: Scenario) -> bool:
    """Whether another seed leaves what is sent as it is: so of a recording, and where all else is plain numbers."""
    spec = scenario.conversation.synthetic
    if spec is None:
        return True
    if spec.inquiries is not None or (spec.forks is not None and spec.forks.rate):
        return False
    numbers = [spec.calls, spec.tools, *(getattr(spec.sizes, size.name) for size in fields(spec.sizes))]
    numbers += [spec.forks.back] if spec.forks is not None else []
    return all(isinstance(number, int | float) for number in numbers)


def synthetic_draw(spec: SyntheticSpec) -> Draw:
    """The pauses of a synthetic conversation, to be drawn anew."""
    return Draw(turn=spec.pauses.turn, loop=spec.pauses.loop, first_token=spec.pauses.first_token)
