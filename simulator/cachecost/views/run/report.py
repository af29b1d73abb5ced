"""A run as JSON and CSV with all digits of its dollars, as Markdown, in the terminal, and as a folder of files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from io import StringIO
from itertools import pairwise
from json import dumps
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO, Any

from rich.console import RenderableType
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
from cachecost.base.formatting import count_text, encodable, exact, exact_or_none, inert_text
from cachecost.ledger.results import Assumption, Comparison, RunResult
from cachecost.ledger.rows import QUESTIONS
from cachecost.providers.usage import ZERO
from cachecost.scenario.models import plain
from cachecost.views.bound_units import bind_units_in_markdown
from cachecost.views.charts.palette import CLASS_COLOURS, ERROR_STYLE
from cachecost.views.replay.call_rows import FORMAT, write_call_csv
from cachecost.views.run.files import CALLS, CUMULATIVE, DOLLARS, OURS, PAGE, PROVIDERS, QUESTION, REPORT, RESULT
from cachecost.views.run.tables import (
    QUESTION_TITLE,
    cause_table,
    layer_table,
    name_strategies,
    providers_title,
    published_figure_table,
    question_table,
    question_variants,
    strategy_table,
    variant_costs,
    variant_table,
)
from cachecost.views.streams import REPORT_WIDTH, Colours, inert_console, stream_look, styled_stream, without_end_blanks
from cachecost.views.tables.output import escape_markdown, lower_bound_sentence, markdown_table, pick, picture_link
from cachecost.views.tables.table import (
    GAP,
    REFUSED,
    FittedTable,
    facts_grid,
    fit_table,
    hidden_note,
    indented,
    render_table,
)

CAUSES = "What was not read from the cache, by cause: dollars of writes and uncached input, and in how many calls."
ORDER = "*order* differs where two strategies change places; it ties where the cheapest one as written has an equal."
NARROWEST_BAR, WIDEST_BAR = 6, 24
MOST_ASSUMED = 2
"""Assumptions in the terminal, at most."""


def run_json(result: RunResult) -> str:
    """The object of `run --json`, indented, ending in a newline."""
    return dumps(run_object(result), ensure_ascii=False, indent=2) + "\n"


def run_object(result: RunResult) -> dict[str, Any]:
    """What `run_json` writes, as plain dicts, lists, strings and numbers. `best` is None if no strategy ran whole."""
    return {
        "format": FORMAT,
        **pick(result, "scenario", "question", "about", "verdict"),
        **comparison_object(result.main),
        "variants": [{"variant": each.variant, **comparison_object(each)} for each in result.comparisons[1:]],
        "published_figures": [
            {
                **pick(one, "source", "says"),
                "exact_share" if one.is_share else "exact_usd": exact(one.exact),
                "how": one.how,
            }
            for one in result.published_figures
        ],
        "seeds": [{"seed": int(each.variant.split()[-1]), **comparison_object(each)} for each in result.seeds],
        "assumptions": [_assumption(one) for one in result.assumptions],
        "versions": dict(sorted(result.versions.items())),
    }


def calls_csv(result: RunResult) -> str:
    """One row a call, over all strategies of the scenario as written, in their order; lines end in a newline."""
    text = StringIO()
    write_call_csv((row for ledger in result.main.ledgers for row in ledger.rows), text)
    return text.getvalue()


def comparison_object(comparison: Comparison) -> dict[str, Any]:
    """The strategies under one set of assumptions, as JSON."""
    summary = summarise(comparison)
    names = [ledger.strategy for ledger in comparison.ledgers]
    lead, found = None, best_and_next(summary.lines)
    if found is not None and summary.is_priced:  # of the cheapest strategy over the next
        best, second = found
        margin = error_of_difference(best, second)
        lead = {"over": second.name, "usd": exact(second.effort - best.effort), "error_usd": exact(margin)}
    return {
        **pick(comparison, "host", "model"),
        "as_of": comparison.as_of.isoformat(),
        "rules": dict(sorted(comparison.rules.items())),
        "compare_to": comparison.first,
        "strategies": [_strategy(line) for line in map(summary.line, names) if line is not None],
        "best": summary.best.name if summary.best else None,
        "tied": list(summary.winners) if len(summary.winners) > 1 else [],
        "tied_with": [name for name in summary.winners if summary.best and name != summary.best.name],
        "lead": lead,
    }


def _strategy(line: StrategyLine) -> dict[str, Any]:
    less = line.less
    return {
        **pick(line, "name", "calls"),
        "errors": line.refused,
        "usage": line.usage.wire(),
        **_dollars(line),
        "vs_first": None if line.vs_first is None else exact(round(line.vs_first, 6)),
        "lower_bound_usd": exact_or_none(line.lower_bound),
        "inquiries": line.questions,
        "cost_per_inquiry_usd": exact_or_none(line.question),
        "refusals": [{"type": each.kind, "message": each.reason, "calls": each.calls} for each in line.refusals],
        "token_source": line.token_source,
        "token_error_margin": line.error_margin,
        "notes": list(line.notes),
        "compared_apart": line.is_apart,
        "described_in": line.described_in,
        "own_assumptions": line.assumes,
        "sees_less": less  # what it leaves out of the calls that the compared one makes too
        and {
            "calls": less.calls,
            "of": "questions" if less.what == QUESTIONS else "main",
            "mean_tokens": less.tokens,
            "mean_tokens_compared": less.compared_tokens,
            "calls_under_1000_tokens": less.small,
            "questions_not_asked": less.unasked,
            "leaves_out": less.words,
        },
    }


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
        **pick(assumption, "name", "why", "source", "value"),
        "changes_answer": assumption.changes,
        "effect": assumption.effect,
        "impact": exact(round(assumption.impact, 6)),
        "tried": [
            {
                **pick(value, "value", "best"),
                "cost": _exact_all(value.costs),
                "cost_per_inquiry_usd": _exact_all(value.questions),
            }
            for value in assumption.tried
        ],
        "break_even": [
            {**pick(each, "claim", "instead"), "holds_to": plain(each.holds_to), "changes_at": plain(each.changes_at)}
            for each in assumption.break_evens
        ],
    }


def _exact_all(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: exact(amount) for name, amount in amounts.items()}


def report_markdown(result: RunResult, pictures: Collection[str] = (), again: str | None = None) -> str:
    """The whole report.md; `pictures` are the files beside it, others are not linked. `again` is the command that makes
    it; by default that of a scenario in `scenarios/`."""
    summaries = [summarise(comparison) for comparison in result.comparisons]
    main = summaries[0]
    providers = [picture_link(PROVIDERS, providers_title(summaries), pictures)] if PROVIDERS in pictures else []
    link = picture_link(CUMULATIVE, cumulative_title(main), pictures)
    facts = [f"{sentence}." for sentence in token_sentences(main)]
    facts += filter(None, [seeds_sentence(main, result.seeds)])
    facts.append(f"Rules and prices: {rules_sentence(main.comparison)}.")
    notes = [f"{note} ({name_strategies(names, main)})" for note, names in shared_notes(main.lines)]
    command = again or f"cachecost run scenarios/{result.scenario}.yaml"
    versions = " · ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    files = "`calls.csv` holds every call with its exact dollars, `result.json` the sums of this page."
    parts = [
        f"# {escape_markdown(result.scenario)}",
        f"*{escape_markdown(result.question)}*" if result.question else "",
        f"**{escape_markdown(result.verdict)}**" if result.verdict else "",
        escape_markdown(result.about),
        *_markdown_comparison(result, main),
        *_markdown_assumptions(result),
    ]
    if main.lines:
        parts += [*providers, picture_link(DOLLARS, dollars_title(main), pictures)]
    if main.has_questions:
        parts += [
            "## What one question costs",
            picture_link(QUESTION, question_title(main), pictures),
            markdown_table(question_table(main)),
            "All calls that serve a question, retries included, over the number of questions; tokens are means.",
        ]
    parts += ["## Dollars, call after call", link] if link else []
    if main.lines and main.is_priced:
        parts += ["## Where the dollars go", "By layer of the prompt:", markdown_table(layer_table(main))]
        if causes := cause_table(main):
            parts += [CAUSES, markdown_table(causes)]
    if len(summaries) > 1:
        parts += ["## Variants side by side", markdown_table(variant_table(summaries)), ORDER]
        parts.append(markdown_table(variant_costs(summaries)))
        if questions := question_variants(summaries):
            parts += [f"{QUESTION_TITLE}:", markdown_table(questions)]
    if result.published_figures:
        table = published_figure_table(result.published_figures)
        parts += ["## Published figures, exactly", markdown_table(table)]
    parts += ["## How sure", _list(facts)]
    parts += ["Notes on strategies:", _list(notes)] if notes else []
    parts += ["## Run it again", f"```sh\n{command}\n```", files, escape_markdown(versions)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown_assumptions(result: RunResult) -> list[str]:
    """Those that could change most in a sentence each; all of them, with what was tried, are folded."""
    groups = assumption_groups(result.assumptions)
    listed = [part for title, texts in groups for part in (f"{title}:", _list(texts))]
    if not listed:
        return []
    answer = [escape_markdown(summary_sentence(result.assumptions)), _list(first_assumptions(result.assumptions))]
    fold = f'<details markdown="1"><summary>{count_text(len(result.assumptions), "assumption")} in full</summary>'
    return ["## What the answer assumes", *answer, fold, *listed, "</details>"]


def _markdown_comparison(result: RunResult, summary: Summary) -> list[str]:
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


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def dollar_bar(line: StrategyLine, largest: Decimal, width: int) -> Text:
    """The line's dollars as a part of `width` cells, to an eighth of a cell; something for every cent above zero."""
    if not line.total or not largest:
        return Text()
    eighths = max(1, int((line.total / largest * width * 8).to_integral_value(ROUND_HALF_UP)))
    text = Text("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip())
    cells = len(text)
    ends, so_far = [0], ZERO
    for name in CLASS_COLOURS:
        so_far += line.cost.by_class()[name]
        ends.append(int((so_far / line.cost.total * cells).to_integral_value(ROUND_HALF_UP)))
    for colour, (start, end) in zip(CLASS_COLOURS.values(), list(pairwise(ends)), strict=True):
        text.stylize(colour, start, end)
    return text


def legend(classes: Sequence[str], names: dict[str, str]) -> Text:
    return Text(" ").join(Text(names[name], style=CLASS_COLOURS[name]) for name in classes)


def print_run(result: RunResult, stream: IO[str], report: Path | None = None) -> None:
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
    main, prose = summaries[0], min(width, REPORT_WIDTH)
    shown = [strategy_table(main)] if main.lines else []
    shown += [variant_table(summaries, 32)] if len(summaries) > 1 else []
    tables = [fit_table(table, width) for table in shown]
    header = Text.assemble((result.scenario, "bold"), "   ", result.about)
    parts: list[RenderableType] = [indented(header, prose, 0), Text()]
    if result.verdict:
        parts += [indented(Text(result.verdict, "bold"), prose, 0), Text()]
    if main.lines:
        parts += _compared(main, tables[0], width, bool(colours))
    else:
        parts.append(Text("  no strategy to compare"))
    parts.append(Text())
    if len(summaries) > 1:
        parts += [render_table(tables[-1]), Text()]
    parts.append(facts_grid(_labelled_facts(result, main, report is not None), prose))
    for part in parts:
        console.print(part, highlight=False)
    if report is not None:
        console.print(Text(f"  report   {report}"), soft_wrap=True)
    if note := hidden_note(tables, "--json" if report is None else "the report"):
        console.print(indented(Text(note), width))
    return encodable(without_end_blanks(page.getvalue()), encoding)


def _compared(summary: Summary, fitted: FittedTable, width: int, coloured: bool) -> list[RenderableType]:
    room = min(fitted.room - GAP, WIDEST_BAR)
    largest = max((line.cost.total for line in summary.lines), default=ZERO)
    bars = [dollar_bar(line, largest, room) for line in summary.lines]
    parts: list[RenderableType] = [render_table(fitted, bars=bars if room >= NARROWEST_BAR else None)]
    if coloured:
        parts.append(indented(legend(summary.classes, summary.class_names), width))
    remarks = [Text(sentence) for sentence in apart_sentences(summary)]
    remarks += [Text(sentence) for sentence in [lower_bound_sentence(summary.comparison.ledgers)] if sentence]
    remarks += [Text(f"{REFUSED} {sentence}", ERROR_STYLE) for sentence in refusal_sentences(summary)]
    return [*parts, *(indented(text, min(width, REPORT_WIDTH)) for text in remarks)]


def _labelled_facts(result: RunResult, summary: Summary, has_report: bool) -> Iterator[tuple[str, str]]:
    assumptions, notes = result.assumptions, shared_notes(summary.lines)
    shown = [brief_sentence(one) for one in assumptions[:MOST_ASSUMED] if one.changes is not None]
    noted = [f"{', '.join(names)}: {note}" for note, names in notes]
    if notes and has_report:
        noted = [f"{count_text(len(notes), 'note')} on what strategies assume or cannot do: see the report"]
    for label, sentences in (
        ("tokens", token_sentences(summary)),
        ("seeds", filter(None, [seeds_sentence(summary, result.seeds)])),
        ("rules", [rules_sentence(summary.comparison)]),
        ("assumes", [summary_sentence(assumptions), *shown] if assumptions else []),
        ("notes", noted),
    ):
        for number, sentence in enumerate(sentences):
            yield "" if number else label, sentence


def write_report(result: RunResult, folder: Path, again: str | None = None) -> Path:
    """Write the report into `folder`, made if missing, and return the path of report.md: the same bytes for the same
    result, without files of ours that this result does not have. Raises OSError, and leaves the folder as it was."""
    files = report_files(result, again)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
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
    from cachecost.views.run.charts import chart_files
    from cachecost.views.run.page import run_page

    summaries = [summarise(comparison) for comparison in result.comparisons]
    charts = chart_files(summaries[0], summaries)
    texts = {REPORT: report_markdown(result, tuple(charts), again), CALLS: calls_csv(result), RESULT: run_json(result)}
    inert = {name: inert_text(text) for name, text in texts.items()}
    inert[REPORT] = bind_units_in_markdown(inert[REPORT])
    inert[PAGE] = run_page(result, again)
    return {name: text.encode("utf-8") for name, text in inert.items()} | charts


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
