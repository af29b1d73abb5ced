"""Which rules of the rulebook and claims of hosts without breakpoints were seen in recorded calls, or contradicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachecost.account.causes import causes
from cachecost.analysis.fidelity.judging import TOLERANCE
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.reporting import round_down_to_block
from cachecost.ledger.results import Evidence, Judgement
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call, its first pass's prompt and outcome, its cause, and its predicted and billed usage."""

    request: Request
    rules: ModelRules
    prompt: Prompt
    outcome: Outcome
    cause: str
    passes: int
    timed: bool
    predicted: Usage
    billed: Usage


def find_exercised_rules(facts: CallFacts) -> tuple[str, ...]:
    """The rules that this call is evidence for or against."""
    row = causes().get(facts.cause)
    human, hit, counted = facts.request.thread.human, facts.outcome.hit, facts.outcome.breakpoints
    has_thought = human is not None and human.parent is not None and human.parent.has_thinking
    is_at_breakpoint = any(breakpoint.prefix is hit for breakpoint in facts.prompt.breakpoints)
    ttls = {breakpoint.ttl for breakpoint in counted}
    found = {
        "3 kept": has_thought and facts.rules.keeps_thinking,
        "3 stripped": has_thought and not facts.rules.keeps_thinking,
        "5": bool(facts.request.automatic),
        "10 server tools": facts.passes > 1,
        "8 reached": bool(facts.prompt.breakpoints and counted),
        "8 below": bool(facts.prompt.breakpoints and not counted),
        row.tested_as if row else "": bool(row and row.tested_as),
        "10 nothing else": hit is None,
        "1": hit is not None,
        "9 breakpoint": hit is not None and is_at_breakpoint,
        "9 lookback": hit is not None and not is_at_breakpoint,
        "12 alive": hit is not None and facts.timed,
        "4": bool(counted) and counted[-1].prefix is facts.prompt.end,
        "15 split": bool(facts.billed.write) and len(ttls) == 2,
        "15 one TTL": bool(facts.billed.write) and len(ttls) != 2,
    }
    return tuple(sorted(rule for rule, is_exercised in found.items() if is_exercised))


def find_broken_rules(facts: CallFacts) -> tuple[str, ...]:
    """Rules whose own figure is wrong although the right prefix was hit: the split, the tail, the minimum."""
    written = facts.billed.write > 0 or facts.billed.read > 0
    checks = {
        "4": facts.passes > 1 or abs(facts.predicted.input_tokens - facts.billed.input_tokens) <= TOLERANCE,
        "8 below": not written,
        "8 reached": written,
        "15 split": bool(facts.billed.write_1h) == bool(facts.predicted.write_1h)
        and bool(facts.billed.write_5m) == bool(facts.predicted.write_5m),
        "15 one TTL": (facts.billed.write_1h > 0) == (facts.predicted.write_1h > 0) or not facts.billed.write,
    }
    return tuple(rule for rule in find_exercised_rules(facts) if not checks.get(rule, True))


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
    end = round_down_to_block(billed.read + rules.reported_step_tokens - 1, rules)  # of a block, and reportable
    if billed.read and billed.read != end - end % rules.reported_step_tokens:
        yield "step"
    if 0 < billed.read <= rules.minimum_tokens - rules.reported_step_tokens:
        yield "minimum"


RULES: dict[str, str] = {
    "1": "a body renders to tools, system, messages; a moved breakpoint changes nothing",
    "2 tools": "changed tools rewrite everything",
    "2 system": "a changed system prompt rewrites from the system layer on",
    "2 tool_choice": "another class of tool_choice rewrites the messages",
    "2 thinking": "another thinking configuration rewrites the messages",
    "2 effort": "another effort rewrites the messages, or everything: a row by model",
    "2 format": "another output format rewrites from the system layer on",
    "2 images": "the first image rewrites the messages",
    "2 speed": "fast and standard share nothing",
    "2 model": "models share nothing",
    "3 stripped": "last-turn-only models drop earlier thinking when a person speaks",
    "3 kept": "other models keep it, and it is billed",
    "4": "hidden tokens come after the last breakpoint",
    "5": "automatic caching puts its breakpoint on the last block that can carry one",
    "8 below": "a prefix below the minimum is not cached",
    "8 reached": "a prefix of the minimum or more is",
    "9 breakpoint": "a hit at a breakpoint of the request",
    "9 lookback": "a hit some positions before a breakpoint",
    "10 nothing else": "entries are found only where an earlier call wrote one",
    "10 server tools": "server tools: passes are summed, results cached for five minutes",
    "11": "an entry is readable once its writer's response began",
    "12 alive": "an entry younger than its TTL is read",
    "12 expired": "an entry past its TTL is not",
    "13": "a read refreshes",
    "15 split": "1h and 5m writes divide at the last 1h breakpoint",
    "15 one TTL": "what is written is charged at its breakpoint's TTL",
}
"""The rules that a recorded call can exercise, by the rulebook's numbers."""
IN_TRANSCRIPTS = ", in transcripts"


def evidence_of(judgements: Sequence[Judgement]) -> list[Evidence]:
    """A row for each rule: the calls that exercise it and came out right, and those that did not.

    Steps of transcripts have rows of their own: of them only usages are known, not what was sent.
    """
    requests = [one for one in judgements if not one.is_identity]
    steps = [one for one in judgements if one.is_identity]
    rows = [_build_row(rule, words, requests) for rule, words in RULES.items()]
    identities = (_build_row(rule, words, steps, f"{rule}{IN_TRANSCRIPTS}") for rule, words in RULES.items())
    return [*rows, *(row for row in identities if row.seen or row.contradicted)]


def evidence_of_hosts(judgements: Sequence[Judgement]) -> list[Evidence]:
    """As `evidence_of`, of what the rules of hosts with other caches claim: a row for each host and claim."""
    rows: list[Evidence] = []
    for host in sorted({one.host for one in judgements}):
        for claim, words in CLAIMS.items():
            rule = claim_name(host, claim)
            about = [one for one in judgements if rule in one.rules]
            wrong = [one for one in about if is_refuted(one, rule, claim)]
            rows += [_build_evidence(rule, words, [one for one in about if one not in wrong], wrong)] if about else []
    return rows


def is_refuted(one: Judgement, rule: str, claim: str) -> bool:
    """Whether a call refutes a claim of its host, which is one of the call's rules."""
    return rule in one.broken if claim in OF_EACH_READ else not one.is_right


def _build_row(rule: str, words: str, judgements: Sequence[Judgement], name: str = "") -> Evidence:
    about = [one for one in judgements if rule in one.rules and one.kind != "unknown"]
    wrong = [one for one in about if not one.exact or rule in one.broken]
    return _build_evidence(name or rule, words, [one for one in about if one not in wrong], wrong)


def _build_evidence(rule: str, words: str, right: Sequence[Judgement], wrong: Sequence[Judgement]) -> Evidence:
    places = tuple(f"{one.source}:{one.line}" for one in wrong)
    models, clients = {one.model_name for one in right}, {one.client for one in right}
    return Evidence(rule, words, len(right), places, tuple(sorted(models)), tuple(sorted(clients)))
