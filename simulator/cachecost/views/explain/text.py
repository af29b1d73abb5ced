"""What `cachecost explain` prints for people, its JSON (docs/reference/output-formats.md) and its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath
from textwrap import wrap
from typing import IO, Any

from cachecost.account.causes import causes
from cachecost.base.formatting import count_text, dollar_column, dollars, exact, margin_text, percent, short_session
from cachecost.base.times import seconds
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation, Finding
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import AS_RECORDED
from cachecost.views.bill.text import wrap_line
from cachecost.views.bill.words import clock
from cachecost.views.bound_units import see_also
from cachecost.views.html.frame import Section, render_page
from cachecost.views.streams import print_lines, report_console
from cachecost.views.tables.output import pick, pick_usd
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    DETAIL,
    PIPE_WIDTH,
    Column,
    Table,
    fit_table,
    hidden_note,
    render_table,
    word_column,
)
from cachecost.views.timeline.picture import TimelineView, timeline_key

CALLS_SHOWN = 6
MOST = Decimal("0.9")
"""Share of the avoidable dollars that the causes named in the first line make."""
FIX_INDENT = 7
"""Blanks before what follows the code of an example."""


def call_name(finding: Finding, explanation: Explanation) -> str:
    """ "session 1e0816ef call 14, 2026-02-09 07:10, file.jsonl:231"; "call 14" where the log has no sessions, with the
    file where there are several."""
    place = f"{PurePath(finding.file).name}:{finding.line}" if finding.file and finding.line else ""
    if finding.session:
        name = f"session {short_session(finding.session)} call {finding.session_call}"
        time = seconds(finding.timestamp) if finding.timestamp else None
        return ", ".join(filter(None, (name, clock(time)[:16], place)))
    has_several = len({one.file for one in explanation.findings}) > 1
    return ", ".join(filter(None, (f"call {finding.call}", place if has_several else "")))


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """The findings of one code, the most expensive first."""

    findings: list[Finding]

    @property
    def cost(self) -> Decimal:
        return sum((finding.cost for finding in self.findings), ZERO)

    @property
    def paid_again(self) -> Decimal:
        return sum((finding.paid_again for finding in self.findings), ZERO)

    @property
    def example(self) -> Finding:
        return self.findings[0]


def group_findings(explanation: Explanation) -> list[CauseGroup]:
    return _by_code((*explanation.findings, *explanation.not_explained))


def _by_code(findings: Iterable[Finding]) -> list[CauseGroup]:
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    groups = [
        CauseGroup(sorted(found, key=lambda one: (-one.cost, -one.paid_again, one.call))) for found in by_code.values()
    ]
    return sorted(groups, key=lambda group: (-group.cost, -group.paid_again, group.example.code))


def findings_table(explanation: Explanation) -> Table:
    """A row a cause, the most expensive first, with its most expensive example and the fix."""
    groups = group_findings(explanation)
    examples = [group.example for group in groups]
    columns = [
        word_column("cause", [f"{one.code} {causes()[one.cause].name}" for one in examples]),
        word_column("most expensive example", [f"call {one.call}: {one.message}" for one in examples], DETAIL),
        word_column("fix", [one.fix for one in examples], DETAIL),
        word_column("paid again", [str(one.layer) for one in examples], COMPARISON),
        word_column("calls", [call_numbers(group.findings) for group in groups], COUNT),
        Column("times", "times", [f"{len(group.findings):,}" for group in groups], rank=COMPARISON),
        Column("avoidable", "avoidable", dollar_column([group.cost for group in groups])),
    ]
    return Table(columns, f"What “{explanation.strategy}” pays more than it must")


def call_numbers(findings: Sequence[Finding]) -> str:
    numbers = sorted({finding.call for finding in findings})
    more = " …" if len(numbers) > CALLS_SHOWN else ""
    return ", ".join(f"{number:,}" for number in numbers[:CALLS_SHOWN]) + more


def explanation_object(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON. The findings' dollars add up to `avoidable_usd`; where the calls have bills, necessary +
    avoidable + not explained = billed, exactly."""
    bill: dict[str, Any] = {}
    if explanation.billed is not None and explanation.necessary is not None:
        bill = {
            **pick_usd(explanation, "billed", "necessary"),
            "not_explained_usd": exact(explanation.not_explained_usd),
            "not_explained": [_finding(finding) for finding in explanation.not_explained],
        }
    return {
        "format": 1,
        **pick(explanation, "strategy", "calls"),
        **pick_usd(explanation, "cost", "avoidable", "without"),
        "findings": [_finding(finding) for finding in explanation.findings],
        "notes": [_finding(note) for note in explanation.notes],
        **({} if explanation.lower_bound is None else {"lower_bound_usd": exact(explanation.lower_bound)}),
        **bill,
        "tokens": {"source": explanation.token_source, "error_margin": explanation.error_margin},
        "warm_start": {"calls": explanation.warm.calls, "tokens": explanation.warm.tokens},
        "other_assumptions": list(explanation.flips),
        "ranges": list(explanation.ranges),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **pick(finding, "code", "cause", "call"),
        "since_call": finding.since,
        "layer": str(finding.layer),
        **pick(finding, "block", "tokens"),
        **pick_usd(finding, "cost", "paid_again"),
        **pick(finding, "message", "excerpt"),
        "behind": finding.is_behind,
        **pick(
            finding, "fix", "alternative", "diagnostics", "session", "session_call", "project", "agent", "timestamp"
        ),
        **pick(finding, "file", "line"),
    }


def print_explanation(explanation: Explanation, stream: IO[str], arguments: str = "") -> None:
    console = report_console(stream, PIPE_WIDTH)
    groups = group_findings(explanation)
    print_lines(console, headline(explanation, groups))
    if groups:
        table = fit_table(findings_table(explanation), console.width)
        console.print()
        console.print(render_table(table))
        console.print()
        for group in groups:
            call = call_name(group.example, explanation)
            first = group.example
            shown = f": “{first.excerpt}”" if first.excerpt else ""
            example = f"{call}: {first.message}{shown} ({dollars(first.cost)})"
            for line in wrap_line(f"{first.code}  {example}", console.width, hanging=" " * FIX_INDENT):
                console.print(line, markup=False, soft_wrap=True)
            for number, line in enumerate(wrap(first.fix, max(40, console.width - 9))):
                console.print(f"{' ' * FIX_INDENT}{' ' if number else '→'} {line}", markup=False)
        print_lines(console, filter(None, [hidden_note([table], "--csv F")]))
    print_lines(console, closing(explanation))
    if arguments:
        known = {}
        if explanation.lower_bound is not None:
            fixed = "with these fixes " if explanation.bounds_fixed_requests else ""
            known["optimize"] = f"cheapest plan; {fixed}no plan is below {dollars(explanation.lower_bound)}"
        is_scenario = bool(explanation.strategy) and explanation.strategy != AS_RECORDED
        print_lines(console, [see_also("explain", arguments, known, is_scenario)])


def headline(explanation: Explanation, groups: Sequence[CauseGroup]) -> Iterator[str]:
    name = f"{explanation.strategy}   " if explanation.strategy else ""
    if (billed := explanation.billed) is not None:
        amounts = ((explanation.avoidable, "avoidable"), (explanation.not_explained_usd, "not explained"))
        parts = [f"{dollars(usd)} {word} ({percent(usd / billed)})" for usd, word in amounts if usd]
        found = count_text(len(groups), "cause") if groups else "no avoidable cost"
        yield " · ".join([f"{dollars(billed)} billed", *parts, found])
        return
    if not groups:
        yield f"{name}{dollars(explanation.cost)} · no avoidable cost with these prompts, breakpoints and times"
        return
    share = percent(explanation.avoidable / explanation.cost) if explanation.cost else percent(0)
    causes = count_text(len(groups), "cause")
    part = ZERO
    for count, group in enumerate(groups[:-1], 1):
        part += group.cost
        if part >= MOST * explanation.avoidable:
            causes = f"{count_text(count, 'cause', 'make')} {percent(part / explanation.avoidable)} of it"
            break
    yield f"{name}{dollars(explanation.cost)} · {dollars(explanation.avoidable)} avoidable ({share}) · {causes}"


def closing(explanation: Explanation) -> Iterator[str]:
    if explanation.findings:
        rest = explanation.calls - len({finding.call for finding in explanation.findings})
        yield ""
        yield (
            f"No avoidable cost in the other {count_text(rest, 'call') if rest > 1 else 'call'}."
            if rest
            else "Every call has an avoidable cost."
        )
    for group in _by_code(explanation.notes):  # what was paid again and no fix makes cheaper
        cause = causes()[group.example.cause]
        where = "call" if len(group.findings) == 1 else "calls"
        yield (
            f"note        {group.example.code}  {cause.name}: {where} {call_numbers(group.findings)}, "
            f"{dollars(group.paid_again)} paid again; {cause.not_avoidable}"
        )
    if explanation.warm.calls:
        yield explanation.warm.sentence
    for sentence in explanation.ranges:
        yield f"range       {sentence}"
    if explanation.token_source:
        margin = Decimal(str(explanation.error_margin)) if explanation.findings else ZERO
        error = margin_text(margin, explanation.avoidable * margin)
        yield f"tokens      {explanation.token_source} {error}".rstrip()
    for sentence in explanation.flips:
        yield f"assumption  {sentence}"


def explain_page(
    source: str, explanations: Sequence[Explanation], again: str, timelines: Sequence[Sequence[TimelineView]] = ()
) -> str:
    """The avoidable cost of each strategy, or of a log. `again` is the command that makes the page."""
    shown = [*timelines, *[()] * (len(explanations) - len(timelines))]
    sections = []
    for number, (explanation, views) in enumerate(zip(explanations, shown, strict=True), 1):
        groups = group_findings(explanation)
        sentences = [" ".join(line.split()) for line in headline(explanation, groups)]
        after = [" ".join(line.split()) for line in closing(explanation) if line]
        table = findings_table(explanation) if groups else None
        sections.append(Section(f"part-{number}", explanation.strategy or "simulated", sentences, table, after, views))
    if len(sections) == 1:
        answer = sections[0].sentences.pop(0)
    else:
        low, *_, high = sorted(explanations, key=lambda explanation: explanation.avoidable)
        answer = (
            f"Avoidable cost is lowest with “{low.strategy}” ({dollars(low.avoidable)}) "
            f"and highest with “{high.strategy}” ({dollars(high.avoidable)})."
        )
    return render_page(
        "analysis.html",
        title=source,
        question="Which cost was avoidable, and why?",
        answer=answer,
        sections=sections,
        key=timeline_key([view for views in timelines for view in views]),
        again=again,
        version=__version__,
    )
