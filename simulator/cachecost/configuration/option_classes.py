"""Which options a settings file may set, and why not the others.

A settings file comes with a cloned repository, and commands read it without being told to. So it may change what is
computed and how that is shown. It may not make a command write, send, run or pay for anything: the person at the
command line does that. `tests/configuration/test_option_classes.py` holds the tables to the options there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

WRITES = "it writes files"
SENDS = "it decides what is sent to an API, where, and what that may cost"
SPENDING = "the spending limit of `live` is kept by the prices and rules, so they must be those you name"
CONNECTS = "it sends work to other machines"
OVERRIDES = "it can replace any value of a scenario, the command that it runs included; write it in the scenario"
SECRET = "it names a secret"
RUNS_TOOLS = "a client runs the tools that the answers call"
PROCESSES = "it starts processes; how many is a matter of the machine"
RUNS_GIT = "it is passed to git"
CONFIRMS = "it confirms what a person is asked"
UNREAD = "a client waits for this command, so it reads no settings file; set {}"

REFUSED_VALUES: Mapping[tuple[str, object], str] = {("tokens", "count_tokens"): "it sends what is counted to an API"}
"""Values that only the command line sets, by key and value, and why."""
ALL = ""
"""The table of keys for all commands that have such an option."""
SCENARIOS, REPORTS, VOLUMES, RULE, TOKENS = "scenarios", "reports", "volumes", "rule", "tokens"
RULES_AND_PRICES = ("rule", "rules", "prices", "as-of", "host")
LOG = ("format", "skip")

GENERAL: Mapping[str, str] = {
    "host": "Host of logs and scenarios that name none.",
    TOKENS: "Source of token counts, as `--tokens` of replay, explain, optimize and whatif takes it.",
    "prices": "Price file with your own prices.",
    "rules": "Rules file that overrides the built-in rules of logs.",
    RULE: 'Assumptions about open rules: a list of "NAME=VALUE", or a table `[tool.cachecost.rule]`.',
    "as-of": "Day of the rules and prices.",
    "skip": "Skip files that cannot be read.",
    SCENARIOS: "Folder of scenarios, or a list of files and folders: what `check` and `pytest --cachecost` check.",
    REPORTS: "Folder of reports and baselines, within the folder of the settings file.",
    "sessions-per-day": "Sessions a day, for costs a month.",
}
"""The keys at the top, and what each is."""
OVERRULING = {TOKENS: "CACHECOST_TOKENS"}
"""Variables that win over a key of the file."""
TOKENS_AS = {"next": "counter"}
"""Commands whose option for the source of token counts has another name."""

SETTABLE: Mapping[str, tuple[str, ...]] = {
    "bill": (
        *("since", "until", "by", "session", "all-calls", "project", "timezone", "output"),
        *(*LOG, "json", *RULES_AND_PRICES),
    ),
    "view": ("since", "project", "session", "beside", "no-browser", "port", "format", *RULES_AND_PRICES),
    "import": ("content", "round-sizes", *LOG, "source", "licence", "json", *RULES_AND_PRICES),
    "replay": (*LOG, "strategy", "all", "model", "capacity", "tokens", "json", *RULES_AND_PRICES),
    "explain": (*LOG, "strategy", "tokens", "assumptions", "json", *RULES_AND_PRICES),
    "check": ("reports", "sessions-per-day", "fail-under", "json", "github", "badge-shows"),
    "serve": ("port", "clock", "tokens", "first-token", "fault", "seed", "no-bill", *RULES_AND_PRICES),
    "next": ("tokens", "message", "output", "at", "model", "tools", "counter", "format", "json", *RULES_AND_PRICES),
    "watch": ("alarm-usd", "alarm-s", "every", "once", "format", *RULES_AND_PRICES),
    "run": ("no-report", "json", "explain-defaults"),
    "strategies": ("breakpoints", "changes", "json"),
    "sweep": ("seeds", "json", *RULES_AND_PRICES),
    "optimize": (*LOG, "pings", "tokens", "full", "json", *RULES_AND_PRICES),
    "whatif": (*LOG, "jointly", "action", "at", "assumptions", "tokens", "full", "json", *RULES_AND_PRICES),
    "validate": (*LOG, "tokens", "uncalibrated", "assumptions", "json", *RULES_AND_PRICES),
    "record": ("port", "content", "page", "quiet", *RULES_AND_PRICES),
    "live": ("json",),
    "lint": (*LOG, "tokens", "margin", "json", *RULES_AND_PRICES),
    "models": ("json", *RULES_AND_PRICES),
    "rules": ("assumptions", "json", *RULES_AND_PRICES),
    "recording concat": ("format",),
    "recording cut": ("calls", "from", "to", "session", "format"),
}
"""Keys of a command's table, named as its options."""

REFUSED: Mapping[str, Mapping[str, str]] = {
    "bill": {
        "apply": WRITES,
        "yes": CONFIRMS,
        "html": WRITES,
        "csv": WRITES,
        "backend": CONNECTS,
        "scheduler": CONNECTS,
        "worker-timeout": CONNECTS,
        "jobs": PROCESSES,
    },
    "view": {"save": WRITES, "against": RUNS_GIT},
    "import": {"out": WRITES, "force": WRITES, "key": SECRET},
    "replay": {"html": WRITES, "csv": WRITES},
    "explain": {"html": WRITES, "csv": WRITES},
    "check": {
        "set": OVERRIDES,
        **dict.fromkeys(("update", "markdown", "junit", "sarif", "gitlab", "badge", "history"), WRITES),
    },
    "serve": {"record": WRITES, "answers": RUNS_TOOLS},
    "statusline": {"format": UNREAD.format("CACHECOST_STATUSLINE")},
    "hook": {
        "least-usd": UNREAD.format("CACHECOST_HOOK_LEAST_USD"),
        "least-tokens": UNREAD.format("CACHECOST_HOOK_LEAST_TOKENS"),
        "block": "a client waits for this command, so it reads no settings file",
    },
    "mcp": {"root": "it decides what an agent may read, so it is given by who starts the server"},
    "run": {"set": OVERRIDES, "out": WRITES},
    "sweep": {
        "grid": OVERRIDES,
        "draw": OVERRIDES,
        "set": OVERRIDES,
        "backend": CONNECTS,
        "scheduler": CONNECTS,
        "worker-timeout": CONNECTS,
        "jobs": PROCESSES,
        "out": WRITES,
        "resume": WRITES,
    },
    "optimize": {"html": WRITES, "csv": WRITES, "emit": WRITES},
    "whatif": {"csv": WRITES},
    "validate": {"html": WRITES, "out": WRITES, "csv": WRITES},
    "record": {"upstream": SENDS, "insecure": SENDS, "out": WRITES},
    "live": {
        **dict.fromkeys(("max-usd", "strategy", "base-url", "max-output", "pace", "parallel", "retries"), SENDS),
        **dict.fromkeys(("timeout", "beta", "dry-run"), SENDS),
        "set": OVERRIDES,
        "yes": CONFIRMS,
        "out": WRITES,
        "resume": WRITES,
        "rule": SPENDING,
        "prices": SPENDING,
    },
    "lint": {"csv": WRITES},
    "recording concat": {"out": WRITES, "force": WRITES},
    "recording cut": {"out": WRITES, "force": WRITES},
    "recording split": {"out": WRITES},
    "init": {"force": WRITES},
}
"""Options that only the command line sets, and why."""

WITHOUT_SCENARIO_DEFAULTS = ("live",)
"""Commands whose scenarios take nothing from a file, for the reason of `SPENDING`."""
WITHOUT_OPTIONS = ("demo", "recording schema")
NOT_FROM_FILE = {"check": ("volume",), "config": ("all", "json")}
"""Options whose values come from a table of their own (`volumes`), or that say what a settings file does."""


def commands() -> tuple[str, ...]:
    """Every command that has a table, subcommands as "recording cut"."""
    return tuple(dict.fromkeys((*SETTABLE, *REFUSED)))


def reads_settings(command: str) -> bool:
    """Whether a command of the command line, by its first word, has options that a file may set."""
    return any(one.split()[0] == command for one in SETTABLE)


def keys_for(command: str) -> Iterator[tuple[str, str]]:
    """(key of the top, option of the command) of the keys that apply to all commands with such an option."""
    own = SETTABLE.get(command, ())
    for key in GENERAL:
        option = TOKENS_AS.get(command, key) if key == TOKENS else key
        if option in own:
            yield key, option
