"""The report of a run as Markdown: the answer, the comparison, why, how sure, how to run it again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cachecost.analysis.comparison.answer import seeds_sentence
from cachecost.analysis.comparison.apart import apart_sentences
from cachecost.analysis.comparison.assumption_texts import assumption_groups, first_assumptions, summary_sentence
from cachecost.analysis.comparison.sentences import (
    bold_words,
    cumulative_title,
    dollars_title,
    question_title,
    refusal_sentences,
    rules_sentence,
    token_sentences,
)
from cachecost.analysis.comparison.strategy_line import shared_notes
from cachecost.analysis.comparison.summary import AGAINST_FIRST, Summary, summarise
from cachecost.base.formatting import count_text
from cachecost.ledger.results import RunResult
from cachecost.views.run.files import CUMULATIVE, DOLLARS, PROVIDERS, QUESTION
from cachecost.views.run.provider_titles import providers_title
from cachecost.views.run.question_variants import TITLE, question_variants
from cachecost.views.run.tables import (
    cause_table,
    layer_table,
    published_figure_table,
    question_table,
    strategy_table,
    variant_costs,
    variant_table,
)
from cachecost.views.tables.lower_bounds import lower_bound_sentence
from cachecost.views.tables.markdown import escape_markdown, markdown_table, picture_link
from cachecost.views.tables.table import REFUSED


def report_markdown(result: RunResult, pictures: Collection[str] = (), again: str | None = None) -> str:
    """The whole report.md, ending in a newline. `pictures` are the files beside it; others are not linked.

    `again` is the command that makes the report; by default that of a scenario in `scenarios/`.
    """
    summaries = [summarise(comparison) for comparison in result.comparisons]
    main = summaries[0]
    sections = [
        _head(result),
        _comparison(result, summaries),
        _assumptions(result),
        _pictures(summaries, pictures),
        _question(main, pictures),
        _over_calls(main, pictures),
        _where(main),
        _variants(summaries),
        _published_figures(result),
        _how_sure(result, main),
        _again(result, again or f"cachecost run scenarios/{result.scenario}.yaml"),
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


def _pictures(summaries: Sequence[Summary], pictures: Collection[str]) -> list[str]:
    providers = [picture_link(PROVIDERS, providers_title(summaries), pictures)] if PROVIDERS in pictures else []
    return [*providers, picture_link(DOLLARS, dollars_title(summaries[0]), pictures)] if summaries[0].lines else []


def _comparison(result: RunResult, summaries: Sequence[Summary]) -> list[str]:
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


def _over_calls(summary: Summary, pictures: Collection[str]) -> list[str]:
    link = picture_link(CUMULATIVE, cumulative_title(summary), pictures)
    return ["## Dollars, call after call", link] if link else []


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


def _how_sure(result: RunResult, summary: Summary) -> list[str]:
    facts = [f"{sentence}." for sentence in token_sentences(summary)]
    facts += filter(None, [seeds_sentence(summary, result.seeds)])
    facts.append(f"Rules and prices: {rules_sentence(summary.comparison)}.")
    notes = [f"{note} ({_names(names, summary)})" for note, names in shared_notes(summary.lines)]
    parts = ["## How sure", _list(facts)]
    return [*parts, "Notes on strategies:", _list(notes)] if notes else parts


def _again(result: RunResult, command: str) -> list[str]:
    versions = " · ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    files = "`calls.csv` holds every call with its exact dollars, `result.json` the sums of this page."
    return ["## Run it again", f"```sh\n{command}\n```", files, escape_markdown(versions)]


def _names(names: Sequence[str], summary: Summary) -> str:
    return "every strategy" if len(names) == len(summary.lines) > 1 else ", ".join(f"“{name}”" for name in names)


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
