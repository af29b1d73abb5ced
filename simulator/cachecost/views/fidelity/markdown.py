"""The evidence page: how right the predictions are, by model and rule, and where each rule was seen in bills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachecost.base.formatting import dollar_change, dollars, percent
from cachecost.ledger.results import Evidence, Fidelity
from cachecost.views.fidelity.hosts import (
    HEADERS,
    host_cells,
    host_scores,
    of_anthropic,
    others_sentence,
    says_hosts,
)
from cachecost.views.fidelity.scores import GROUPS, Score, score, scores
from cachecost.views.tables.markdown import escaped, table

MOST_PLACES = 3
SCORE_HEADERS = (
    *("calls", "hits exact", "cold exact", "unknown", "median error", "95th"),
    *("billed", "off by", "billed, unknown"),
)
INTRODUCTION = """\
Each call below was recorded with its bill. Its prediction rests on the request alone and on the bills of *other*
calls, never on its own; each recording is a cache of its own. A hit is **exact** if the same prefix was read and the
tokens read are right within 2. A cold start is **exact** if nothing was read, as predicted; what was written is not
judged. A call that reads what only an unrecorded earlier call can have written, or kept alive, is *unknown*: it is
listed, and its dollars stand apart. Of a transcript only usages are known: its steps are never summed with requests.
"""


HOSTS = """\
Hosts that cache by themselves keep every prefix: a read is *unknown* only if it is longer than what earlier calls of
the recording sent, and a hit is exact if it is the very number. They promise no hit: a call that another of their
machines answers reads nothing, and counts against the prediction. Hosts that do not say how they match get a range
from nothing to the ideal, which never counts as exact. *Worst* is how many tokens a judged call is off."""


def evidence_markdown(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], picture: str, again: str
) -> str:
    """The page in Markdown; `picture` is the residual chart's file, `again` the command that makes the page."""
    whole = score("all", of_anthropic(fidelity))
    others = others_sentence(fidelity)
    parts = [
        "# Predicted against billed",
        f"**{headline(whole)}**{f' {others}' if others else ''}",
        INTRODUCTION,
        f"![{escaped(headline(whole))}]({picture})",
        "## Where each rule was seen in recorded bills",
        _rules(evidence),
        *(["## Host by host: what recordings confirm, and what not", _hosts(fidelity)] if says_hosts(fidelity) else []),
        *(["## What the rules of other hosts claim", _rules(claims)] if claims else []),
        *(part for name in GROUPS for part in (f"## By {name}", _scores(name, scores(fidelity, GROUPS[name])))),
        *(["## Which reading of an open rule the bills support", _readings(fidelity)] if fidelity.readings else []),
        "## Every call that differs",
        _mismatches(fidelity),
        "## How it was made",
        f"Token counts: {fidelity.token_source}.",
        f"```sh\n{again}\n```",
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def headline(whole: Score) -> str:
    """The score in one sentence."""
    hits = f"{whole.exact_hits:,} of {whole.hits:,} hits"
    cold = f"{whole.exact_cold:,} of {whole.cold:,} cold starts"
    off = percent(whole.median) if whole.median else "0%"
    return f"{hits} and {cold} are exactly right; prompts are {off} off at the median."


def _rules(evidence: Iterable[Evidence]) -> str:
    rows = [
        (each.rule, escaped(each.words), each.standing, escaped(", ".join(each.models)), _places(each))
        for each in evidence
    ]
    return table(("rule", "what it says", "standing", "models", "contradicted by"), rows, names=5)


def _hosts(fidelity: Fidelity) -> str:
    rows = [(escaped(cells[0]), *cells[1:]) for cells in map(host_cells, host_scores(fidelity))]
    return f"{HOSTS}\n\n{table(('host', *HEADERS), rows, names=3)}"


def _places(each: Evidence) -> str:
    more = len(each.contradicted) - MOST_PLACES
    shown = [escaped(place) for place in each.contradicted[:MOST_PLACES]]
    return "<br>".join([*shown, f"and {more:,} more"] if more > 0 else shown)


def _scores(name: str, rows: Iterable[Score]) -> str:
    return table((name, *SCORE_HEADERS), [(escaped(cells[0]), *cells[1:]) for cells in map(score_cells, rows)])


def score_cells(row: Score) -> tuple[str, ...]:
    """A score as the cells of a table: name, then `SCORE_HEADERS`. Dollars: of knowable calls, then of others."""
    return (
        row.name,
        f"{row.calls:,}",
        f"{row.exact_hits:,} of {row.hits:,}",
        f"{row.exact_cold:,} of {row.cold:,}",
        f"{row.unknown:,}",
        percent(row.median) if row.median else "0%",
        percent(row.p95) if row.p95 else "0%",
        dollars(row.known.billed),
        dollar_change(row.off_usd),
        dollars(row.not_known.billed) if row.unknown else "",
    )


def _readings(fidelity: Fidelity) -> str:
    rows = [
        (f"`{each.switch}`", f"`{each.reading}`", f"{each.exact:,} of {each.knowable:,}") for each in fidelity.readings
    ]
    note = "The first reading of each switch is the default; equal numbers mean that no call here tells them apart."
    return f"{note}\n\n{table(('switch', 'reading', 'calls exact'), rows, names=2)}"


def _mismatches(fidelity: Fidelity) -> str:
    wrong = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    rows = [(one.kind, escaped(f"{one.source}:{one.line}"), escaped(one.model), escaped(one.reason)) for one in wrong]
    return table(("kind", "call", "model", "reason"), rows, names=4) if rows else "None."
