"""What machines read of a run: one JSON object of sums, one CSV row a call. Dollars with all their digits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from json import dumps
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.comparison.assumptions import (
    assumption_groups,
    brief_sentence,
    first_assumptions,
    summary_sentence,
)
from cachecost.analysis.comparison.summary import (
    AGAINST_FIRST,
    StrategyLine,
    Summary,
    apart_sentences,
    best_and_next,
    bold_words,
    cumulative_title,
    dollars_title,
    error_of_difference,
    question_title,
    refusal_sentences,
    rules_sentence,
    shared_notes,
    summarise,
    token_sentences,
)
from cachecost.analysis.comparison.verdict import seeds_sentence
from cachecost.base.formatting import count_text, encodable, exact, inert_text
from cachecost.ledger.results import Assumption, Comparison, PublishedFigure, RunResult, TriedValue
from cachecost.ledger.rows import QUESTIONS, LessInput
from cachecost.providers.usage import ZERO
from cachecost.scenario.models import plain
from cachecost.views.bound_units import bind_units_in_markdown
from cachecost.views.charts.palette import ERROR_STYLE
from cachecost.views.replay.call_rows import FORMAT, write_call_csv
from cachecost.views.run.files import (
    CALLS,
    CUMULATIVE,
    DOLLARS,
    OURS,
    PAGE,
    PROVIDERS,
    QUESTION,
    REPORT,
    RESULT,
    TITLE,
    dollar_bar,
    legend,
    providers_title,
    question_variants,
)
from cachecost.views.run.tables import (
    cause_table,
    layer_table,
    name_strategies,
    published_figure_table,
    question_table,
    strategy_table,
    terminal_variant_table,
    variant_costs,
    variant_table,
)
from cachecost.views.streams import REPORT_WIDTH, Colours, inert_console, stream_look, styled_stream
from cachecost.views.tables.output import escape_markdown, lower_bound_sentence, markdown_table, picture_link
from cachecost.views.tables.table import GAP, INDENT, REFUSED, FittedTable, fit_table, hidden_note, render_table


def run_json(result: RunResult) -> str:
    """The object of `run --json`, indented, ending in a newline.

    `strategies` are those of the scenario as written, `variants` hold the further comparisons alike.
    """
    return dumps(run_object(result), ensure_ascii=False, indent=2) + "\n"


def run_object(result: RunResult) -> dict[str, Any]:
    """What `run_json` writes, as plain dicts, lists, strings and numbers. `best` is None if no strategy ran whole."""
    return {
        "format": FORMAT,
        "scenario": result.scenario,
        "question": result.question,
        "about": result.about,
        "verdict": result.verdict,
        **_comparison(result.main),
        "variants": [{"variant": each.variant, **_comparison(each)} for each in result.comparisons[1:]],
        "published_figures": [_published_figure(published_figure) for published_figure in result.published_figures],
        "seeds": [{"seed": int(each.variant.split()[-1]), **_comparison(each)} for each in result.seeds],
        "assumptions": [_assumption(one) for one in result.assumptions],
        "versions": dict(sorted(result.versions.items())),
    }


def calls_csv(result: RunResult) -> str:
    """One row a call, over all strategies of the scenario as written, in their order; lines end in a newline."""
    text = StringIO()
    write_call_csv((row for ledger in result.main.ledgers for row in ledger.rows), text)
    return text.getvalue()


def _comparison(comparison: Comparison) -> dict[str, Any]:
    summary = summarise(comparison)
    names = [ledger.strategy for ledger in comparison.ledgers]
    return {
        "host": comparison.host,
        "model": comparison.model,
        "as_of": comparison.as_of.isoformat(),
        "rules": dict(sorted(comparison.rules.items())),
        "compare_to": comparison.first,
        "strategies": [_strategy(line) for line in map(summary.line, names) if line is not None],
        "best": summary.best.name if summary.best else None,
        "tied": list(summary.winners) if len(summary.winners) > 1 else [],
        "tied_with": [name for name in summary.winners if summary.best and name != summary.best.name],
        "lead": _lead(summary),
    }


def _strategy(line: StrategyLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "calls": line.calls,
        "errors": line.refused,
        "usage": line.usage.wire(),
        **_dollars(line),
        "vs_first": None if line.vs_first is None else exact(round(line.vs_first, 6)),
        "lower_bound_usd": None if line.lower_bound is None else exact(line.lower_bound),
        "inquiries": line.questions,
        "cost_per_inquiry_usd": None if line.question is None else exact(line.question),
        "refusals": [{"type": each.kind, "message": each.reason, "calls": each.calls} for each in line.refusals],
        "token_source": line.token_source,
        "token_error_margin": line.error_margin,
        "notes": list(line.notes),
        "compared_apart": line.is_apart,
        "described_in": line.described_in,
        "own_assumptions": line.assumes,
        "sees_less": None if line.less is None else _less(line.less),
    }


def _less(less: LessInput) -> dict[str, Any]:
    """What a strategy leaves out of the calls that the compared one makes too."""
    return {
        "calls": less.calls,
        "of": "questions" if less.what == QUESTIONS else "main",
        "mean_tokens": less.tokens,
        "mean_tokens_compared": less.compared_tokens,
        "calls_under_1000_tokens": less.small,
        "questions_not_asked": less.unasked,
        "leaves_out": less.words,
    }


def _lead(summary: Summary) -> dict[str, str] | None:
    """The lead of the cheapest strategy over the next, and its error margin; None without a next, or a price."""
    found = best_and_next(summary.lines)
    if found is None or not summary.is_priced:
        return None
    best, second = found
    lead, margin = second.effort - best.effort, error_of_difference(best, second)
    return {"over": second.name, "usd": exact(lead), "error_usd": exact(margin)}


def _dollars(line: StrategyLine) -> dict[str, Any]:
    """None, and the share of the input that was read, where no price is known."""
    if not line.is_priced:
        share = None if line.cache_hit_rate is None else exact(round(line.cache_hit_rate, 6))
        return {"cost_usd": None, "cost_by_class_usd": None, "cost_by_layer_usd": None, "cache_hit_rate": share}
    return {
        "cost_usd": exact(line.cost.total),
        **({} if line.most is None else {"cost_range_usd": [exact(line.cost.total), exact(line.most)]}),
        "cost_by_class_usd": _exact_all(line.cost.by_class()),
        "cost_by_layer_usd": _exact_all({layer.value: amount for layer, amount in line.by_layer.items()}),
    }


def _assumption(assumption: Assumption) -> dict[str, Any]:
    """`changes_answer` is None for what was not tried."""
    return {
        "name": assumption.name,
        "why": assumption.why,
        "source": assumption.source,
        "value": assumption.value,
        "changes_answer": assumption.changes,
        "effect": assumption.effect,
        "impact": exact(round(assumption.impact, 6)),
        "tried": [_tried(value) for value in assumption.tried],
        "break_even": [
            {
                "claim": each.claim,
                "instead": each.instead,
                "holds_to": plain(each.holds_to),
                "changes_at": plain(each.changes_at),
            }
            for each in assumption.break_evens
        ],
    }


def _tried(value: TriedValue) -> dict[str, Any]:
    return {
        "value": value.value,
        "best": value.best,
        "cost": _exact_all(value.costs),
        "cost_per_inquiry_usd": _exact_all(value.questions),
    }


def _published_figure(published_figure: PublishedFigure) -> dict[str, Any]:
    name = "exact_share" if published_figure.is_share else "exact_usd"
    return {
        "source": published_figure.source,
        "says": published_figure.says,
        name: exact(published_figure.exact),
        "how": published_figure.how,
    }


def _exact_all(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: exact(amount) for name, amount in amounts.items()}


def report_markdown(result: RunResult, pictures: Collection[str] = (), again: str | None = None) -> str:
    """The whole report.md, ending in a newline. `pictures` are the files beside it; others are not linked.

    `again` is the command that makes the report; by default that of a scenario in `scenarios/`.
    """
    summaries = [summarise(comparison) for comparison in result.comparisons]
    main = summaries[0]
    providers = [picture_link(PROVIDERS, providers_title(summaries), pictures)] if PROVIDERS in pictures else []
    link = picture_link(CUMULATIVE, cumulative_title(main), pictures)
    facts = [f"{sentence}." for sentence in token_sentences(main)]
    facts += filter(None, [seeds_sentence(main, result.seeds)])
    facts.append(f"Rules and prices: {rules_sentence(main.comparison)}.")
    notes = [f"{note} ({name_strategies(names, main)})" for note, names in shared_notes(main.lines)]
    parts = ["## How sure", _list(facts)]
    command = again or f"cachecost run scenarios/{result.scenario}.yaml"
    versions = " · ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    files = "`calls.csv` holds every call with its exact dollars, `result.json` the sums of this page."
    sections = [
        _head(result),
        _markdown_comparison(result, summaries),
        _assumptions(result),
        ([*providers, picture_link(DOLLARS, dollars_title(summaries[0]), pictures)] if summaries[0].lines else []),
        _question(main, pictures),
        (["## Dollars, call after call", link] if link else []),
        _where(main),
        _variants(summaries),
        _published_figures(result),
        ([*parts, "Notes on strategies:", _list(notes)] if notes else parts),
        ["## Run it again", f"```sh\n{command}\n```", files, escape_markdown(versions)],
    ]
    return "\n\n".join(part for section in sections for part in section if part) + "\n"


def _head(result: RunResult) -> list[str]:
    question = f"*{escape_markdown(result.question)}*" if result.question else ""
    verdict = f"**{escape_markdown(result.verdict)}**" if result.verdict else ""
    return [f"# {escape_markdown(result.scenario)}", question, verdict, escape_markdown(result.about)]


def _assumptions(result: RunResult) -> list[str]:
    """Those that could change most in a sentence each; all of them, with what was tried, are folded."""
    groups = assumption_groups(result.assumptions)
    listed = [part for title, texts in groups for part in (f"{title}:", _list(texts))]
    if not listed:
        return []
    said = [escape_markdown(summary_sentence(result.assumptions)), _list(first_assumptions(result.assumptions))]
    fold = f'<details markdown="1"><summary>{count_text(len(result.assumptions), "assumption")} in full</summary>'
    return ["## What the answer assumes", *said, fold, *listed, "</details>"]


def _markdown_comparison(result: RunResult, summaries: Sequence[Summary]) -> list[str]:
    summary = summaries[0]
    if not summary.lines:
        return ["No strategy to compare."]
    key = f"Tokens are sums over all calls; {bold_words(summary)}"
    if not summary.is_priced:
        key += " No price is known: strategies are ranked by the prefill that is left to do."
    error_margin = " ".join(f"{escape_markdown(sentence)}." for sentence in token_sentences(summary))
    if summary.first and len(summary.lines) > 1 and summary.against == AGAINST_FIRST:
        key += f" *vs first* compares with “{escape_markdown(summary.first.name)}”."
    refusals = [f"{REFUSED} {escape_markdown(sentence)}" for sentence in refusal_sentences(summary)]
    if refusals:
        key += f" {REFUSED} had refused calls, so its dollars compare with nothing."
    return [
        markdown_table(strategy_table(summary)),
        escape_markdown(lower_bound_sentence(summary.comparison.ledgers)),
        key,
        _list([f"{sentence}." for sentence in apart_sentences(summary)]),
        " ".join(filter(None, [error_margin, escape_markdown(seeds_sentence(summary, result.seeds))])),
        _list(refusals),
    ]


def _question(summary: Summary, pictures: Collection[str]) -> list[str]:
    if not summary.has_questions:
        return []
    key = "All calls that serve a question, retries included, over the number of questions; tokens are means."
    return [
        "## What one question costs",
        picture_link(QUESTION, question_title(summary), pictures),
        markdown_table(question_table(summary)),
        key,
    ]


def _where(summary: Summary) -> list[str]:
    if not summary.lines or not summary.is_priced:
        return []
    causes = cause_table(summary)
    what = "What was not read from the cache, by cause: dollars of writes and uncached input, and in how many calls."
    why = [what, markdown_table(causes)] if causes else []
    return ["## Where the dollars go", "By layer of the prompt:", markdown_table(layer_table(summary)), *why]


def _variants(summaries: Sequence[Summary]) -> list[str]:
    if len(summaries) < 2:
        return []
    key = "*order* differs where two strategies change places; it ties where the cheapest one as written has an equal."
    return [
        "## Variants side by side",
        markdown_table(variant_table(summaries)),
        key,
        markdown_table(variant_costs(summaries)),
        *([f"{TITLE}:", markdown_table(questions)] if (questions := question_variants(summaries)) else []),
    ]


def _published_figures(result: RunResult) -> list[str]:
    return (
        ["## Published figures, exactly", markdown_table(published_figure_table(result.published_figures))]
        if result.published_figures
        else []
    )


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


NARROWEST_BAR, WIDEST_BAR = 6, 24
MOST_ASSUMED = 2
"""Assumptions in the terminal, at most."""


def print_run(result: RunResult, stream: IO[str], report: Path | None = None) -> None:
    """Print to `stream`: as wide as its terminal, 120 cells into a pipe; colours as it and NO_COLOR allow."""
    width, colours = stream_look(stream)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    styled_stream(stream).write(run_text(result, width=width, colours=colours, encoding=encoding, report=report))


def run_text(
    result: RunResult,
    *,
    width: int = REPORT_WIDTH,
    colours: Colours | None = None,
    encoding: str = "utf-8",
    report: Path | None = None,
) -> str:
    """The whole output, ending in a newline. ASCII takes the place of signs if `encoding` lacks one of them."""
    page = StringIO()
    console = inert_console(page, width=width, color_system=colours, force_terminal=bool(colours), legacy_windows=False)
    summaries = [summarise(comparison) for comparison in result.comparisons]
    tables = _tables(summaries, width)
    facts = _facts(result, summaries[0], min(width, REPORT_WIDTH), report is not None)
    for part in (*_parts(result, summaries, tables, width, bool(colours)), facts):
        console.print(part, highlight=False)
    if report is not None:
        console.print(Text(f"  report   {report}"), soft_wrap=True)
    if note := hidden_note(tables, "--json" if report is None else "the report"):
        console.print(_indent(Text(note), width))
    return encodable("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()), encoding)


def _tables(summaries: Sequence[Summary], width: int) -> list[FittedTable]:
    """The strategies, where there are any, and the variants, where there are any."""
    tables = [strategy_table(summaries[0])] if summaries[0].lines else []
    tables += [terminal_variant_table(summaries)] if len(summaries) > 1 else []
    return [fit_table(table, width) for table in tables]


def _parts(
    result: RunResult, summaries: Sequence[Summary], tables: Sequence[FittedTable], width: int, coloured: bool
) -> list[RenderableType]:
    prose = min(width, REPORT_WIDTH)
    header = Text.assemble((result.scenario, "bold"), "   ", result.about)
    parts: list[RenderableType] = [_indent(header, prose, 0), Text()]
    if result.verdict:
        parts += [_indent(Text(result.verdict, "bold"), prose, 0), Text()]
    parts += [*_strategies(summaries[0], tables, width, coloured), Text()]
    if len(summaries) > 1:
        parts += [render_table(tables[-1]), Text()]
    return parts


def _strategies(summary: Summary, tables: Sequence[FittedTable], width: int, coloured: bool) -> list[RenderableType]:
    if not summary.lines:
        return [Text("  no strategy to compare")]
    fitted = tables[0]
    room = min(fitted.room - GAP, WIDEST_BAR)
    largest = max((line.cost.total for line in summary.lines), default=ZERO)
    bars = [dollar_bar(line, largest, room) for line in summary.lines]
    parts: list[RenderableType] = [render_table(fitted, bars=bars if room >= NARROWEST_BAR else None)]
    if coloured:
        parts.append(_indent(legend(summary.classes, summary.class_names), width))
    remarks = [Text(sentence) for sentence in apart_sentences(summary)]
    remarks += [Text(sentence) for sentence in [lower_bound_sentence(summary.comparison.ledgers)] if sentence]
    remarks += [Text(f"{REFUSED} {sentence}", ERROR_STYLE) for sentence in refusal_sentences(summary)]
    return [*parts, *(_indent(text, min(width, REPORT_WIDTH)) for text in remarks)]


def _facts(result: RunResult, summary: Summary, width: int, has_report: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("tokens"))
    grid.add_column()
    for label, words in _labelled_facts(summary, result.seeds, result.assumptions, has_report):
        grid.add_row(Text(label), Text(words))
    return _indent(grid, width)


def _labelled_facts(
    summary: Summary, seeds: Sequence[Comparison], assumptions: Sequence[Assumption], has_report: bool
) -> list[tuple[str, str]]:
    facts = [("tokens" if not number else "", text) for number, text in enumerate(token_sentences(summary))]
    facts += [("seeds", text) for text in [seeds_sentence(summary, seeds)] if text]
    facts.append(("rules", rules_sentence(summary.comparison)))
    shown = [brief_sentence(one) for one in assumptions[:MOST_ASSUMED] if one.changes is not None]
    facts += [
        ("assumes" if not number else "", text)
        for number, text in enumerate([summary_sentence(assumptions), *shown] if assumptions else [])
    ]
    notes = shared_notes(summary.lines)
    if notes and not has_report:
        noted = (f"{', '.join(names)}: {note}" for note, names in notes)
        facts += [("" if number else "notes", text) for number, text in enumerate(noted)]
    elif notes:
        facts.append(
            ("notes", f"{count_text(len(notes), 'note')} on what strategies assume or cannot do: see the report")
        )
    return facts


def _indent(text: RenderableType, width: int, indent: int = INDENT) -> Padding:
    """`text` from column `indent` on, wrapped between words before cell `width`."""
    holder = Table.grid()
    holder.add_column(width=width - indent)
    holder.add_row(text)
    return Padding(holder, (0, 0, 0, indent))


def write_report(result: RunResult, folder: Path, again: str | None = None) -> Path:
    """Write the report of `result` into `folder`, made if missing; returns the path of report.md. `again` is the
    command that makes it.

    The same result is the same bytes. A file of ours that this result does not have is removed.
    Raises OSError if the folder cannot be written; it then holds what it held before.
    """
    files = report_files(result, again)
    made = _make(folder)
    try:
        work = Path(mkdtemp(prefix=".report-", dir=folder))
        try:
            new, old = work / "new", work / "old"
            new.mkdir()
            old.mkdir()
            for name, content in files.items():
                (new / name).write_bytes(content)
            _swap(folder, new, old)
        finally:
            rmtree(work, ignore_errors=True)
    except BaseException:
        with suppress(OSError):
            for path in made:
                path.rmdir()
        raise
    return folder / REPORT


def report_files(result: RunResult, again: str | None = None) -> dict[str, bytes]:
    """File name to content of a whole report; nothing is written."""
    from cachecost.views.run.bar_charts import chart_files
    from cachecost.views.run.page import run_page

    summaries = [summarise(comparison) for comparison in result.comparisons]
    charts = chart_files(summaries[0], summaries)
    texts = {
        REPORT: report_markdown(result, tuple(charts), again),
        CALLS: calls_csv(result),
        RESULT: run_json(result),
    }
    inert = {name: inert_text(text) for name, text in texts.items()}
    inert[REPORT] = bind_units_in_markdown(inert[REPORT])
    inert[PAGE] = run_page(result, again)
    return {name: text.encode("utf-8") for name, text in inert.items()} | charts


def _make(folder: Path) -> list[Path]:
    """Make `folder`; the folders that were missing, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _swap(folder: Path, new: Path, old: Path) -> None:
    fresh = {path.name for path in new.iterdir()}
    begun: list[str] = []
    try:
        for name in OURS:
            begun.append(name)
            _move(folder / name, old / name)
            _move(new / name, folder / name)
    except BaseException:
        for name in begun:
            if name in fresh and not (new / name).exists():
                (folder / name).unlink()
            _move(old / name, folder / name)
        raise


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)
