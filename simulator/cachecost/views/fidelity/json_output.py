"""A validation as JSON: the object of `validate --json`, and a row a call."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cachecost.base.formatting import exact
from cachecost.ledger.results import Fidelity, Judgement
from cachecost.views.fidelity.hosts import HostScore, has_other_hosts, host_scores
from cachecost.views.fidelity.parts import Coverage, HostPart, coverages, host_parts
from cachecost.views.fidelity.scores import GROUPS, Score, score, scores


def fidelity_object(fidelity: Fidelity) -> dict[str, Any]:
    """The object of `validate --json` (docs/reference/output-formats.md), with the breakdowns."""
    return {
        "format": 1,
        **_score(score("all", fidelity.main)),
        "judged": "requests" if fidelity.requests else "transcripts",
        "transcripts": _score(score("transcripts", fidelity.transcripts)) if fidelity.transcripts else None,
        "mismatches": [_mismatch(one) for one in fidelity.mismatches],
        "token_source": fidelity.token_source,
        "hosts": [_host(each) for each in host_scores(fidelity)] if has_other_hosts(fidelity) else [],
        "parts": [_part(each) for each in host_parts(fidelity)] if fidelity.is_evidence else [],
        "coverage": [_coverage(each) for each in coverages(fidelity)] if fidelity.is_evidence else [],
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
    dollars = {"predicted_usd": _dollars(one.predicted_usd), "billed_usd": _dollars(one.billed_usd)}
    least, most = one.bounds or (None, None)
    bounds = {"least": least, "most": most, "coverage": one.coverage, "holds": one.holds} if one.bounds else None
    return {**_mismatch(one), "exact": one.exact, "range": bounds, **dollars}


def _mismatch(one: Judgement) -> dict[str, Any]:
    return {
        "source": one.source,
        "call": one.call,
        "line": one.line,
        "model": one.model,
        "kind": one.kind,
        "predicted": one.predicted.wire(),
        "billed": one.billed.wire(),
        "reason": one.reason,
        "cause": one.cause or None,
        "session": one.session,
        "project": one.folder,
        "agent": one.agent,
        "timestamp": one.timestamp,
    }


def _score(each: Score) -> dict[str, Any]:
    return {
        "calls": each.calls,
        "hits": {"knowable": each.hits, "exact": each.exact_hits},
        "cold": {"knowable": each.cold, "exact": each.exact_cold},
        "ranges": _ranges(each),
        "unknown_earlier_writes": each.unknown,
        "token_error": {"median": each.median, "p95": each.p95},
        "billed_usd": _dollars(each.billed_usd),
        "predicted_usd": _dollars(each.predicted_usd),
        "knowable_usd": {"billed": _dollars(each.known.billed), "predicted": _dollars(each.known.predicted)},
        "off_by_usd": _dollars(each.off_usd),
        "unknown_usd": {"billed": _dollars(each.not_known.billed), "predicted": _dollars(each.not_known.predicted)},
        "visibility_lag": each.late,
        "warm_starts": each.warm,
        "cold_billed_a_write": each.cold_written,
    }


def _ranges(totals: Score) -> dict[str, Any]:
    """`stated` is the share of the calls in which their ranges are to hold, `observed` that in which they do."""
    shares = {"stated": totals.coverage, "observed": totals.held / totals.ranges} if totals.ranges else {}
    return {"judged": totals.ranges, "hold": totals.held, **shares}


def _dollars(amount: Decimal | None) -> str | None:
    return None if amount is None else exact(amount)


def _host(row: HostScore) -> dict[str, Any]:
    totals = row.score
    return {
        "host": row.host,
        "matching": row.way or None,
        "calls": totals.calls,
        "hits": {"knowable": totals.hits, "exact": totals.exact_hits},
        "cold": {"knowable": totals.cold, "exact": totals.exact_cold},
        "ranges": _ranges(totals),
        "unknown_earlier_writes": totals.unknown,
        "worst_tokens": row.worst,
        "standing": row.standing,
    }


def _part(row: HostPart) -> dict[str, Any]:
    whole = {
        "host": row.host,
        "part": row.part.replace(" ", "_"),
        "transcripts": row.is_identity,
        "files": row.files,
        "clients": row.clients,
        "thin": row.is_thin,
    }
    return {**whole, **_score(row.score), "ranges": {"judged": row.score.ranges, "hold": row.score.held}}


def _coverage(each: Coverage) -> dict[str, Any]:
    parts = {"fitted": each.fitted, "held_out": each.held_out}
    counts = {part: {"holds": holds, "calls": calls} for part, (holds, calls) in parts.items()}
    return {"what": each.what, "stated": each.stated, **counts, "thin": each.is_thin}
