"""What the rules of hosts without breakpoints claim, and which recorded calls confirm or refute it."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.caches.reporting import round_down_to_block
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage

CLAIMS: dict[str, str] = {
    "step": "a read ends at a block boundary of the host, as usage reports it",
    "minimum": "nothing shorter than the minimum is read",
    "kept": "everything that an earlier call cached is read",
    "nothing else": "nothing is read that no call cached",
    "range": "what is read is no more than earlier calls sent",
}
OF_EACH_READ = ("step", "minimum")
"""Claims that the size of a read confirms or refutes by itself, even if the write was not recorded."""


def claim_name(host: str, claim: str) -> str:
    return f"{host}: {claim}"


def find_claims(rules: ModelRules, kind: str, predicted: Usage, billed: Usage) -> Iterator[str]:
    """The claims that a judged call is evidence for or against."""
    if billed.read:
        if rules.step_tokens > 1 or rules.reported_step_tokens > 1:
            yield "step"
        yield "minimum"
    if kind == "range":
        yield "range"
    elif kind in ("hit", "cold"):
        yield "kept" if predicted.read else "nothing else"


def find_refuted_claims(rules: ModelRules, billed: Usage) -> Iterator[str]:
    """The claims that the size of a read refutes."""
    if billed.read and billed.read != _longest_reported(billed.read, rules):
        yield "step"
    if 0 < billed.read <= rules.minimum_tokens - rules.reported_step_tokens:
        yield "minimum"


def _longest_reported(read: int, rules: ModelRules) -> int:
    """The longest read up to `read` that ends at a block boundary and that usage can report."""
    point = round_down_to_block(read + rules.reported_step_tokens - 1, rules)
    return point - point % rules.reported_step_tokens
