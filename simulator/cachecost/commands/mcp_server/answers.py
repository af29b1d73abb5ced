"""What the tools answer: the objects that commands print with --json, long lists cut to their most expensive rows.

The models name the fields that an agent reads first; docs/reference/output-formats.md has all,
which pass through as they are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import click
from pydantic import BaseModel, ConfigDict, Field

from cachecost.base.errors import ExitCode
from cachecost.commands.catalogue import load_named_commands, project_defaults
from cachecost.commands.diagnostics import exit_code, print_diagnostic

Row = dict[str, Any]
Usd = str
"""A decimal number of USD."""
RANKED_BY = {**dict.fromkeys(("rows", "rewrites", "calls", "findings"), "cost_usd"), "alternatives": "saving_usd"}
"""Lists that are sorted before they are cut, and by what; others keep their order."""
MODEL_FIELDS = ("host", "id", "aliases", "released", "retired", "prices")
RULE_FIELDS = ("minimum_tokens", "context_window", "ttl_s", "accepted_ttls", "maximum_breakpoints", "matching")


class CutList(BaseModel):
    """A list of which only the first rows are shown."""

    field: str
    shown: int
    of: int


class Answer(BaseModel):
    """What every tool answers."""

    model_config = ConfigDict(extra="allow")

    format: int = Field(description="Version of the format.")
    diagnostics: list[str] = Field(description="What the command said besides: files it skipped, what it assumed.")
    cut: list[CutList] = Field(description="Lists that are longer; ask for more rows with `limit`.")


class BillAnswer(Answer):
    """What `cachecost bill --json` prints."""

    billed_usd: Usd
    necessary_usd: Usd
    rewritten_usd: Usd = Field(description="Paid to write again what had been cached.")
    calls: int | list[Row] = Field(description="Their number; with `session`, a row for each of the most expensive.")
    sessions: int
    hit_rate: float | None
    usage: Row
    causes: list[Row] = Field(description="Why tokens were written again, by cost.")
    rows: list[Row]
    rewrites: list[Row]
    advice: list[Row] = Field(description="Changes that would have saved most, with the setting that makes them.")


class ExplainAnswer(Answer):
    """What `cachecost explain --json` prints."""

    calls: int
    cost_usd: Usd | None
    avoidable_usd: Usd | None
    findings: list[Row] = Field(description="Each avoidable cost: `code` (cachecost://codes/CODE), `cost_usd`, `fix`.")


class ExplainAnswers(BaseModel):
    """One explanation of a log; of a scenario, one for each strategy."""

    explanations: list[ExplainAnswer]


class NextAnswer(Answer):
    """What `cachecost next --json` prints."""

    at: str
    is_warm: bool
    cost_usd: Usd | None
    usage: Row
    cold: Row
    alternatives: list[Row]
    compaction: Row | None
    keep_alive: Row | None
    session: Row


class WhatIfAnswer(Answer):
    """What `cachecost whatif --json` prints."""

    calls: int
    cost_usd: Usd | None
    alternatives: list[Row] = Field(description="Largest saving first; `supported` says whether the data allow it.")


class LintAnswer(Answer):
    """What `cachecost lint --json` prints."""

    requests: int
    findings: list[Row]


class ModelsAnswer(Answer):
    """What `cachecost models --json` prints; without `model`, the main fields of each row."""

    models: list[Row]


def cut_answer(answer: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """`answer` with no list longer than `limit`, and `cut`, which names those that were."""
    made, cut = dict(answer), []
    for name, rows in answer.items():
        if not isinstance(rows, list) or len(rows) <= limit:
            continue
        by = RANKED_BY.get(name)  # rows without a price last, in their order
        ranked = sorted(rows, key=lambda row: -float(row.get(by) or 0)) if by else rows
        made[name] = ranked[:limit]
        cut.append({"field": name, "shown": limit, "of": len(rows)})
    return made | {"cut": cut}


def brief_model(row: Row) -> Row:
    """The main fields of a model: its rules are 2 kB, and a host has dozens of models."""
    return {name: row[name] for name in MODEL_FIELDS} | {name: row["rules"][name] for name in RULE_FIELDS}


class NoAnswer(Exception):
    """A command that printed no answer; the text is what it printed to stderr."""


def run_for_json(name: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """The objects that `cachecost NAME --json WORDS` prints, each with its diagnostics, as `diagnostics`.

    Not for two threads at once: it takes the place of stdout and stderr. Raises CommandFailed.
    """

    def run() -> Any:
        """Words of click without its lines about usage, which are of no use to an agent."""
        ((_, command),) = load_named_commands([name])
        project = project_defaults(name, command)
        context: dict[str, Any] = {"default_map": project.defaults, "obj": project}
        try:
            return command.main(["--json", *words], f"cachecost {name}", None, standalone_mode=False, **context)
        except click.ClickException as error:
            print_diagnostic(error.format_message())
            return ExitCode.INVALID_INPUT

    out, err = _stream(), _stream()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(run)
    printed = _text(err).splitlines()
    answers, text, at = [], "" if code == ExitCode.INTERNAL_ERROR else _text(out), 0
    while at < len(text):  # one JSON value after another
        answer, at = json.JSONDecoder().raw_decode(text, at)
        answers.append(answer)
        at += len(text[at:]) - len(text[at:].lstrip())
    if not answers:
        raise NoAnswer("\n".join(printed) or f"cachecost {name} ended with exit code {code}")
    return [{**answer, "diagnostics": printed} for answer in answers]


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode() if isinstance(stream.buffer, io.BytesIO) else ""
