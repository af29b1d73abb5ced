"""Which rules of the rulebook were seen in recorded calls, which are contradicted, which rest on documents alone."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.analysis.fidelity.rule_claims import CLAIMS, OF_EACH_READ, claim_name
from cachecost.ledger.results import Evidence, Judgement

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
    rows = [_row(rule, words, requests) for rule, words in RULES.items()]
    identities = (_row(rule, words, steps, f"{rule}{IN_TRANSCRIPTS}") for rule, words in RULES.items())
    return [*rows, *(row for row in identities if row.seen or row.contradicted)]


def evidence_of_hosts(judgements: Sequence[Judgement]) -> list[Evidence]:
    """As `evidence_of`, of what the rules of hosts with other caches claim: a row for each host and claim."""
    hosts = sorted({one.host for one in judgements})
    rows = (_published_figure(claim_name(host, claim), claim, judgements) for host in hosts for claim in CLAIMS)
    return [row for row in rows if row.seen or row.contradicted]


def _published_figure(rule: str, claim: str, judgements: Sequence[Judgement]) -> Evidence:
    about = [one for one in judgements if rule in one.rules]
    by_number = claim in OF_EACH_READ
    wrong = [one for one in about if (rule in one.broken if by_number else not one.is_right)]
    return _evidence(rule, CLAIMS[claim], [one for one in about if one not in wrong], wrong)


def _row(rule: str, words: str, judgements: Sequence[Judgement], name: str = "") -> Evidence:
    about = [one for one in judgements if rule in one.rules and one.kind != "unknown"]
    wrong = [one for one in about if not one.exact or rule in one.broken]
    return _evidence(name or rule, words, [one for one in about if one not in wrong], wrong)


def _evidence(rule: str, words: str, right: Sequence[Judgement], wrong: Sequence[Judgement]) -> Evidence:
    places = tuple(f"{one.source}:{one.line}" for one in wrong)
    models, clients = {one.model_name for one in right}, {one.client for one in right}
    return Evidence(rule, words, len(right), places, tuple(sorted(models)), tuple(sorted(clients)))
