"""The commands as help shows them, so that help need not import them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import click


class CommandPlace(NamedTuple):
    """Where a command is, as `module:function` in `cachecost.commands`, and the first sentence of its help."""

    place: str
    summary: str


COMMAND_GROUPS = {
    "Start": {
        "bill": CommandPlace(
            "bill:bill",
            "Show what sessions cost, which of it was spent re-caching cached content, and why.",
        ),
        "demo": CommandPlace(
            "demo:demo",
            "Show the bill of a demo session with the change that pays, and a comparison of designs.",
        ),
        "view": CommandPlace(
            "view:view",
            "Look around sessions in the browser: each call's prompt, what was written again and why, and what if.",
        ),
        "import": CommandPlace(
            "importing:import_",
            "Convert logs of any known format to recordings.",
        ),
        "replay": CommandPlace(
            "replay:replay",
            "Predict the usage and cost of each call of LOG.",
        ),
        "explain": CommandPlace(
            "explain:explain",
            "Find the avoidable cost of LOG or SCENARIO.yaml: each cause, where it occurs and its dollars.",
        ),
        "check": CommandPlace(
            "check:check",
            "Check the costs of scenarios against their budgets and baselines.",
        ),
        "serve": CommandPlace(
            "serve:serve",
            "Serve simulated APIs on this machine, to see what the caching of a client costs.",
        ),
    },
    "While you work": {
        "next": CommandPlace(
            "next_message:next_",
            "Show what the next message of a session costs, until when its cache is warm, and what a change would do.",
        ),
        "watch": CommandPlace(
            "watch:watch",
            "Show a running session as it goes on: its calls, until when the cache is warm, the next message, alarms.",
        ),
        "statusline": CommandPlace(
            "statusline:statusline",
            "Print one line for Claude Code's status line: the cache, the next message warm and cold, dollars.",
        ),
        "hook": CommandPlace(
            "statusline:hook",
            "Say one sentence before an expensive message, compaction, resume or model switch, as a hook.",
        ),
        "mcp": CommandPlace(
            "mcp:mcp",
            "Answer agents over the Model Context Protocol: bill, explain, next_message, what_if, lint_request, "
            "models.",
        ),
    },
    "Design": {
        "run": CommandPlace(
            "run:run",
            "Simulate every strategy of SCENARIO.yaml, compare their costs and write a report.",
        ),
        "strategies": CommandPlace(
            "listings:strategies",
            "List the strategies by name: what they do, who uses them, and when that was checked.",
        ),
        "sweep": CommandPlace(
            "sweep:sweep",
            "Compute the cost of every strategy of SCENARIO.yaml at each point of a grid.",
        ),
        "optimize": CommandPlace(
            "optimize:optimize",
            "Find the cheapest legal breakpoints, TTLs, keep-alives and pre-warming for LOG or SCENARIO.yaml.",
        ),
        "whatif": CommandPlace(
            "whatif:whatif",
            "Price alternative ways to send LOG: TTLs, keep-alives, breakpoints, models, hosts, batches "
            "and compaction.",
        ),
    },
    "Prove": {
        "validate": CommandPlace(
            "validate:validate",
            "Compare the predicted usage of each call of LOG with its billed usage.",
        ),
        "record": CommandPlace(
            "record:record",
            "Record the calls between a client and the API, with their billed usage and times.",
        ),
        "live": CommandPlace(
            "live:live",
            "Send the strategies of SCENARIO.yaml to the real API, and compare predicted with billed usage.",
        ),
        "lint": CommandPlace(
            "lint:lint",
            "Check requests without simulating a cache: what the API refuses, and what costs money.",
        ),
    },
    "Look up and manage": {
        "models": CommandPlace(
            "listings:models",
            "List the models of a host with their rules and prices (USD per 10^6 tokens) on one day.",
        ),
        "rules": CommandPlace(
            "listings:rules",
            "List every rule by host and model: its value, the days it applies, and its source.",
        ),
        "recording": CommandPlace(
            "recording:recording",
            "Concatenate, cut and split recordings.",
        ),
        "config": CommandPlace(
            "config:config",
            "Show the settings in force, and where each comes from: a settings file, the environment or the defaults.",
        ),
        "init": CommandPlace(
            "init:init",
            "Write a scenario and a GitHub workflow to DIR (default: the current folder).",
        ),
    },
}
"""By heading and name."""


def load_named_commands(names: Iterable[str]) -> Iterator[tuple[str, click.Command]]:
    """Commands and subcommands by the words that call them, "recording cut"."""
    places = {name: row.place for rows in COMMAND_GROUPS.values() for name, row in rows.items()}
    for name in names:
        first, *rest = name.split()
        command: Any = load_command(places[first])
        yield name, command.commands[rest[0]] if rest else command


def load_command(place: str) -> click.Command:
    """The command at a place of the catalogue; imports its module."""
    module, _, name = place.partition(":")
    command: click.Command = getattr(import_module(f"cachecost.commands.{module}"), name)
    return command
