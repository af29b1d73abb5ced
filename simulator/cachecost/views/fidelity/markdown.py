"""The evidence page: how right the predictions are, by model and rule, and where each rule was seen in bills."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.formatting import percent
from cachecost.ledger.results import Evidence, Fidelity
from cachecost.views.fidelity.hosts import (
    anthropic_judgements,
    basis_sentence,
    exactness_sentences,
    has_other_hosts,
    other_scores_sentence,
)
from cachecost.views.fidelity.scores import GROUPS, Score, score
from cachecost.views.fidelity.tables import (
    assumption_table,
    coverage_table,
    difference_table,
    evidence_table,
    host_table,
    part_table,
    score_table,
)
from cachecost.views.tables.markdown import escape_markdown, markdown_table
from cachecost.views.tables.table import Table

INTRODUCTION = """\
Each call below was recorded with its bill. Its prediction rests on the request alone and on the bills of *other*
calls, never on its own; each recording is a cache of its own. A hit is **exact** if the same prefix was read and the
tokens read are right within 2. A cold start is **exact** if nothing was read, as predicted; what was written is not
judged. A call that reads what only an unrecorded earlier call can have written, or kept alive, is *unknown*: it is
listed, it is in no figure of hits and cold starts, and its dollars stand apart from *off by*, which is predicted minus
*billed* of the other calls. The prompts that are far off (*95th*) hold what a request does not show the tokens of:
results of server tools, what compaction left, images and PDFs. What was seen fewer than five times, or by one client,
is *thin*. Of a transcript only usages are known: its steps are never summed with requests.
"""


HOSTS = """\
Hosts that cache by themselves keep every prefix: a read is *unknown* only if it is longer than what earlier calls of
the recording sent, and a hit is exact if it is the very number. They promise no hit: a call that another of their
machines answers reads nothing, and counts against the prediction. Hosts that do not say how they match get a range
from nothing to the ideal, which never counts as exact. *Worst* is how many tokens a judged call is off."""

PARTS = """\
A third of the recorded files of each source, chosen by a hash of their names, is *held out*: no fit of tokens,
constants or ranges uses it. *Cold, wrote*: cold starts that were billed a write; the others sent nothing to be
cached, or too little. *95th*: the error of the tokens of a prompt that 95 of 100 calls do not exceed. *Off by* is
predicted minus *billed*, dollars of the input side; both leave out calls that are unknown. *Thin*: fewer than five
judged calls, or one client."""

COVERAGE = """\
A range is right if it holds, and useful if it is narrow. An error margin is that of a count for which no bill gives a
length: all prompts are counted anew for this table, without any bill. Prompts with what no request shows (results of
server tools, what an explicit cache object holds) are left out."""

ASSUMPTIONS = """\
The first value of each assumption is the default. Equal numbers mean that no call here tells the values apart."""


def evidence_markdown(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], picture: str, again: str
) -> str:
    """The page in Markdown; `picture` is the residual chart's file, `again` the command that makes the page."""
    whole = score("all", anthropic_judgements(fidelity))
    more = " ".join(filter(None, (basis_sentence(fidelity), other_scores_sentence(fidelity))))
    parts = [
        "# Predicted against billed",
        f"**{headline(whole)}** {more}",
        INTRODUCTION,
        f"![{escape_markdown(headline(whole))}]({picture})",
        "## Where each rule was seen in recorded bills",
        markdown_table(evidence_table(evidence)),
    ]
    if has_other_hosts(fidelity):
        parts += ["## Host by host: what recordings confirm, and what not", *exactness_sentences(fidelity)]
        parts += [HOSTS, markdown_table(host_table(fidelity))]
    if fidelity.is_evidence:
        parts += ["## Fitted and held out, by provider", PARTS, markdown_table(part_table(fidelity))]
        parts += ["## How often ranges and error margins hold", COVERAGE, markdown_table(coverage_table(fidelity))]
    if claims:
        parts += ["## What is documented of other hosts", markdown_table(evidence_table(claims))]
    for name in GROUPS:
        parts += [f"## By {name}", markdown_table(score_table(fidelity, name))]
    if fidelity.readings:
        parts += ["## Which assumption the bills support", ASSUMPTIONS, markdown_table(assumption_table(fidelity))]
    parts += [
        "## Every call that differs, or cannot be known",
        _table_or_none(difference_table(fidelity)),
        "## How it was made",
        f"Token counts: {fidelity.token_source}.",
        f"```sh\n{again}\n```",
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _table_or_none(table: Table) -> str:
    return markdown_table(table) if table.rows else "None."


def headline(whole: Score) -> str:
    """The score in one sentence. Of cold starts that were billed no write, most sent nothing to be cached."""
    hits = f"{whole.exact_hits:,} of {whole.hits:,} hits"
    wrote = f" ({whole.cold_written:,} with a billed write)" if whole.cold_written < whole.cold else ""
    cold = f"{whole.exact_cold:,} of {whole.cold:,} cold starts{wrote}"
    off, most = (percent(share) if share else "0%" for share in (whole.median, whole.p95))
    return f"{hits} and {cold} are exactly right; prompts are {off} off at the median, {most} at the 95th percentile."
