"""Runs a command in this process and keeps what it prints."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import click

from cachecost.base.errors import ExitCode
from cachecost.commands.catalogue import COMMAND_GROUPS, load_command, project_defaults
from cachecost.commands.diagnostics import exit_code, print_diagnostic

PLACES = {name: row.place for rows in COMMAND_GROUPS.values() for name, row in rows.items()}


class NoAnswer(Exception):
    """A command that printed no answer; the text is what it printed to stderr."""


def run_for_json(name: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """The objects that `cachecost NAME --json WORDS` prints, each with its diagnostics, as `diagnostics`.

    Not for two threads at once: it takes the place of stdout and stderr. Raises CommandFailed.
    """

    def run() -> Any:
        """Words of click without its lines about usage, which are of no use to an agent."""
        command = load_command(PLACES[name])
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
