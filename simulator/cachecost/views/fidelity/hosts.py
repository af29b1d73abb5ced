"""How right the predictions are, host by host, and for which hosts nothing was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.base.formatting import count_text
from cachecost.ledger.results import FEW_CALLS, Fidelity, Judgement, is_thin
from cachecost.providers.rulefile import hosts
from cachecost.views.fidelity.scores import Score, basis_in_words, first_cold_starts, score

WAYS = {
    "breakpoint": "at breakpoints",
    "grid": "automatic, fixed-size blocks",
    "units": "automatic, fixed units",
    "named": "explicit cache objects",
    "best_effort": "automatic, best effort",
    "none": "no cache",
}
"""How a host matches prefixes, by `matching` of its rules."""
DOCUMENTED = "nothing recorded: documented only"
EXACT_SHARE = 0.95
"""Of a host's knowable hits and cold starts: from here on its reads count as predicted exactly."""
HELD_SHARE = 0.9
"""Of a host's calls with a range: from here on the range counts as one that holds."""


@dataclass(frozen=True, slots=True)
class HostScore:
    """`worst` is the farthest that a judged read is off, in tokens; of a range, how far it is outside. `reads` are
    the judged calls that read something, `missed` those that were to read something and read nothing, `clients` who
    recorded the judged calls, `models` how many they were of."""

    host: str
    way: str
    score: Score
    worst: int = 0
    reads: int = 0
    missed: int = 0
    is_identity: bool = False
    clients: int = 0
    models: int = 0

    @property
    def standing(self) -> str:
        """What the recordings say of the host's rules, in words. Ends with "(thin)" where `is_thin` says so."""
        judged = self.score.calls - self.score.unknown
        thin = " (thin)" if is_thin(judged, self.clients) else ""
        of = f"{count_text(self.models, 'model')}, {count_text(self.clients, 'client')}"
        if not judged:
            return "nothing knowable recorded: documented only" if self.score.calls else DOCUMENTED
        return f"{self._finding}; {of}{thin}"

    @property
    def _finding(self) -> str:
        totals = self.score
        if totals.ranges and not totals.knowable:
            return f"the range holds in {totals.held:,} of {totals.ranges:,} calls, {self.reads:,} of them with reads"
        if totals.right == totals.knowable:
            return "confirmed"
        missed = f"; {count_text(self.missed, 'hit')} read nothing" if self.missed else ""
        ranges = f"; the range holds in {totals.held:,} of {totals.ranges:,}" if totals.ranges else ""
        return f"right in {totals.right:,} of {totals.knowable:,}{missed}{ranges}"


def host_scores(fidelity: Fidelity) -> list[HostScore]:
    """A row for each host and way of caching that was recorded, then the hosts of which nothing was."""
    kinds = sorted({(one.host, one.way, one.is_identity) for one in fidelity.judgements})
    rows = [_host_score(*kind, fidelity.judgements) for kind in kinds]
    recorded = {host for host, _, _ in kinds}
    return [*rows, *(HostScore(host, "", score(host, [])) for host in hosts() if host not in recorded)]


def _host_score(host: str, way: str, is_identity: bool, judgements: Sequence[Judgement]) -> HostScore:
    own = [one for one in judgements if (one.host, one.way, one.is_identity) == (host, way, is_identity)]
    judged = [one for one in own if one.kind != "unknown"]
    return HostScore(
        host,
        way,
        score(host, own),
        max((_off(one) for one in judged), default=0),
        sum(one.billed.read > 0 for one in judged),
        sum(one.kind == "cold" and not one.exact for one in judged),
        is_identity,
        len({one.client for one in judged}),
        len({one.model_name for one in judged}),
    )


def _off(one: Judgement) -> int:
    if one.kind == "range":
        return 0 if one.holds else abs(one.billed.read - one.predicted.read)
    return 0 if one.exact else abs(one.billed.read - one.predicted.read)


def exactness_sentences(fidelity: Fidelity) -> list[str]:
    """Which hosts are predicted exactly, which in a range that holds, and which in neither way: a sentence each."""
    recorded = sorted({one.host for one in fidelity.main})
    totals = [score(host, [one for one in fidelity.main if one.host == host]) for host in recorded]
    exact = {one.name: _share(one.right, one.knowable) for one in totals if one.right >= EXACT_SHARE * one.knowable > 0}
    ranged = {one.name: _share(one.held, one.ranges) for one in totals if one.held >= HELD_SHARE * one.ranges > 0}
    neither = dict.fromkeys((host for host in recorded if host not in exact and host not in ranged), "")
    found = {
        f"At least {EXACT_SHARE:.0%} of the knowable hits and cold starts are exact": exact,
        f"Reads have a range, which holds in at least {HELD_SHARE:.0%} of the calls": ranged,
        "Recorded calls show neither": neither,
    }
    lists = {words: ", ".join(f"{host}{share}" for host, share in hosts.items()) for words, hosts in found.items()}
    return [f"{words}: {names}." for words, names in lists.items() if names]


def _share(right: int, of: int) -> str:
    return f" ({right:,} of {of:,}{', thin' if of < FEW_CALLS else ''})"


def has_other_hosts(fidelity: Fidelity) -> bool:
    """Whether more than Anthropic's own host was recorded."""
    return any(one.host != "anthropic" for one in fidelity.judgements)


def anthropic_judgements(fidelity: Fidelity) -> list[Judgement]:
    """Requests to Anthropic's own host, which the first figures of a page describe; all requests where it has none."""
    return [one for one in fidelity.main if one.host == "anthropic"] or fidelity.main


def basis_sentence(fidelity: Fidelity) -> str:
    """What the first figures rest on."""
    own = anthropic_judgements(fidelity)
    totals, trivial = score("own", own), first_cold_starts(own)
    unit = "step" if own and own[0].is_identity else "request"
    counted = f"Counted are {unit}s, not sessions: {count_text(len(own), unit)} ({basis_in_words(own)})"
    apart = f", of which {totals.unknown:,} read what no recorded call can have written" if totals.unknown else ""
    with_hits = count_text(len({one.source for one in own if one.kind == "hit"}), "recording")
    hits = f" The hits are in {with_hits}." if totals.hits else ""
    opens = f"{count_text(trivial, 'cold start')} {'opens' if trivial == 1 else 'open'} a recording"
    first = f" {opens}: there no hit can be predicted." if trivial else ""
    return f"{counted}{apart}.{hits}{first}"


def other_scores_sentence(fidelity: Fidelity) -> str:
    """The scores of transcripts and of the other hosts, a sentence each; "" where there are none."""
    return " ".join(filter(None, (_of_transcripts(fidelity), _of_other_hosts(fidelity))))


def _of_transcripts(fidelity: Fidelity) -> str:
    if not fidelity.transcripts or not fidelity.requests:
        return ""
    totals = score("transcripts", fidelity.transcripts)
    return (
        f"In transcripts ({basis_in_words(fidelity.transcripts)}), where only usages are known,"
        f" {totals.exact_hits:,} of {totals.hits:,} reads and {totals.exact_cold:,} of {totals.cold:,} cold starts"
        " follow from the step before."
    )


def _of_other_hosts(fidelity: Fidelity) -> str:
    others = [one for one in fidelity.main if one.host != "anthropic"]
    if not others or len(others) == len(fidelity.main):
        return ""
    totals = score("others", others)
    names = ", ".join(sorted({one.host for one in others}))
    ranges = f"; {totals.held:,} of {totals.ranges:,} ranges hold" if totals.ranges else ""
    hits = f"{totals.exact_hits:,} of {totals.hits:,} hits and {totals.exact_cold:,} of {totals.cold:,} cold starts"
    return f"On other hosts ({names}) {hits} are exactly right{ranges}."
