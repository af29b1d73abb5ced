"""Probes: small sequences of real calls that settle the open questions of the rulebook, each priced beforehand.

`registry.chosen` picks them, `plan` prices them, `verify` runs them, `write` makes a rules file of what they found.
"""

from cachecost.live.probes import registry
from cachecost.live.probes.harness import PricedProbe, Probe
from cachecost.live.probes.model import Finding
from cachecost.live.probes.planning import plan, summary
from cachecost.live.probes.verifying import verify
from cachecost.live.probes.writing import rules_text, write

__all__ = ["Finding", "PricedProbe", "Probe", "plan", "registry", "rules_text", "summary", "verify", "write"]
