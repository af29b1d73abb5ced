"""Findings as a dated rules file, which every command reads with --rules FILE. It has no content of prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from cachecost.base.atomic_files import write_whole
from tools.probes.minimum import MINIMUM
from tools.probes.model import ProbeFinding, Value

COMMAND = "python -m tools.probes"
COLUMNS = "start (s since the first call), input, read, write 5m, write 1h, output"


def write(findings: Sequence[ProbeFinding], path: Path, day: date) -> None:
    """Write the rules file of `day` atomically. Raises OSError."""
    write_whole(path, rules_text(findings, day).encode("utf-8"))


def rules_text(findings: Sequence[ProbeFinding], day: date) -> str:
    """The file's text."""
    tables = [_head(findings, day), _assumptions(findings), *_minimums(findings, day), *map(_evidence, findings)]
    return "\n\n".join("\n".join(lines) for lines in tables) + "\n"


def _head(findings: Sequence[ProbeFinding], day: date) -> list[str]:
    calls = sum(len(finding.calls) for finding in findings)
    run = _once(finding.run for finding in findings)
    return [
        f"# Cache behavior measured on {day} by {COMMAND}. Any command reads it with --rules FILE.",
        "# [assumptions] and [[minimum_tokens]] hold what is settled; [[evidence]] lists every question.",
        "",
        "[data]",
        f"host = {_text(_once(finding.host for finding in findings))}",
        f"date = {day}",
        f"model = {_text(_once(finding.model for finding in findings))}",
        f"run = {_text(run)}",
        f"source = {_text(_source(calls, run))}",
    ]


def _source(calls: int, run: str) -> str:
    return f"{COMMAND}, {calls} calls, run {run}"


def _once(values: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _assumptions(findings: Sequence[ProbeFinding]) -> list[str]:
    """The settled assumptions, without those on which models differ."""
    settled = [finding for finding in findings if finding.switch and finding.value is not None]
    values = {finding.switch: {one.value for one in settled if one.switch == finding.switch} for finding in settled}
    kept = {finding.switch: finding for finding in settled if len(values[finding.switch]) == 1}
    return ["[assumptions]", *(_switch(finding) for finding in kept.values())]


def _switch(finding: ProbeFinding) -> str:
    assert finding.value is not None
    sure = f"{finding.agreed} of {finding.rounds} rounds, {len(finding.calls)} calls on {finding.model}"
    return f"{finding.switch} = {_value(finding.value)}  # {sure}"


def _minimums(findings: Sequence[ProbeFinding], day: date) -> Iterator[list[str]]:
    for finding in findings:
        if finding.probe == MINIMUM.name and finding.value is not None:
            yield [
                "[[minimum_tokens]]",
                f"host = {_text(finding.host)}",
                f"model = {_text(finding.model)}",
                f"value = {_value(finding.value)}",
                f"from = {day}",
                f"source = {_text(_source(len(finding.calls), finding.run))}",
            ]


def _evidence(finding: ProbeFinding) -> list[str]:
    return [
        "[[evidence]]",
        f"probe = {_text(finding.probe)}",
        f"model = {_text(finding.model)}",
        f"question = {_text(finding.question)}",
        f"verdict = {_text(finding.verdict)}",
        f"agreed = {finding.agreed}",
        f"rounds = {finding.rounds}",
        f"calls = {len(finding.calls)}",
        f"dollars = {_text(format(finding.dollars.normalize(), 'f'))}",
        f"told = {_text(finding.explanation)}",
        *_billed_rows(finding),
    ]


def _billed_rows(finding: ProbeFinding) -> list[str]:
    rows = []
    for taken in finding.calls:
        usage, after = taken.usage, taken.start - finding.calls[0].start
        tokens = (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens)
        rows.append(f"  [{after:.1f}, {', '.join(map(str, tokens))}],")
    return [f"billed = [  # {COLUMNS}", *rows, "]"] if rows else ["billed = []"]


def _value(value: Value) -> str:
    return _text(value) if isinstance(value, str) else str(value).lower()


def _text(words: str) -> str:
    """A TOML string; JSON's escapes are among TOML's."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")
