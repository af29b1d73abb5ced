"""`cachecost lint`: static checks of requests, and of consecutive requests."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.errors import Fault, InputError, exit_code
from cachecost.commands import options
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.workloads import print_left_out
from cachecost.providers.hosts import AUTO_HOST

if TYPE_CHECKING:
    from cachecost.analysis.lint import LintFinding, RequestLoader
    from cachecost.providers.rules import RuleBook

STDIN = "-"
LARGEST_BODY = 64 << 20
"""A larger file is a log: the API takes no more than 32 MB."""
MOST_PATHS = 3
"""Recordings that a command in the output names; more of them are LOG…"""
IN_LOGS = frozenset({"request", "kind", "custom_id", "log", "interactions", "response", "url", "timestamp"})
"""Keys that a recording has and a body has not."""


@click.command(cls=CheckedCommand)
@click.argument(
    "requests",
    metavar="REQUEST...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, allow_dash=True),
)
@options.format_option
@options.skip_option
@options.counter_option
@options.option(
    "--margin",
    "Warn if fewer than this many further blocks would put the last breakpoint out of reach.  [default: 3]",
    click.IntRange(0),
)
@options.csv_option
@options.json_option
@options.shared_options
def lint(
    requests: tuple[Path, ...],
    format_: str,
    may_skip: bool,
    tokens: str,
    margin: int | None,
    csv_file: Path | None,
    as_json: bool,
    shared: options.SharedOptions,
) -> int:
    """Check requests without simulating a cache: what the API refuses, and what costs money.

    REQUEST is a JSON file with a request body of the Messages API (or Bedrock's Converse, or another API with
    breakpoints), - for stdin, a recording in any known format, or a folder of such
    files. Several bodies are taken as consecutive requests, several recordings as one stream of calls in time order.
    The exit code is 1 if anything is refused or costs money; notes alone exit with 0.
    """
    from cachecost.analysis.lint import MARGIN
    from cachecost.views.lint import lint_object, print_lint

    linting = _LintRun(shared.setup.rules, shared.host, tokens, MARGIN if margin is None else margin, format_)
    findings = linting.findings(requests)
    as_object = lint_object(findings, linting.requests)
    options.write_rows(csv_file, as_object["findings"])
    if as_json:
        options.print_json(as_object, indent=2)
    else:
        print_lint(findings, linting.requests, sys.stdout, linting.pricing_command())
    is_costly = any(not finding.is_note for finding in findings)
    code = exit_code(check_failed=is_costly, not_evaluated=linting.left_out)
    return options.code_with_skipped(linting.skipped, may_skip, code)


@dataclass(slots=True)
class _LintRun:
    """One run of the command; counts the requests that were checked, and those that could not be."""

    rules: RuleBook
    host: str
    tokens: str
    margin: int
    format_: str
    requests: int = 0
    left_out: int = 0
    faults: list[Fault] = field(default_factory=list)
    skipped: list[Fault] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)
    """The recordings and folders as they were named."""
    recorded_calls: int = 0

    def findings(self, paths: Sequence[Path]) -> list[LintFinding]:
        """The findings of all bodies, as one sequence, and of all recordings. Raises InputError with all errors."""
        from cachecost.analysis.lint import lint_bodies, sort_findings
        from cachecost.conversations.logs import NO_LOGS, expand_folders

        files = [path for path in paths if str(path) == STDIN]
        files += expand_folders([path for path in paths if str(path) != STDIN])
        if not files:
            raise InputError([Fault(str(path), NO_LOGS) for path in paths])
        bodies: list[tuple[str, dict[str, Any]]] = []
        logs = []
        for path in files:
            try:
                if (body := _read_body(path)) is None:
                    logs.append(path)
                else:
                    bodies.append((_display_name(path), body))
            except InputError as error:
                self.faults += error.faults
        self.recordings = logs if bodies else list(paths)
        is_single = bool(self.faults) or files == list(paths[:1])
        groups = [[path] for path in logs] if is_single else [logs] if logs else []
        found = [one for group in groups for one in self._log_findings(group, is_single)]
        loader = self._loader()
        self.requests += len(bodies)
        faults = [fault for label, body in bodies for fault in body_faults(loader, body, label)]
        self.faults += faults
        if self.faults:
            raise InputError(self.faults)
        return sort_findings([*found, *lint_bodies(bodies, loader, self.margin)])

    def pricing_command(self) -> str:
        """The command that prices what was found in recordings; "" where there are none with several calls."""
        if self.recorded_calls < 2:
            return ""
        paths = [str(path) for path in self.recordings]
        host, form = "" if self.host == AUTO_HOST else self.host, "" if self.format_ == "auto" else self.format_
        shown = shlex.join([*paths[:MOST_PATHS], *options.option_words({"--host": host, "--format": form})])
        return f"cachecost explain {shown}" if len(paths) <= MOST_PATHS else "cachecost explain LOG…"

    def _loader(self) -> RequestLoader:
        from cachecost.analysis.lint import RequestLoader

        return RequestLoader(self.rules, self.host, self.tokens)

    def _log_findings(self, paths: Sequence[Path], is_single: bool) -> list[LintFinding]:
        from cachecost.analysis.lint import lint_log
        from cachecost.conversations.logs import Logs, read_logs

        logs = Logs(paths, self.format_, print_diagnostic, may_skip_all=not is_single)
        label = str(paths[0]) if len(paths) == 1 else ""
        try:
            with options.reading_bar(paths):
                log = lint_log(read_logs(logs), label, self._loader(), self.margin)
        except InputError as error:
            self.faults += error.faults
            return []
        self.skipped = logs.skipped
        self.requests += log.requests
        self.recorded_calls += log.requests
        for why, calls in log.not_evaluated.items():
            self.left_out += len(calls)
            numbers = ", ".join(map(str, calls[:5])) + (f" … ({len(calls):,} in all)" if len(calls) > 5 else "")
            which = f"{'call' if len(calls) == 1 else 'calls'} {numbers}"
            print_diagnostic(f"{logs.name}: not checked: {which}: {why}")
        print_left_out(log.left_out, "lint")
        return log.findings


def _read_body(path: Path) -> dict[str, Any] | None:
    """The body of a request in a file; None if it is a recording. Raises InputError if it is neither."""
    from cachecost.base.limits import OutOfLimits, json_value, read_at_most, read_whole
    from cachecost.conversations.readers.apis.formats import api_of
    from cachecost.conversations.readers.common.peek import top_keys

    is_piped, name = str(path) == STDIN, _display_name(path)
    if not is_piped and path.stat().st_size > LARGEST_BODY:
        return None
    data = read_at_most(sys.stdin.buffer, "stdin", LARGEST_BODY) if is_piped else read_whole(path, LARGEST_BODY)
    try:
        value = json_value(data)
    except UnicodeDecodeError:
        value = None
    except OutOfLimits as error:
        raise InputError([Fault(name, str(error))]) from None
    except json.JSONDecodeError as error:
        if not is_piped and error.msg == "Extra data":  # text after a complete value means JSON Lines
            return None
        keys = set(top_keys(data))
        if not is_piped and ("messages" not in keys or IN_LOGS & keys):
            return None
        what = f"expected a Messages API body; got damaged JSON ({error.msg})"
        raise InputError([Fault(name, what, error.lineno, error.colno)]) from None
    if isinstance(value, dict) and not IN_LOGS & set(value) and (is_piped or api_of(value)):
        return value
    if is_piped:
        raise InputError([Fault(name, "expected a Messages API body, a JSON object; recordings are files")])
    return None


def body_faults(loader: RequestLoader, body: dict[str, Any], label: str) -> Sequence[Fault]:
    try:
        loader.body(body, label)
    except InputError as error:
        return error.faults
    return ()


def _display_name(path: Path) -> str:
    return "stdin" if str(path) == STDIN else str(path)
