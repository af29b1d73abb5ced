"""Runs probes one after another; each gives a finding, even after errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from cachecost.live.clock import Clock, Say, ignore
from cachecost.live.driver.budget import CallFailed, OverBilled, OverBudget, Sender
from tools.probes.harness import REFUSED, PricedProbe, ProbeRun
from tools.probes.minimum import MINIMUM
from tools.probes.model import ProbeAnswer, ProbeFinding, Unsettled
from tools.probes.planning import cost

Keep = Callable[[ProbeFinding], None]


async def verify(
    sender: Sender,
    model: str,
    clock: Clock,
    probes: Sequence[PricedProbe],
    nonce: str,
    host: str = "anthropic",
    say: Say = ignore,
    keep: Keep = ignore,
) -> list[ProbeFinding]:
    """Run what `plan` priced, and `say` and `keep` each finding as it comes. API errors do not raise.

    If the budget is exhausted or the API fails, the remaining probes become findings that were not run.
    """
    findings: list[ProbeFinding] = []
    stop: str | None = None
    for priced in probes:
        if stop:
            finding = _left_out(priced, model, host, nonce, stop)
        else:
            finding, stop = await _one(sender, clock, priced, model, nonce, host)
            stop = stop or _too_small(priced, finding)
        findings.append(finding)
        keep(finding)
        say(finding.line)
    return findings


async def _one(
    sender: Sender, clock: Clock, priced: PricedProbe, model: str, nonce: str, host: str
) -> tuple[ProbeFinding, str | None]:
    """The finding of one probe, and why no other can follow (None: others can)."""
    probe_run = ProbeRun(sender, clock, priced, nonce)
    stop = None
    try:
        answer = await priced.probe.run(probe_run)
    except Unsettled as error:
        answer = ProbeAnswer(None, str(error))
    except OverBudget as error:
        answer, stop = ProbeAnswer(None, f"stopped: {error}", rounds=0), "the budget was exhausted"
    except OverBilled as error:
        answer, stop = ProbeAnswer(None, f"stopped: {error}", rounds=0), "a bill exceeded its upper bound"
    except CallFailed as error:
        answer = ProbeAnswer(None, f"stopped: {error}", rounds=0)
        stop = None if error.status == REFUSED else "a call failed"
    return _make_finding(priced, probe_run, answer, model, nonce, host), stop


def _make_finding(
    priced: PricedProbe, probe_run: ProbeRun, answer: ProbeAnswer, model: str, nonce: str, host: str
) -> ProbeFinding:
    return ProbeFinding(
        probe=priced.probe.name,
        question=priced.probe.question,
        model=model,
        host=host,
        value=answer.value,
        explanation=answer.explanation,
        switch=priced.probe.switch,
        agreed=0 if answer.value is None else answer.agreed,
        rounds=answer.rounds,
        calls=tuple(probe_run.taken),
        dollars=sum((cost(taken.usage, priced.prices) for taken in probe_run.taken), Decimal(0)),
        run=nonce,
    )


def _left_out(priced: PricedProbe, model: str, host: str, nonce: str, why: str) -> ProbeFinding:
    probe = priced.probe
    return ProbeFinding(probe.name, probe.question, model, host, None, f"not run: {why}", probe.switch, run=nonce)


def _too_small(priced: PricedProbe, finding: ProbeFinding) -> str | None:
    """Why the other probes cannot run: their prompts are too short if the minimum is larger than assumed."""
    if priced.probe is not MINIMUM or not isinstance(finding.value, int) or finding.value <= priced.minimum:
        return None
    return (
        f"a prefix needs {finding.value} tokens and the prompts were priced for {priced.minimum}; "
        "run again with --rules FILE and the file written"
    )
