"""A validation as JSON, as tables and sentences that all views share, as Markdown, and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from cachecost.base.formatting import count_text, dollar_change, dollars, exact_or_none, percent, short_session
from cachecost.base.structs import replace
from cachecost.ledger.results import FEW_CALLS, Evidence, Fidelity, Judgement, is_thin
from cachecost.providers.hosts import hosts
from cachecost.views.fidelity.scores import (
    GROUPS,
    Score,
    basis_in_words,
    coverages,
    first_cold_starts,
    host_parts,
    scores,
)
from cachecost.views.streams import REPORT_WIDTH, report_console
from cachecost.views.tables.output import escape_markdown, markdown_table, pick
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    DETAIL,
    ZERO_CLASS,
    Column,
    Table,
    build_table,
    fit_table,
    hidden_note,
    render_table,
    shorten_middle,
)

WAYS = {
    "breakpoint": "at breakpoints",
    "grid": "automatic, fixed-size blocks",
    "units": "automatic, fixed units",
    "named": "explicit cache objects",
    "best_effort": "automatic, best effort",
    "none": "no cache",
}
"""How a host matches prefixes, by `matching` of its rules."""
EXACT_SHARE = 0.95
"""Of a host's knowable hits and cold starts: from here on its reads count as predicted exactly."""
HELD_SHARE = 0.9
"""Of a host's calls with a range: from here on the range counts as one that holds."""
SCORE_HEADERS = (
    *("calls", "hits exact", "cold exact", "unknown", "median error", "95th"),
    *("billed", "off by", "billed, unknown"),
)
RANKS = {"billed, unknown": DETAIL, "95th": COMPARISON, "unknown": COUNT}
HOST_HEADERS = (
    *("caches", "what recordings say", "calls", "hits exact", "cold exact"),
    *("in range (stated)", "range width", "unknown", "worst"),
)
HOST_RANKS = {"worst": ZERO_CLASS, "unknown": COUNT, "caches": COUNT, "what recordings say": COMPARISON}
PART_HEADERS = (
    *("part", "files", "clients", "calls", "hits exact", "cold exact", "cold, wrote", "in range", "range width"),
    *("unknown", "95th", "billed", "off by", "remark"),
)
MOST_PLACES = 3
MOST_ROWS, LONGEST_NAME = 20, 40
INTRODUCTION = """\
Each call below was recorded with its bill. Its prediction rests on the request alone and on the bills of *other*
calls, never on its own; each recording is a cache of its own. A hit is **exact** if the same prefix was read and the
tokens read are right within 2. A cold start is **exact** if nothing was read, as predicted; what was written is not
judged. The first call of a conversation that reads what only an unrecorded earlier call can have written, or kept
alive, is *unknown*: it is listed, it is in no figure of hits and cold starts, and its dollars stand apart from *off
by*, which is predicted minus *billed* of the other calls. A call that continues a recorded one, or reads what no step
of its host gives, counts as a hit that is not exact. The prompts that are far off (*95th*) hold what a request does
not show the tokens of: results of server tools, what compaction left, images and PDFs. What was seen fewer than five
times, or by one client, is *thin*. Of a transcript only usages are known: its steps are never summed with requests.
"""
HOSTS = """\
Hosts that cache by themselves keep every prefix: a read is *unknown* only if it is longer than what earlier calls of
the recording sent and the call continues none of them, and a hit is exact if it is the very number. They promise no
hit: a call that another of their machines answers reads nothing, and counts against the prediction. Hosts that do not
say how they match get a range from nothing to the ideal, which never counts as exact. *In range* has in brackets in
how many calls the range is to hold; *range width* is the median one as a share of the prompt. A range that is as wide
as the prompt (90% of it or more: *all*) predicts nothing and counts nowhere. *Worst* is how many tokens a judged call
is off."""

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
MOST_MISMATCHES = 20


@dataclass(frozen=True, slots=True)
class HostScore:
    """`worst` is the farthest that a judged read is off, in tokens; of a range, how far it is outside. `missed` are the
    judged calls that were to read something and read nothing; `clients` and `models` are those of the judged calls."""

    host: str
    matching: str
    score: Score
    worst: int = 0
    missed: int = 0
    is_identity: bool = False
    clients: int = 0
    models: int = 0

    @property
    def standing(self) -> str:
        """What the recordings say of the host's rules, in words. Ends with "(thin)" where `is_thin` says so."""
        judged = self.score.calls - self.score.unknown
        thin = " (thin)" if is_thin(judged, self.clients) else ""
        basis = f"{count_text(self.models, 'model')}, {count_text(self.clients, 'client')}{thin}"
        totals = self.score
        if not judged:
            return "nothing knowable recorded: documented only" if totals.calls else "nothing recorded: documented only"
        if totals.hits and totals.right == totals.knowable:
            return f"confirmed; {basis}"
        kind = "" if totals.hits else " cold starts"  # which say little: where nothing was sent, nothing is read
        words = {
            f"right in {totals.right:,} of {totals.knowable:,}{kind}": totals.knowable,
            f"{count_text(self.missed, 'hit')} read nothing": self.missed,
            f"the range holds in {totals.held:,} of {totals.ranges:,}": totals.ranges,
            f"{count_text(totals.spanning, 'range')} as wide as the prompt": totals.spanning,
        }
        return "; ".join([*(text for text, calls in words.items() if calls), basis])


def host_scores(fidelity: Fidelity) -> list[HostScore]:
    """A row for each host and way of caching that was recorded, then the hosts of which nothing was."""
    kinds = sorted({(one.host, one.way, one.is_identity) for one in fidelity.judgements})
    rows = []
    for kind in kinds:
        host, matching, is_identity = kind
        own = [one for one in fidelity.judgements if (one.host, one.way, one.is_identity) == kind]
        judged = [one for one in own if one.kind != "unknown"]
        off = (
            0 if (one.holds if one.kind == "range" else one.exact) else abs(one.billed.read - one.predicted.read)
            for one in judged
        )
        rows.append(
            HostScore(
                host,
                matching,
                Score(host, own),
                max(off, default=0),
                sum(one.kind == "cold" and not one.exact for one in judged),
                is_identity,
                len({one.client for one in judged}),
                len({one.model_name for one in judged}),
            )
        )
    recorded = {host for host, _, _ in kinds}
    return [*rows, *(HostScore(host, "", Score(host, [])) for host in hosts() if host not in recorded)]


def exactness_sentences(fidelity: Fidelity) -> list[str]:
    """Which hosts are predicted exactly, which in a range that holds, and which in neither way: a sentence each."""
    recorded = sorted({one.host for one in fidelity.main})
    totals = [Score(host, [one for one in fidelity.main if one.host == host]) for host in recorded]
    # cold starts say little of a range
    sure = [one for one in totals if one.hits or not (one.ranges or one.spanning)]
    exact = {one.name: _share(one.right, one.knowable) for one in sure if one.right >= EXACT_SHARE * one.knowable > 0}
    ranged = {one.name: _share(one.held, one.ranges) for one in totals if one.held >= HELD_SHARE * one.ranges > 0}
    neither = dict.fromkeys((host for host in recorded if host not in exact and host not in ranged), "")
    found = {
        f"At least {percent(EXACT_SHARE)} of the knowable hits and cold starts are exact": exact,
        f"Reads have a range, which holds in at least {percent(HELD_SHARE)} of the calls": ranged,
        "Recorded calls show neither": neither,
    }
    lists = {words: ", ".join(f"{host}{share}" for host, share in hosts.items()) for words, hosts in found.items()}
    return [f"{words}: {names}." for words, names in lists.items() if names]


def _share(right: int, of: int) -> str:
    return f" ({right:,} of {of:,}{', thin' if of < FEW_CALLS else ''})"


def has_other_hosts(fidelity: Fidelity) -> bool:
    return any(one.host != "anthropic" for one in fidelity.judgements)


def anthropic_judgements(fidelity: Fidelity) -> list[Judgement]:
    """Requests to Anthropic's own host, which the first figures of a page describe; all requests where it has none."""
    return [one for one in fidelity.main if one.host == "anthropic"] or fidelity.main


def basis_sentence(fidelity: Fidelity) -> str:
    own = anthropic_judgements(fidelity)
    totals, trivial = Score("own", own), first_cold_starts(own)
    unit = "step" if own and own[0].is_identity else "request"
    counted = f"Counted are {unit}s, not sessions: {count_text(len(own), unit)} ({basis_in_words(own)})"
    apart = f", of which {totals.unknown:,} read what no recorded call can have written" if totals.unknown else ""
    with_hits = count_text(len({one.source for one in own if one.kind == "hit"}), "recording")
    hits = f" The hits are in {with_hits}." if totals.hits else ""
    opens = f" {count_text(trivial, 'cold start', 'open')} a recording: there no hit can be predicted."
    first = opens if trivial else ""
    return f"{counted}{apart}.{hits}{first}"


def other_scores_sentence(fidelity: Fidelity) -> str:
    """The scores of transcripts and of the other hosts, a sentence each; "" where there are none."""
    sentences = []
    if fidelity.transcripts and fidelity.requests:
        totals = Score("transcripts", fidelity.transcripts)
        basis = f"In transcripts ({basis_in_words(fidelity.transcripts)}), where only usages are known"
        sentences.append(f"{basis}, {_right_words(totals, 'reads')} follow from the step before.")
    others = [one for one in fidelity.main if one.host != "anthropic"]
    if others and len(others) < len(fidelity.main):
        totals = Score("others", others)
        names = ", ".join(sorted({one.host for one in others}))
        ranges = f"; {totals.held:,} of {totals.ranges:,} ranges hold" if totals.ranges else ""
        sentences.append(f"On other hosts ({names}) {_right_words(totals)} are exactly right{ranges}.")
    return " ".join(sentences)


def _right_words(totals: Score, hits: str = "hits") -> str:
    cold = f"{totals.exact_cold:,} of {totals.cold:,} cold starts"
    return f"{totals.exact_hits:,} of {totals.hits:,} {hits} and {cold}"


def score_table(fidelity: Fidelity, group: str) -> Table:
    rows = [
        (
            row.name,
            f"{row.calls:,}",
            f"{row.exact_hits:,} of {row.hits:,}",
            f"{row.exact_cold:,} of {row.cold:,}",
            f"{row.unknown:,}",
            percent(row.median),
            percent(row.p95),
            dollars(row.known.billed),
            dollar_change(row.off_usd),
            dollars(row.not_known.billed) if row.unknown else "",
        )
        for row in scores(fidelity, GROUPS[group])
    ]
    table = build_table(f"Predicted against billed, by {group}", (group, *SCORE_HEADERS), rows)
    return _ranked(table, RANKS)


def _ranked(table: Table, ranks: Mapping[str, int]) -> Table:
    return replace(table, columns=[replace(one, rank=ranks.get(one.key, one.rank)) for one in table.columns])


def short_score_table(fidelity: Fidelity, group: str) -> Table:
    """The same for the terminal: the largest groups, long names without their middle."""
    table = score_table(fidelity, group)
    names, *figures = table.columns
    more = len(names.cells) - MOST_ROWS
    cells = [shorten_middle(name, LONGEST_NAME) for name in names.cells[:MOST_ROWS]]
    columns: list[Column] = [replace(names, cells=[*cells, *[f"… and {more:,} more"] * (more > 0)])]
    columns += [replace(one, cells=[*one.cells[:MOST_ROWS], *[""] * (more > 0)]) for one in figures]
    return replace(table, columns=columns)


def host_table(fidelity: Fidelity, *, recorded_only: bool = False) -> Table:
    """The scores host by host; `recorded_only` leaves out the hosts of which nothing was recorded."""
    rows: list[tuple[str, ...]] = []
    for row in host_scores(fidelity):
        score = row.score
        if score.calls:
            cells = (
                _in_transcripts(WAYS[row.matching], row.is_identity),
                row.standing,
                f"{score.calls:,}",
                _count_of(score.exact_hits, score.hits),
                _count_of(score.exact_cold, score.cold),
                score.ranges_in_words,
                score.width_in_words,
                f"{score.unknown:,}",
                f"{row.worst:,}",
            )
            rows.append((row.host, *cells))
        elif not recorded_only:
            rows.append((row.host, "", row.standing, "0", *[""] * 6))
    caption = "Predicted against billed, by host; range width is a share of the prompt, worst is tokens off"
    return _ranked(build_table(caption, ("host", *HOST_HEADERS), rows, words=3), HOST_RANKS)


def part_table(fidelity: Fidelity) -> Table:
    """The scores host by host, on recordings that fits may use and on those that are held out."""
    rows = [
        (
            _in_transcripts(row.host, row.is_identity),
            row.part,
            f"{row.files:,}",
            f"{row.clients:,}",
            f"{row.score.calls:,}",
            _count_of(row.score.exact_hits, row.score.hits),
            _count_of(row.score.exact_cold, row.score.cold),
            f"{row.score.cold_written:,}" if row.score.cold else "",
            _count_of(row.score.held, row.score.ranges),
            row.score.width_in_words,
            f"{row.score.unknown:,}",
            percent(row.score.p95),
            dollars(row.score.known.billed) if row.score.known.billed is not None else "",
            dollar_change(row.score.off_usd) if row.score.off_usd is not None else "",
            "thin" if row.is_thin else "",
        )
        for row in host_parts(fidelity)
    ]
    caption = "Predicted against billed, by host, on fitted and on held-out recordings"
    return build_table(caption, ("host", *PART_HEADERS), rows, words=2)


def coverage_table(fidelity: Fidelity) -> Table:
    rows = []
    for one in coverages(fidelity):
        parts = (one.fitted, one.held_out)
        shares = [f"{held:,} of {calls:,} ({percent(held / calls)})" if calls else "" for held, calls in parts]
        rows.append((one.what, one.stated, *shares, one.width, "thin" if one.is_thin else ""))
    headers = ("holds for", "stated", "fitted", "held out", "range width", "remark")
    return build_table("How often ranges and error margins hold", headers, rows, words=2)


def assumption_table(fidelity: Fidelity) -> Table:
    rows = [(one.switch, one.reading, f"{one.exact:,} of {one.knowable:,}") for one in fidelity.readings]
    caption = "Calls that are exact under each value of an assumption; the first one is the default"
    return build_table(caption, ("assumption", "value", "calls exact"), rows, words=2)


def difference_table(fidelity: Fidelity) -> Table:
    """The calls whose prediction differs from the bill; those that are unknown come last."""
    calls = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    rows = [(one.kind, f"{one.source}:{one.line}", one.model, one.reason) for one in calls]
    headers = ("kind", "call", "model", "reason")
    return build_table("Calls whose prediction differs from the bill", headers, rows, words=4)


def evidence_table(evidence: Iterable[Evidence]) -> Table:
    rows = []
    for one in evidence:
        more = len(one.contradicted) - MOST_PLACES
        places = ", ".join([*one.contradicted[:MOST_PLACES], *[f"and {more:,} more"] * (more > 0)])
        rows.append((one.rule, one.words, one.standing, ", ".join(one.models), places))
    headers = ("rule", "what it says", "standing", "models", "contradicted by")
    return build_table("Each rule, and in how many recorded calls it was seen", headers, rows, words=5)


def _in_transcripts(name: str, is_identity: bool) -> str:
    return f"{name}, in transcripts" if is_identity else name


def _count_of(right: int, whole: int) -> str:
    return f"{right:,} of {whole:,}" if whole else ""


def fidelity_object(fidelity: Fidelity) -> dict[str, Any]:
    """The object of `validate --json` (docs/reference/output-formats.md), with the breakdowns."""
    return {
        "format": 1,
        **_score(Score("all", fidelity.main)),
        "judged": "requests" if fidelity.requests else "transcripts",
        "transcripts": _score(Score("transcripts", fidelity.transcripts)) if fidelity.transcripts else None,
        "mismatches": [_mismatch(one) for one in fidelity.mismatches],
        "token_source": fidelity.token_source,
        "hosts": [
            {
                "host": row.host,
                "matching": row.matching or None,
                **_counts(row.score),
                "worst_tokens": row.worst,
                "standing": row.standing,
            }
            for row in (host_scores(fidelity) if has_other_hosts(fidelity) else ())
        ],
        "parts": [
            {
                "host": row.host,
                "part": row.part.replace(" ", "_"),
                "transcripts": row.is_identity,
                **pick(row, "files", "clients"),
                "thin": row.is_thin,
                **_score(row.score),
            }
            for row in (host_parts(fidelity) if fidelity.is_evidence else ())
        ],
        "coverage": [
            {
                **pick(row, "what", "stated"),
                "fitted": {"holds": row.fitted[0], "calls": row.fitted[1]},
                "held_out": {"holds": row.held_out[0], "calls": row.held_out[1]},
                "width": row.width or None,
                "thin": row.is_thin,
            }
            for row in (coverages(fidelity) if fidelity.is_evidence else ())
        ],
        "by": {
            name: [{"name": each.name, **_score(each)} for each in scores(fidelity, key)]
            for name, key in GROUPS.items()
        },
        "assumptions": [
            {"assumption": each.switch, "value": each.reading, "exact": each.exact, "knowable": each.knowable}
            for each in fidelity.readings
        ],
        "not_judged": [{"where": where, "why": why} for where, why in fidelity.not_judged],
    }


def judgement_row(one: Judgement) -> dict[str, Any]:
    """A recorded call as a row: what was predicted without its own bill, what was billed, and whether that is exact."""
    dollars = {"predicted_usd": exact_or_none(one.predicted_usd), "billed_usd": exact_or_none(one.billed_usd)}
    least, most = one.bounds or (None, None)
    found = {"width": one.range_width, "spans_prompt": one.spans_prompt}
    bounds = {"least": least, "most": most, "coverage": one.coverage, "holds": one.holds, **found}
    return {**_mismatch(one), "exact": one.exact, "range": bounds if one.bounds else None, **dollars}


def _mismatch(one: Judgement) -> dict[str, Any]:
    return {
        **pick(one, "source", "call", "line", "model", "kind"),
        "predicted": one.predicted.wire(),
        "billed": one.billed.wire(),
        "reason": one.reason,
        "cause": one.cause or None,
        "session": one.session,
        "project": one.folder,
        **pick(one, "agent", "timestamp"),
    }


def _counts(totals: Score) -> dict[str, Any]:
    """Of ranges, `stated` is the share of the calls in which they are to hold, `observed` that in which they do,
    `width` the median one as a share of the prompt; `span_prompt` counts those as wide, which are in no other count."""
    shares = {"stated": totals.coverage, "observed": totals.held / totals.ranges} if totals.ranges else {}
    if totals.ranges or totals.spanning:
        shares |= {"width": totals.width, "span_prompt": totals.spanning}
    return {
        "calls": totals.calls,
        "hits": {"knowable": totals.hits, "exact": totals.exact_hits},
        "cold": {"knowable": totals.cold, "exact": totals.exact_cold},
        "ranges": {"judged": totals.ranges, "hold": totals.held, **shares},
        "unknown_earlier_writes": totals.unknown,
    }


def _score(each: Score) -> dict[str, Any]:
    return {
        **_counts(each),
        "token_error": {"median": each.median, "p95": each.p95},
        "billed_usd": exact_or_none(each.billed_usd),
        "predicted_usd": exact_or_none(each.predicted_usd),
        "knowable_usd": {"billed": exact_or_none(each.known.billed), "predicted": exact_or_none(each.known.predicted)},
        "off_by_usd": exact_or_none(each.off_usd),
        "unknown_usd": {
            "billed": exact_or_none(each.not_known.billed),
            "predicted": exact_or_none(each.not_known.predicted),
        },
        "visibility_lag": each.late,
        "warm_starts": each.warm,
        "cold_billed_a_write": each.cold_written,
    }


def evidence_markdown(
    fidelity: Fidelity, evidence: Sequence[Evidence], claims: Sequence[Evidence], picture: str, again: str
) -> str:
    """The page in Markdown; `picture` is the residual chart's file, `again` the command that makes the page."""
    whole = Score("all", anthropic_judgements(fidelity))
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
    differences = difference_table(fidelity)
    parts += [
        "## Every call that differs, or cannot be known",
        markdown_table(differences) if differences.rows else "None.",
        "## How it was made",
        f"Token counts: {fidelity.token_source}.",
        f"```sh\n{again}\n```",
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def headline(whole: Score) -> str:
    """The score in one sentence. Of cold starts that were billed no write, most sent nothing to be cached."""
    wrote = f" ({whole.cold_written:,} with a billed write)" if whole.cold_written < whole.cold else ""
    off, most = map(percent, (whole.median, whole.p95))
    right = f"{_right_words(whole)}{wrote} are exactly right"
    return f"{right}; prompts are {off} off at the median, {most} at the 95th percentile."


def print_fidelity(fidelity: Fidelity, stream: IO[str]) -> None:
    console = report_console(stream, REPORT_WIDTH)
    # requests and transcripts apart: of a transcript only usages are known, and no sum may mix the two
    calls = f"{count_text(len(fidelity.requests), 'recorded call')} judged, none with its own bill in its sizes"
    steps = f"{count_text(len(fidelity.transcripts), 'step')} of transcripts judged by their usages alone"
    parts = [(calls, fidelity.requests), (steps, fidelity.transcripts)]
    for words, judgements in parts if fidelity.judgements else parts[:1]:
        if judgements or not fidelity.judgements:
            console.print(f"{words}\n", markup=False)
            for line in score_lines(Score("all", judgements)):
                console.print(f"  {line}", markup=False)
            console.print()
    shown = [short_score_table(fidelity, group) for group in GROUPS]
    shown += [host_table(fidelity, recorded_only=True)] if has_other_hosts(fidelity) else []
    shown += [assumption_table(fidelity)] if fidelity.readings else []
    tables = [fit_table(table, console.width) for table in shown]
    for table in tables:
        console.print()
        console.print(render_table(table))
    wrong = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    if wrong:
        console.print()
    for one in wrong[:MOST_MISMATCHES]:
        place = f"{one.source}:{one.line}" + (f" session {short_session(one.session)}" if one.session else "")
        console.print(f"  {one.kind:8} {place} {one.model}: {one.reason}", markup=False, soft_wrap=True)
    if len(wrong) > MOST_MISMATCHES:
        console.print(f"  … and {len(wrong) - MOST_MISMATCHES:,} more (--json has all)", markup=False)
    for line in _not_judged_lines(fidelity.not_judged):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    console.print(f"  tokens   {fidelity.token_source}", markup=False)
    if note := hidden_note(tables, "--html F"):
        console.print(f"  {note}", markup=False, soft_wrap=True)


def _not_judged_lines(not_judged: Sequence[tuple[str, str]]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for where, why in not_judged:
        places.setdefault(why, []).append(where)
    for why, found in [*places.items()][:MOST_MISMATCHES]:
        more = f" and {len(found) - 1:,} more:" if len(found) > 1 else ""
        yield f"not judged: {found[0]}{more} {why}"
    if len(places) > MOST_MISMATCHES:
        yield f"… and {len(places) - MOST_MISMATCHES:,} more reasons (--json has all)"


def score_lines(whole: Score) -> list[str]:
    stated = f"stated for {'all' if whole.coverage == 1 else percent(whole.coverage)}"
    held = f"{whole.held:,} of {whole.ranges:,} ({stated}) hold" if whole.ranges else ""
    width = f"{percent(whole.width)} of the prompt wide at the median"
    more = "are as wide as the prompt and predict nothing"
    wrote = f"{whole.cold_written:,} billed a write"
    ranges = "; ".join(filter(None, (held, width, f"{whole.spanning:,} {more}" if whole.spanning else "")))
    misses = "1 miss is" if whole.late == 1 else f"{whole.late:,} misses are"
    late = f"; {misses} probably visibility lag" if whole.late else ""
    warm = f"; {count_text(whole.warm, 'warm start')}" if whole.warm else ""
    known, not_known = whole.known, whole.not_known
    apart = f"; {dollars(not_known.billed)} more billed for the unknown" if whole.unknown else ""
    return [
        f"hits       {whole.exact_hits:,} of {whole.hits:,} exact",
        f"cold       {whole.exact_cold:,} of {whole.cold:,} exact (reads only; {wrote}){late}",
        f"unknown    {whole.unknown:,} read what the recording cannot have written or kept alive{warm}",
        f"tokens     {percent(whole.median)} off at the median, {percent(whole.p95)} at the 95th percentile",
        f"dollars    {dollars(known.predicted)} predicted, {dollars(known.billed)} billed (input side){apart}",
        *([f"ranges     {ranges}"] if whole.width_in_words else []),
    ]
