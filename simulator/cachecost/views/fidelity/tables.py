"""The tables of a validation, each built once: scores by group and by host, assumptions, and calls that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cachecost.base.formatting import dollar_change, dollars, percent
from cachecost.ledger.results import Evidence, Fidelity
from cachecost.views.fidelity.hosts import WAYS, HostScore, host_scores
from cachecost.views.fidelity.parts import HostPart, coverages, host_parts
from cachecost.views.fidelity.scores import GROUPS, Score, scores
from cachecost.views.tables.fitting import shorten_middle
from cachecost.views.tables.table import COMPARISON, COUNT, DETAIL, Column, Table, build_table

SCORE_HEADERS = (
    *("calls", "hits exact", "cold exact", "unknown", "median error", "95th"),
    *("billed", "off by", "billed, unknown"),
)
RANKS = {"billed, unknown": DETAIL, "95th": COMPARISON, "unknown": COUNT}
HOST_HEADERS = ("caches", "what recordings say", "calls", "hits exact", "cold exact", "in range", "unknown", "worst")
HOST_RANKS = {"worst": COUNT, "unknown": COUNT, "caches": COUNT, "what recordings say": COMPARISON}
PART_HEADERS = (
    *("part", "files", "clients", "calls", "hits exact", "cold exact", "cold, wrote", "in range", "unknown", "95th"),
    *("billed", "off by", "remark"),
)
COVERAGE_HEADERS = ("holds for", "stated", "fitted", "held out", "remark")
MOST_PLACES = 3
MOST_ROWS, LONGEST_NAME = 20, 40


def score_table(fidelity: Fidelity, group: str) -> Table:
    """The scores of each project, model or feature (`GROUPS`)."""
    rows = list(map(_score_cells, scores(fidelity, GROUPS[group])))
    table = build_table(f"Predicted against billed, by {group}", (group, *SCORE_HEADERS), rows)
    return _ranked(table, RANKS)


def _ranked(table: Table, ranks: Mapping[str, int]) -> Table:
    """The table with the ranks of columns that a narrow terminal may hide."""
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
    rows = [_host_cells(row) for row in host_scores(fidelity) if row.score.calls or not recorded_only]
    caption = "Predicted against billed, by host; worst is tokens off"
    return _ranked(build_table(caption, ("host", *HOST_HEADERS), rows, words=3), HOST_RANKS)


def part_table(fidelity: Fidelity) -> Table:
    """The scores host by host, on recordings that fits may use and on those that are held out."""
    rows = [_part_cells(row) for row in host_parts(fidelity)]
    caption = "Predicted against billed, by host, on fitted and on held-out recordings"
    return build_table(caption, ("host", *PART_HEADERS), rows, words=2)


def coverage_table(fidelity: Fidelity) -> Table:
    """How often each range and each error margin holds."""
    rows = [
        (each.what, each.stated, _share_of(*each.fitted), _share_of(*each.held_out), "thin" if each.is_thin else "")
        for each in coverages(fidelity)
    ]
    return build_table("How often ranges and error margins hold", COVERAGE_HEADERS, rows, words=2)


def assumption_table(fidelity: Fidelity) -> Table:
    """How many calls come out right under each value of an open assumption."""
    rows = [(one.switch, one.reading, f"{one.exact:,} of {one.knowable:,}") for one in fidelity.readings]
    caption = "Calls that are exact under each value of an assumption; the first one is the default"
    return build_table(caption, ("assumption", "value", "calls exact"), rows, words=2)


def difference_table(fidelity: Fidelity) -> Table:
    """The calls whose prediction differs from the bill; those that are unknown come last."""
    calls = sorted(fidelity.mismatches, key=lambda one: one.kind == "unknown")
    rows = [(one.kind, f"{one.source}:{one.line}", one.model, one.reason) for one in calls]
    return build_table(
        "Calls whose prediction differs from the bill", ("kind", "call", "model", "reason"), rows, words=4
    )


def evidence_table(evidence: Iterable[Evidence]) -> Table:
    """The rules, and where each was seen in recorded bills."""
    rows = [(one.rule, one.words, one.standing, ", ".join(one.models), _places(one.contradicted)) for one in evidence]
    headers = ("rule", "what it says", "standing", "models", "contradicted by")
    return build_table("Each rule, and in how many recorded calls it was seen", headers, rows, words=5)


def _places(contradicted: Sequence[str]) -> str:
    more = len(contradicted) - MOST_PLACES
    return ", ".join([*contradicted[:MOST_PLACES], *[f"and {more:,} more"] * (more > 0)])


def _score_cells(row: Score) -> tuple[str, ...]:
    """Name, then `SCORE_HEADERS`. Dollars: of knowable calls, then of others."""
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


def _host_cells(row: HostScore) -> tuple[str, ...]:
    """Host, then `HOST_HEADERS`."""
    score = row.score
    if not score.calls:
        return (row.host, "", row.standing, "0", "", "", "", "", "")
    return (
        row.host,
        f"{WAYS[row.way]}{', in transcripts' if row.is_identity else ''}",
        row.standing,
        f"{score.calls:,}",
        _count_of(score.exact_hits, score.hits),
        _count_of(score.exact_cold, score.cold),
        score.ranges_in_words if score.ranges else "",
        f"{score.unknown:,}",
        f"{row.worst:,}",
    )


def _part_cells(row: HostPart) -> tuple[str, ...]:
    """Host, then `PART_HEADERS`."""
    score = row.score
    name = f"{row.host}, in transcripts" if row.is_identity else row.host
    return (
        name,
        row.part,
        f"{row.files:,}",
        f"{row.clients:,}",
        f"{score.calls:,}",
        _count_of(score.exact_hits, score.hits),
        _count_of(score.exact_cold, score.cold),
        f"{score.cold_written:,}" if score.cold else "",
        _count_of(score.held, score.ranges),
        f"{score.unknown:,}",
        percent(score.p95) if score.p95 else "0%",
        dollars(score.known.billed) if score.known.billed is not None else "",
        dollar_change(score.off_usd) if score.off_usd is not None else "",
        "thin" if row.is_thin else "",
    )


def _share_of(right: int, whole: int) -> str:
    """ "19 of 20 (95%)"; "" of none."""
    return f"{right:,} of {whole:,} ({percent(right / whole) if right else '0%'})" if whole else ""


def _count_of(right: int, whole: int) -> str:
    return f"{right:,} of {whole:,}" if whole else ""
