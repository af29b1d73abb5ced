"""The page of settings files: what the tables of option classes, click and the list of variables say."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cachecost.commands.catalogue import load_named_commands
from cachecost.configuration.project_settings import (
    GENERAL,
    REFUSED,
    REFUSED_VALUES,
    RULES_AND_PRICES,
    SETTABLE,
    keys_for,
)
from cachecost.configuration.variables import VARIABLES
from tools.reference.markdown import code, prose, table

HEAD = """# Configuration

A settings file holds the defaults of a project: `[tool.cachecost]` in pyproject.toml, or cachecost.toml with the same
keys without `tool.cachecost`. Commands read the one in the current folder, else in the nearest folder above it, up to
the folder with `.git` or the home folder, but none that belongs to another user (root and the owner of the current
folder aside). A pyproject.toml without the table does not count; both in one folder are an error.

```toml
[tool.cachecost]
scenarios = "evals/cache"          # what `cachecost check` and `pytest --cachecost` check
reports = "evals/reports"
host = "bedrock"
as-of = 2026-03-07
prices = "our-prices.toml"         # paths start at the folder of this file
sessions-per-day = 40

[tool.cachecost.rule]              # or rule = ["ttl_in_key=true"]
ttl_in_key = true

[tool.cachecost.volumes]           # sessions a day of one scenario, by its name
my-agent = 400

[tool.cachecost.bill]              # options of one command
by = "project"

[tool.cachecost.recording.cut]
session = "main"
```

- **What wins:** the command line, then the environment, then the file, then the built-in default. `cachecost config`
  shows what the file states, and `cachecost config --all` every option with its value and where it comes from.
- **Names** are those of the options, with hyphens or underscores. An unknown key or a wrong value is an error with file
  and line, and exit code 2. Every command reports unknown keys; it checks the values it uses, `cachecost config` all.
- **Lists:** a repeatable option takes a list. Given on the command line, it replaces the whole list.
- **On and off:** `true` or `false`. To run a command once as if there were no file, set `CACHECOST_CONFIG=off`.
- **A key of a command** wins over the key for all commands.
- **Scenarios:** `host`, `prices`, `as-of`, `tokens` and `rule` hold for a scenario that does not state its own
  (`rules:` in a scenario wins name by name). `rules`, a rules file, is for logs only. `live` uses none of them.
- **Help** shows the built-in defaults. `statusline`, `hook`, `mcp` itself, `init` and `--help` read no file.
- **Python:** `import cachecost` reads no settings file.

"""
SAFE = """## What a file cannot set

A settings file comes with a repository and is read without being asked for. So it can change figures and how they are
shown, and nothing else: no option that writes, sends, runs or confirms anything. `reports` must be within the folder of
the file, and nothing is written there but by `run` and `check --update`.

"""
OWN = (
    "A key has the name and the values of its option in [commands](commands.md). A flag is `true` or `false`, a "
    "repeatable option a list."
)


def page() -> str:
    """The page: keys for all commands, those of each, what a file cannot set, and the variables."""
    general = table(("key", "what", "commands"), map(_general_row, GENERAL))
    own = table(("table", "keys"), (_own_row(name, command) for name, command in load_named_commands(SETTABLE)))
    refused = table(("why", "options"), _refused_rows())
    variables = table(
        ("variable", "what", "default"), ((code(one.name), prose(one.purpose), one.default) for one in VARIABLES)
    )
    sections = [f"## Keys for all commands\n\n{general}", f"## Keys of one command\n\n{OWN}\n\n{own}"]
    return HEAD + "\n".join([*sections, f"{SAFE}{refused}", f"## Environment variables\n\n{variables}"])


def _general_row(key: str) -> tuple[str, str, str]:
    names = [name for name in SETTABLE if any(key == one for one, _ in keys_for(name))]
    commands = "all with [these options](commands.md#rules-and-prices)" if key in RULES_AND_PRICES else ", ".join(names)
    return code(key), prose(GENERAL[key]), commands or "check"


def _own_row(name: str, command: click.Command) -> tuple[str, str]:
    options = [option.opts[0].removeprefix("--") for option in command.params if isinstance(option, click.Option)]
    keys = [key for key in options if key in SETTABLE[name] and key not in RULES_AND_PRICES]
    return code(f"[tool.cachecost.{name.replace(' ', '.')}]"), ", ".join(
        map(code, keys)
    ) or "only those for all commands"


def _refused_rows() -> Iterator[tuple[str, str]]:
    """By reason, with the command before its options."""
    found: dict[str, dict[str, list[str]]] = {}
    for (key, value), reason in REFUSED_VALUES.items():
        found.setdefault(reason, {}).setdefault("all", []).append(f"--{key} {value}")
    for name, options in REFUSED.items():
        for key, reason in options.items():
            found.setdefault(reason, {}).setdefault(name, []).append(f"--{key}")
    for reason, commands in found.items():
        yield prose(reason), "; ".join(f"{name} {', '.join(map(code, keys))}" for name, keys in commands.items())
