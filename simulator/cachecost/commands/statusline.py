"""`cachecost statusline` and `cachecost hook`, as help and reference show them. They are run without click."""

from __future__ import annotations

import click

from cachecost.commands.hook_run import LEAST_TOKENS, LEAST_USD, TOKENS_VARIABLE, USD_VARIABLE
from cachecost.commands.hook_run import main as run_hook
from cachecost.commands.output_paths import CheckedCommand
from cachecost.commands.statusline_run import FORMAT_VARIABLE
from cachecost.commands.statusline_run import main as run_statusline
from cachecost.views.next.words import DEFAULT_FORMAT, FIELDS


@click.command(cls=CheckedCommand)
@click.option(
    "--format",
    "form",
    metavar="TEXT",
    help=f"The line, with fields in braces: {', '.join(FIELDS)}.  "
    f"[default: {FORMAT_VARIABLE}, else '{DEFAULT_FORMAT}']",
)
def statusline(form: str | None) -> int:
    """Print one line for Claude Code's status line: the cache, the next message warm and cold, dollars.

    Reads Claude Code's JSON on stdin and what was added to the session's transcript. Set it in Claude Code's settings:
    "statusLine": {"type": "command", "command": "cachecost statusline"}. It always ends with exit code 0.
    """
    return run_statusline(["--format", form] if form is not None else [])


@click.command(cls=CheckedCommand)
@click.option(
    "--least-usd", metavar="USD", help=f"Silent below so many dollars.  [default: {USD_VARIABLE}, else {LEAST_USD}]"
)
@click.option(
    "--least-tokens",
    metavar="N",
    help=f"Silent below so many tokens written again.  [default: {TOKENS_VARIABLE}, else {LEAST_TOKENS:,}]",
)
@click.option("--block", is_flag=True, help="Stop an expensive message or /compact once; ask before a model switch.")
def hook(least_usd: str | None, least_tokens: str | None, block: bool) -> int:
    """Warn before an expensive message, compaction, resume or model switch (a hook of Claude Code).

    Reads the JSON of Claude Code's hooks on stdin: UserPromptSubmit, PreCompact, SessionStart (resume) and
    PreModelSwitch. The sentence is shown to you and never sent to the model. Silent otherwise; the exit code is 0.
    """
    named = {"--least-usd": least_usd, "--least-tokens": least_tokens}
    words = [word for name, value in named.items() if value is not None for word in (name, value)]
    return run_hook([*words, *(["--block"] if block else [])])
