"""What `cachecost optimize` prints for people, its JSON and its page: what to do, and the cost of every strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from io import StringIO
from textwrap import shorten, wrap
from typing import IO, Any

from rich.padding import Padding
from rich.text import Text

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.analysis.optimum.plan_evaluator import PlanStep, build_call
from cachecost.analysis.optimum.tree import BlockTree
from cachecost.base.formatting import (
    change,
    change_text,
    count_text,
    dollar_column,
    dollars,
    duration,
    exact,
    margin_text,
    percent,
    percent_column,
    tokens,
)
from cachecost.base.version import __version__
from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import Breakpoint, Request, place_as_sent, wire_path
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.views.bound_units import see_also
from cachecost.views.html.frame import Section, render_page
from cachecost.views.streams import (
    REPORT_WIDTH,
    inert_console,
    report_console,
    stream_look,
    styled_stream,
    without_end_blanks,
)
from cachecost.views.tables.table import INDENT, Column, Table, facts_grid, fit_table, hidden_note, render_table

MOST_ROWS = 8
KNOWN = {"none", "automatic", "system-only", "progressive", "base", "claude-code"}
PLAN, LOWER_BOUND = "this plan", "lower bound for these prompts"
END = "the end of the last message"
EARLIER = "the end of what an earlier call sent"
NO_GAP = float("inf")
MOST_ALTERNATIVES = 3
PLAN_LINES = 3
"""Lines for the sentence that says where breakpoints go; --full has all of it."""


def cheapest_groups(optimum: Optimum) -> list[tuple[list[str], Decimal]]:
    """Strategies by their cost, the cheapest first; of those of the same cost the best known one comes first."""
    groups: dict[Decimal, list[str]] = {}
    for preset in sorted((preset for preset in optimum.presets if not preset.refused), key=lambda preset: preset.usd):
        groups.setdefault(preset.usd, []).append(preset.name)
    return [(sorted(names, key=lambda name: name.partition("@")[0] not in KNOWN), usd) for usd, names in groups.items()]


def plan_table(optimum: Optimum, is_short: bool = False) -> Table:
    """The plan, every strategy that could run, the cheapest first, then the lower bounds. Where it `is_short`,
    strategies of the same cost share a row, and only the cheapest and known ones are shown."""
    costs = [(preset.name, preset.usd) for preset in optimum.presets if not preset.refused]
    if is_short:
        costs = [
            ((names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more of the same cost"), usd)
            for number, (names, usd) in enumerate(cheapest_groups(optimum))
            if number < MOST_ROWS or set(names) & KNOWN
        ]
    recorded = [] if optimum.recorded_usd is None else [(optimum.first, optimum.recorded_usd)]
    rows = [(PLAN, optimum.usd), *sorted([*costs, *recorded], key=lambda row: row[1])]
    bounds = [(LOWER_BOUND, optimum.lower_bound_usd)]
    if optimum.with_pings and optimum.lower_bound.usd != optimum.lower_bound_usd:
        bounds.append((f"{LOWER_BOUND}, without keep-alives", optimum.lower_bound.usd))
    blank = [""] * len(bounds)
    above = percent_column([change(usd, optimum.lower_bound_usd) for _, usd in rows], signed=True)
    shares = [change(optimum.usd, usd) for _, usd in rows]
    saved = percent_column([-share if share else None for share in shares])
    columns = [
        Column("name", "strategy", [name for name, _ in (*rows, *bounds)], right=False),
        Column("cost", "cost", dollar_column([usd for _, usd in (*rows, *bounds)])),
        Column("over", "above lower bound", [*above, *blank]),
        Column("saved", "saved by this plan", [*saved, *blank]),
    ]
    return Table(columns, "Dollars for these calls", strong=frozenset({0}))


@dataclass(slots=True)
class Habit:
    """How often a place has a breakpoint of which TTL, in which calls, and how long until it is read (seconds)."""

    place: str
    hours: list[float] = field(default_factory=list)
    fives: list[float] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)

    @property
    def calls(self) -> int:
        return len(self.numbers)

    @property
    def breakpoints(self) -> int:
        return len(self.hours) + len(self.fives)


def plan_words(plan: Sequence[PlanStep]) -> str:
    real = [step for step in plan if not step.sent.is_extra]
    habits = count_habits(real)
    elsewhere = [habit for habit in habits.values() if habit.place != EARLIER]
    parts = [_habit_words(habit, len(real)) for habit in elsewhere if habit.calls * 50 >= len(real)]
    if rare := sum(habit.breakpoints for habit in elsewhere if habit.calls * 50 < len(real)):
        parts.append(f"{count_text(rare, 'more breakpoint')} elsewhere")
    if EARLIER in habits:
        parts.append(f"and {EARLIER}, in {habits[EARLIER].calls:,} calls, so that it is found and stays")
    if not parts:
        return "Place no breakpoint: no block is read again soon enough to pay for its write."
    sentences = [f"Place breakpoints at {'; '.join(parts)}."]
    if uncached := sum(not step.breakpoints for step in real):
        sentences.append(f"{count_text(uncached, 'call')} without a breakpoint.")
    return " ".join([*sentences, *extra_words(plan)])


def _habit_words(habit: Habit, calls: int) -> str:
    where = habit.place if habit.calls >= calls * 0.98 else f"{habit.place} (in {habit.calls:,} of {calls:,} calls)"
    if not habit.hours or not habit.fives:
        return f"{where} with TTL {'1h' if habit.hours else '5m'}"
    read = [gap for gap in habit.hours if gap < NO_GAP]
    shorter = max((gap for gap in habit.fives if gap < NO_GAP), default=0.0)
    few = f"{len(habit.hours):,} of {habit.breakpoints:,}"
    if read and min(read) > shorter:
        return (
            f"{where} with TTL 5m, and with 1h before pauses over {duration(max(USUAL_TTL_S['5m'], shorter))} ({few})"
        )
    return f"{where} with TTL 5m, in {few} calls with 1h"


def extra_words(plan: Sequence[PlanStep]) -> Iterator[str]:
    pings = sum(step.sent.call.purpose == "ping" for step in plan)
    warms = sum(step.sent.call.purpose == "warm" for step in plan)
    if pings:
        yield f"Send {count_text(pings, 'keep-alive')} during pauses."
    if warms:
        yield f"Send {count_text(warms, 'pre-warming call')} before parallel ones."


def count_habits(real: Sequence[PlanStep]) -> dict[str, Habit]:
    """Where the calls are marked, the beginning of the prompt first."""
    tree = BlockTree([step.sent for step in real])
    found: dict[str, Habit] = {}
    for number, step in enumerate(real):
        request = build_call(step).request
        for breakpoint, placed in zip(request.breakpoints, step.breakpoints, strict=True):
            habit = found.setdefault(place_words(request, breakpoint), Habit(place_words(request, breakpoint)))
            habit.numbers.add(number)
            gaps = habit.hours if breakpoint.ttl == "1h" else habit.fives
            node = tree.nodes.get(placed.prefix) if breakpoint.layer is Layer.MESSAGES else None
            later = (tail.event.start - step.sent.start for tail in (node and node.above) or ())
            gaps.append(next((gap for gap in later if gap > 0), NO_GAP))
    order = ("tool", "system", "the end of what", END)
    return dict(sorted(found.items(), key=lambda item: next((n for n, part in enumerate(order) if part in item[0]), 2)))


def place_words(request: Request, breakpoint: Breakpoint) -> str:
    number = place_as_sent(request, breakpoint)[2] + 1
    if breakpoint.layer is Layer.TOOLS:
        return "the last tool" if breakpoint.index == len(request.tools.blocks) - 1 else f"tool {number}"
    if breakpoint.layer is Layer.SYSTEM:
        last = breakpoint.index == len(request.system.blocks) - 1
        return "the last system block" if last else f"system block {number}"
    return END if breakpoint.node is request.thread else EARLIER


def print_brief(optimum: Optimum, title: str, arguments: str, stream: IO[str], is_scenario: bool) -> None:
    """Print to `stream`; what does not fit the plan's lines is left to --full."""
    console = report_console(stream, REPORT_WIDTH)
    width = min(console.width, REPORT_WIDTH)
    lines = wrap(plan_words(optimum.plan), width)
    if len(lines) > PLAN_LINES:
        rest = shorten(" ".join(lines[PLAN_LINES - 1 :]), width, placeholder=" … (--full: all)")
        lines = [*lines[: PLAN_LINES - 1], rest]
    for line in lines:
        console.print(Text(line, "bold"), soft_wrap=True)
    for line in brief_lines(optimum, title, arguments, is_scenario):
        console.print(Text(line), soft_wrap=True)


def brief_lines(optimum: Optimum, title: str, arguments: str, is_scenario: bool) -> Iterator[str]:
    """The dollars, what else saves, the lower bound, how sure that is, and what to type next."""
    name, now = cost_now(optimum)
    calls = count_text(len(optimum.plan) - len(optimum.extras), "call")
    less = change_text(change(optimum.usd, now))
    yield f"{dollars(now)} {name} · {dollars(optimum.usd)} with this plan: {less}   {title}, {calls}"
    also = []
    for names, usd in [(names, usd) for names, usd in cheapest_groups(optimum) if usd < now][:MOST_ALTERNATIVES]:
        more = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
        also.append(f"{names[0]}{more} {dollars(usd)}, {change_text(change(usd, now))}")
    yield f"cheaper    {' · '.join(also) or 'no built-in strategy is cheaper'}"
    gap, limit = change(optimum.usd, optimum.lower_bound_usd), dollars(optimum.lower_bound_usd)
    above = f"; this one is {percent(gap)} above that" if gap is not None else ""
    bound = f"no legal plan for these requests costs less than {limit}"
    if optimum.is_optimal:
        yield f"minimum    provably optimal: {bound}"
    elif gap is not None and gap <= 0:
        yield f"minimum    at the lower bound of {limit}, but not under every assumption"
    else:
        yield f"minimum    {bound}{above}"
    about = " ".join(filter(None, (optimum.token_source, _margin_words(optimum))))
    depends = f"depends on {', '.join(optimum.depends_on)} (--full)"
    yield f"accuracy   {about}; {depends if optimum.depends_on else 'holds under every tried assumption'}"
    yield f"next       cachecost optimize {arguments} --emit DIR: requests, strategy and client code; --full: the table"
    yield see_also("optimize", arguments, is_scenario=is_scenario)


def cost_now(optimum: Optimum) -> tuple[str, Decimal]:
    """What the calls cost as they are sent, in words and USD: without breakpoints what "none" does; the cheapest
    built-in strategy where some calls were left out."""
    if optimum.recorded_usd is not None:
        return f"now ({optimum.first}, simulated)", optimum.recorded_usd
    best = optimum.best_preset
    if optimum.refused:
        return f"with the cheapest built-in strategy ({best.name})", best.usd
    none = next((one for one in optimum.presets if one.name == "none"), best)
    return "now (no breakpoints, simulated)", none.usd


def _margin_words(optimum: Optimum) -> str:
    margin = Decimal(str(optimum.error_margin))
    return f"{margin_text(margin, optimum.usd * margin)} on each figure" if margin else ""


def optimum_object(found: Optimum) -> dict[str, Any]:
    """The object of docs/reference/output-formats.md, with the sentence of the plan. Dollars are decimal strings."""
    strategies = {one.name: exact(one.usd) for one in found.presets if not one.refused}
    if found.recorded_usd is not None:
        strategies = {found.first: exact(found.recorded_usd), **strategies}
    return {
        "format": 1,
        "best": {
            "cost_usd": exact(found.usd),
            "words": plan_words(found.plan),
            "plan": [
                {"start": call.start, "purpose": call.purpose, "breakpoints": breakpoint_objects(call.request)}
                for call in map(build_call, found.plan)
            ],
        },
        "lower_bound_usd": exact(found.lower_bound_usd),
        "lower_bound_without_pings_usd": exact(found.lower_bound.usd),
        "proved_optimal": found.is_optimal,
        "strategies": strategies,
        "refused_strategies": {one.name: one.refused for one in found.presets if one.refused},
        "answers_usd": exact(found.answers_usd),
        "depends_on": found.depends_on,
        "assumptions": [
            {
                "assumption": one.switch,
                "value": one.value,
                "best_usd": exact(one.plan_usd),
                "best_preset_usd": exact(one.preset_usd),
            }
            for one in found.assumptions
        ],
        "prefill": {name: asdict(load) for name, load in found.loads.items()},
        "first_token": None if found.fit is None else {**asdict(found.fit), "supported": found.fit.is_supported},
        "tokens": {"source": found.token_source, "error_margin": found.error_margin},
        "refused_calls": len(found.refused),
    }


def breakpoint_objects(request: Request) -> list[dict[str, str]]:
    return [{"path": wire_path(request, one), "ttl": one.ttl} for one in request.breakpoints]


def print_optimum(optimum: Optimum, title: str, stream: IO[str]) -> None:
    width, _ = stream_look(stream)
    prose = min(width, REPORT_WIDTH)
    page = StringIO()
    console = inert_console(page, width=width, highlight=False)
    calls = count_text(len(optimum.plan) - len(optimum.extras), "call")
    console.print(Text.assemble((title, "bold"), f"   {calls}"), soft_wrap=True)
    console.print()
    for sentence in answer(optimum):
        console.print(Text(sentence, "bold"), width=prose)
    console.print()
    fitted = fit_table(plan_table(optimum, is_short=True), width)
    console.print(render_table(fitted))
    console.print()
    console.print(facts_grid(facts(optimum), prose))
    if note := hidden_note([fitted], "--csv F"):
        console.print(Padding(Text(note), (0, 0, 0, INDENT)))
    styled_stream(stream).write(without_end_blanks(page.getvalue()))


def answer(optimum: Optimum) -> Iterator[str]:
    yield plan_words(optimum.plan)
    before = optimum.recorded_usd if optimum.recorded_usd is not None else optimum.best_preset.usd
    name = optimum.first if optimum.recorded_usd is not None else optimum.best_preset.name
    less = change_text(change(optimum.usd, before))
    gap = change(optimum.usd, optimum.lower_bound_usd)
    proof = f"No legal plan costs less than {dollars(optimum.lower_bound_usd)}; this one is {percent(gap)} above that."
    if optimum.is_optimal:
        proof = "This plan is provably optimal."
    elif gap is not None and gap <= 0:
        proof = "It is at the lower bound, but not under every assumption."
    yield f"That costs {dollars(optimum.usd)} instead of {dollars(before)} ({name}): {less}. {proof}"


def facts(optimum: Optimum) -> Iterator[tuple[str, str]]:
    """How sure it is, and what else changes: (label, sentence)."""
    yield "tokens", ": ".join(filter(None, (optimum.token_source, _margin_words(optimum))))
    if optimum.depends_on:
        costs = "; ".join(
            f"with {one.switch}={one.value} it costs {dollars(one.plan_usd)}, a preset {dollars(one.preset_usd)}"
            for one in optimum.assumptions
            if not one.is_cheaper
        )
        yield "rules", f"the plan depends on assumptions, so it is not called optimal: {costs}"
    else:
        yield "rules", "no compared preset is cheaper than this plan under any other assumption"
    for name, load in optimum.loads.items():
        yield (
            "prefill" if name == "plan" else "",
            f"{name}: {percent(load.mean_share)} of a prompt is not read (95th percentile {percent(load.p95_share)}); "
            f"at most {tokens(load.peak_per_minute)} input tokens a minute count against a rate limit",
        )
    fit = optimum.fit
    if fit is None:
        yield "seconds", "not supported by the data: the recording has no times to the first token"
    elif not fit.is_supported:
        yield "seconds", f"not supported by the data ({fit.calls} calls with a time, r² {fit.r2:.2f})"
    else:
        saved = optimum.loads[optimum.first].unread_tokens - optimum.loads["plan"].unread_tokens
        yield (
            "seconds",
            f"first token after {fit.base_s:.2f} s + {fit.per_token_s * 1000:.3f} s per 1,000 unread tokens "
            f"(r² {fit.r2:.2f}, {fit.calls} calls): {saved * fit.per_token_s:+.1f} s saved in all",
        )
    if optimum.refused:
        yield "left out", f"{len(optimum.refused):,} calls that failed, are refused, or could not be evaluated"
    if optimum.answers_usd:
        yield "answers", f"{dollars(optimum.answers_usd)} of each figure is output, the same in every plan"


def optimum_page(source: str, optimum: Optimum, again: str) -> str:
    """The cheapest legal breakpoints, TTLs and keep-alives. `again` is the command that makes the page."""
    first, *more = answer(optimum)
    certainty = [f"{label}: {sentence}" if label else sentence for label, sentence in facts(optimum)]
    return render_page(
        "analysis.html",
        title=source,
        question="What is the least that these calls can cost, and with which breakpoints?",
        answer=first,
        sections=[
            Section("strategies", "Every strategy against this plan", more, plan_table(optimum)),
            Section("sure", "How sure", certainty),
        ],
        again=again,
        version=__version__,
    )
