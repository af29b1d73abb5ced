"""Probes: small sequences of real calls that settle open questions of the rulebook, priced beforehand.

`select_probes` selects them, `plan` prices them, `verify` runs them, `write` writes a rules file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachecost.base.errors import Fault, InputError, nearest
from tools.probes.harness import PricedProbe, Probe
from tools.probes.lookback import RUNS, WINDOW
from tools.probes.minimum import MINIMUM
from tools.probes.model import ProbeFinding
from tools.probes.parameters import EFFORT, STRUCTURED, THINKING, TOOL_CHOICE
from tools.probes.planning import plan, summary
from tools.probes.rules_file import rules_text, write
from tools.probes.ttls import SHALLOW_BREAKPOINTS, TTL_IN_KEY, TTL_LENGTH
from tools.probes.verification import verify
from tools.probes.visibility import VISIBILITY

__all__ = [
    "PROBES",
    "PricedProbe",
    "Probe",
    "ProbeFinding",
    "plan",
    "rules_text",
    "select_probes",
    "summary",
    "verify",
    "write",
]

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
        TTL_LENGTH,
        SHALLOW_BREAKPOINTS,
    )
}


def select_probes(names: Iterable[str] = ()) -> list[Probe]:
    """The probes of these names, or all, in the order they are run. Raises InputError."""
    wanted = set(names)
    if faults := [Fault("--probe", _unknown(name)) for name in sorted(wanted - set(PROBES))]:
        raise InputError(faults)
    return [probe for name, probe in PROBES.items() if name in wanted or not wanted]


def _unknown(name: str) -> str:
    return f"expected one of {', '.join(PROBES)}; got '{name}'{nearest(name, PROBES)}"
