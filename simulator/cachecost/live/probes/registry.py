"""All probes by name, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.live.probes.harness import Probe
from cachecost.live.probes.lookback import RUNS, WINDOW
from cachecost.live.probes.minimum import MINIMUM
from cachecost.live.probes.parameters import EFFORT, STRUCTURED, THINKING
from cachecost.live.probes.tool_choice import TOOL_CHOICE
from cachecost.live.probes.ttls import LIFETIME, SHALLOW_MARKS, TTL_IN_KEY
from cachecost.live.probes.visibility import VISIBILITY

PROBES: Mapping[str, Probe] = {
    probe.name: probe
    for probe in (
        MINIMUM,
        TOOL_CHOICE,
        THINKING,
        STRUCTURED,
        EFFORT,
        TTL_IN_KEY,
        WINDOW,
        RUNS,
        VISIBILITY,
        LIFETIME,
        SHALLOW_MARKS,
    )
}


def chosen(names: Iterable[str] = ()) -> list[Probe]:
    """The probes of these names in the order in which they are run; all without names. Raises InputError."""
    wanted = set(names)
    if faults := [Fault("--probe", _unknown(name)) for name in sorted(wanted - set(PROBES))]:
        raise InputError(faults)
    return [probe for name, probe in PROBES.items() if name in wanted or not wanted]


def _unknown(name: str) -> str:
    return f"expected one of {', '.join(PROBES)}; got '{name}'{nearest(name, PROBES)}"
