"""The settings of a project as its file states them: names checked, values not yet.

tomllib gives lines only for syntax errors, so the line of each table and key is found here. Which options a settings
file may set is a table, with the reason for the others; values become the words that a command line would have. Some
hold for scenarios that do not state them themselves, some say where scenarios are and where reports go.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.limits import MOST_ERRORS, MOST_NUMBER
from cachecost.base.toml_text import read_toml_text
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.configuration.discovery import MOST_BYTES, OWN, SHARED, FoundFiles, may_be_ours
from cachecost.providers.assumptions import read_assumptions

KeyPath = tuple[str, ...]
"""The names that lead to a table or key."""
TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<newline>\n)|(?P<other>[^\"'#\[\]{}\n]+)",
    re.DOTALL,
)
BARE = re.compile(r"[A-Za-z0-9_.-]+")
HEADER = re.compile(r"\s*\[\[?(.*?)\]\]?\s*", re.DOTALL)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line of each table and key, by the names that lead to it. `text` is valid TOML.

    The keys of an inline table stand on the line of the key that it is the value of; they have no entry.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        if header := HEADER.fullmatch(statement) if statement.lstrip().startswith("[") else None:
            table = _names(header[1])
            lines.setdefault(table, line)
        else:
            end = re.match(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^=\"'])*", statement)
            lines.setdefault(table + _names(end[0] if end else statement), line)
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key, or of the nearest value around it."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The first line and the text of each table header and each `key = value`, without comments."""
    line, begun, depth, parts = 1, 1, 0, list[str]()
    for token in TOKEN.finditer(text):
        kind, found = token.lastgroup, token[0]
        depth += (kind == "open") - (kind == "close")
        if not "".join(parts[:1]).strip():
            begun, parts = line, []
        if kind == "newline" and depth == 0:
            if "".join(parts[:1]).strip():
                yield begun, "".join(parts)
            parts = []
        elif kind != "comment":
            parts.append(found)
        line += found.count("\n")
    if "".join(parts).strip():
        yield begun, "".join(parts)


def _names(key: str) -> KeyPath:
    bare = key.strip()
    if BARE.fullmatch(bare):
        return tuple(bare.split("."))
    value: Any = tomllib.loads(f"{bare} = 0")
    names: list[str] = []
    while isinstance(value, dict):
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)


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

WORKERS = {"backend": CONNECTS, "scheduler": CONNECTS, "worker-timeout": CONNECTS, "jobs": PROCESSES}
REFUSED: Mapping[str, Mapping[str, str]] = {
    "bill": {"apply": WRITES, "yes": CONFIRMS, "html": WRITES, "csv": WRITES, **WORKERS},
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
    "sweep": {**dict.fromkeys(("grid", "draw", "set"), OVERRIDES), **WORKERS, "out": WRITES, "resume": WRITES},
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


MOST_COUNT = 999_999_999
"""Sessions a day of one scenario, as `check --volume` takes them."""
MOST_WORD = 4096
"""Characters of a value; a longer path is none."""


class WrongValue(ValueError):
    """What was expected of a value, and what it is."""


def flag_of(value: Any) -> bool:
    """The value of an option that is on or off. Raises WrongValue."""
    if not isinstance(value, bool):
        raise WrongValue(f"expected true or false; got {show_value(value)}")
    return value


def words_of(value: Any, is_list: bool) -> list[str]:
    """The words of an option: one, or any number if it `is_list`. Raises WrongValue."""
    if isinstance(value, list):
        if not is_list:
            raise WrongValue(f"expected one value; got {show_value(value)}")
        return [word_of(one) for one in value]
    return [word_of(value)]


def assignments_of(value: Any) -> list[str]:
    """NAME=VALUE words of a table, a list or one text. Raises WrongValue."""
    if not isinstance(value, dict):
        return words_of(value, is_list=True)
    return [f"{name}={str(one).lower() if isinstance(one, bool) else word_of(one)}" for name, one in value.items()]


def word_of(value: Any) -> str:
    """A text, number or day as it is written on a command line. Raises WrongValue."""
    if isinstance(value, str):
        if "\0" in value or len(value) > MOST_WORD:
            raise WrongValue(f"expected a text of at most {MOST_WORD:,} characters, without a null character")
        return value
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise WrongValue(f"expected a text or a number; got {show_value(value)}")
    if (isinstance(value, Decimal) and not value.is_finite()) or not -MOST_NUMBER <= value <= MOST_NUMBER:
        raise WrongValue(f"expected a number from {-MOST_NUMBER:,} to {MOST_NUMBER:,}; got another")
    return str(value)


def count_of(value: Any) -> int:
    """Sessions a day: a whole number from 1. Raises WrongValue."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_COUNT:
        raise WrongValue(f"expected a whole number from 1 to {MOST_COUNT:,}; got {show_value(value)}")
    return value


def show_value(value: Any) -> str:
    """A value in an error: short, and in TOML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, int) and abs(value) > MOST_NUMBER:
        return "a larger number"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


TABLE = ("tool", "cachecost")


class Setting(NamedTuple):
    """A key of the file: the command of its table ("": all commands), its name with hyphens, and its way there."""

    command: str
    key: str
    value: Any
    way: tuple[str, ...]


class ProjectSettings:
    """The settings of one file. Without a file there are none."""

    def __init__(self, path: Path | None = None, text: str = "", table: Mapping[str, Any] | None = None) -> None:
        """`table` is ours in the file `path`, whose text is `text`. Raises InputError for names that are not known."""
        self.path = path
        self._text = text
        self._faults: list[Fault] = []
        self.settings = tuple(self._read_top(table or {}))
        if self._faults:
            raise InputError(sorted(self._faults, key=lambda fault: fault.line or 0))

    @property
    def folder(self) -> Path:
        """The folder that paths in the file start at."""
        return self.path.parent if self.path else Path()

    def of(self, command: str) -> Iterator[tuple[str, Setting]]:
        """(option, setting) of a command: those of its own table, and those for all commands that it does not have."""
        own = {one.key: one for one in self.settings if one.command == command}
        general = {one.key: one for one in self.settings if one.command == ALL}
        shared = {option: general[key] for key, option in keys_for(command) if key in general}
        yield from ({**shared, **own} if command else general).items()

    def general(self, key: str) -> Setting | None:
        """A key for all commands."""
        return next((one for one in self.settings if one.command == ALL and one.key == key), None)

    def line(self, setting: Setting) -> int | None:
        """The line of a setting."""
        return line_of(self._lines, setting.way)

    def place(self, setting: Setting) -> str:
        """The file and line of a setting, as errors have them."""
        return f"{self.path}:{self.line(setting)}"

    def volumes(self) -> list[Setting]:
        """Sessions a day by scenario."""
        return [one for one in self.settings if one.command == VOLUMES]

    def fault(self, setting: Setting, message: str) -> Fault:
        """What is wrong with the value of a setting."""
        return self._fault(setting.way, message)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return key_lines(self._text)

    def _fault(self, way: tuple[str, ...], message: str) -> Fault:
        return Fault(str(self.path), f"{'.'.join(way)}: {message}", line_of(self._lines, way))

    def _report(self, way: tuple[str, ...], message: str) -> None:
        self._faults.append(self._fault(way, message))

    def _entries(self, table: Mapping[str, Any], way: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
        """(key with hyphens, way, value) of a table, as long as there are not too many errors."""
        seen = set[str]()
        for name, value in table.items():
            key, inner = name.replace("_", "-"), (*way, name)
            if key in seen:
                self._report(inner, f"is set twice, as {key.replace('-', '_')} and as {key}")
            if len(self._faults) >= MOST_ERRORS:
                return
            seen.add(key)
            yield key, inner, value

    def _read_top(self, table: Mapping[str, Any]) -> Iterator[Setting]:
        groups = {name.split()[0] for name in commands()}
        top = TABLE if self.path and self.path.name == SHARED else ()
        for key, way, value in self._entries(table, top):
            if key == VOLUMES and isinstance(value, dict):
                yield from (Setting(VOLUMES, name, number, (*way, name)) for name, number in value.items())
            elif key == VOLUMES:
                self._report(way, "expected a table, SCENARIO = SESSIONS PER DAY a line")
            elif key in GENERAL and not (key in groups and isinstance(value, dict)):
                yield from self._allowed(Setting(ALL, key, value, way))
            elif key in groups:
                yield from self._read_command(key, way, value)
            elif where := [command for command in commands() if key in SETTABLE.get(command, ())]:
                self._report(way, f"is not for all commands; set it in the table of one: {', '.join(where)}")
            elif reasons := {refused[key] for refused in REFUSED.values() if key in refused}:
                self._report(way, f"cannot be set in a file: {reasons.pop()}")
            else:
                self._report(way, f"unknown key{_named(key, [*GENERAL, VOLUMES, *sorted(groups)])}")

    def _allowed(self, setting: Setting) -> Iterator[Setting]:
        """The setting, unless only the command line may have its value."""
        reason = REFUSED_VALUES.get((setting.key, setting.value)) if isinstance(setting.value, str) else None
        if reason:
            self._report(setting.way, f"{setting.value} cannot be set in a file: {reason}")
        else:
            yield setting

    def _read_command(self, command: str, way: tuple[str, ...], table: Any) -> Iterator[Setting]:
        if not isinstance(table, dict):
            self._report(way, f"expected a table, [{'.'.join(way)}]")
            return
        subcommands = {one.partition(" ")[2] for one in commands() if one.startswith(f"{command} ")}
        for key, inner, value in self._entries(table, way):
            if key in subcommands:
                yield from self._read_command(f"{command} {key}", inner, value)
            elif reason := REFUSED.get(command, {}).get(key):
                self._report(inner, f"cannot be set in a file: {reason}")
            elif key in SETTABLE.get(command, ()):
                yield from self._allowed(Setting(command, key, value, inner))
            elif key in (*GENERAL, VOLUMES):
                self._report(inner, "is for all commands; set it at the top")
            elif known := [*SETTABLE.get(command, ()), *sorted(subcommands)]:
                self._report(inner, f"unknown key{_named(key, known)}")
            else:
                self._report(inner, "unknown key; nothing of this command is set in a file")


def read_settings(found: FoundFiles) -> ProjectSettings:
    """The settings of the nearest file that has any. Raises InputError."""
    for files in found.folders:
        own: list[tuple[Path, str, Mapping[str, Any]]] = []
        for path in files:
            if path.is_file() and not may_be_ours(path):
                continue
            value, text = read_toml_text(path, MOST_BYTES)
            table: Any = value
            if path.name == SHARED:
                tool = value.get("tool", {})
                table = tool.get("cachecost") if isinstance(tool, dict) else None
                if table is not None and not isinstance(table, dict):
                    line = line_of(key_lines(text), TABLE)
                    raise InputError([Fault(str(path), f"{'.'.join(TABLE)}: expected a table", line)])
            if table is not None:
                own.append((path, text, table))
        if len(own) > 1:
            both = f"{OWN} and [{'.'.join(TABLE)}] of {SHARED} both hold settings"
            raise InputError([Fault(str(path), f"{both}; keep one of them") for path, _, _ in own])
        if own:
            return ProjectSettings(*own[0])
    return ProjectSettings()


def _named(key: str, known: list[str]) -> str:
    """The nearest known name, and all of them where none is near."""
    return nearest(key, known) or f"; expected one of {', '.join(known)}"


KEYS = {"host": "host", "prices": "prices", "as-of": "as_of", TOKENS: "tokens"}
"""Keys for all commands, and the keys of a scenario that win over them. Those of `rule` are `rules`."""


def scenario_defaults_of(project: ProjectSettings, environment: Mapping[str, str]) -> dict[Way, PlacedValue]:
    """Values by their way in a scenario, with their places in the file; paths from the current folder.

    Raises InputError.
    """
    made, faults = dict[Way, PlacedValue](), []
    for setting in filter(None, map(project.general, (*KEYS, RULE))):
        if environment.get(OVERRULING.get(setting.key, "")):
            continue
        place: dict[Way, SourcePlace] = {(): SourcePlace(str(project.path), project.line(setting))}
        try:
            if setting.key != RULE:
                word = word_of(setting.value)
                word = str(project.folder / word) if setting.key == "prices" else word
                made[KEYS[setting.key],] = PlacedValue(word, place)
                continue
            words = assignments_of(setting.value)
            if problem := assumption_problems(words):
                raise WrongValue(problem)
        except WrongValue as error:
            faults.append(project.fault(setting, str(error)))
            continue
        read, _ = read_assumptions(dict(word.split("=", 1) for word in words))
        made |= {("rules", name): PlacedValue(getattr(read, name), place) for name in sorted(read.given)}
    if faults:
        raise InputError(faults)
    return made


def assumption_problems(words: Sequence[str]) -> str:
    """What is wrong with NAME=VALUE words; empty if nothing is."""
    if bare := [word for word in words if "=" not in word]:
        return f"expected NAME=VALUE; got {bare[0]!r}"
    _, problems = read_assumptions(dict(word.split("=", 1) for word in words))
    return "; ".join(problems.values())


GIT = ".git"


def scenario_files(project: ProjectSettings) -> tuple[Path, ...]:
    """The scenarios that the file names; a folder stands for its *.yaml. Empty where it names none.

    Raises InputError.
    """
    setting = project.general(SCENARIOS)
    if setting is None:
        return ()
    try:
        places = [project.folder / word for word in words_of(setting.value, is_list=True)]
    except WrongValue as error:
        raise InputError([project.fault(setting, str(error))]) from None
    files = tuple(dict.fromkeys(path for place in places for path in _scenarios_at(place)))
    faults = []
    if not places:
        message = "expected a folder of scenarios, or a list of files and folders; got none"
        faults.append(project.fault(setting, message))
    for place in places:
        if place.is_dir() and not _scenarios_at(place):
            faults.append(project.fault(setting, f"expected scenarios (*.yaml) in {place}; there is none"))
        elif not place.exists():
            faults.append(project.fault(setting, f"expected a file or folder; there is no {place}"))
    if faults:
        raise InputError(faults)
    return files


def _scenarios_at(place: Path) -> list[Path]:
    return sorted(place.glob("*.yaml")) if place.is_dir() else [place]


def reports_folder(project: ProjectSettings) -> Path | None:
    """The folder of reports that the file names, for all commands. Raises InputError."""
    setting = project.general("reports")
    try:
        return None if setting is None else folder_within(project, word_of(setting.value))
    except WrongValue as error:
        assert setting is not None
        raise InputError([project.fault(setting, str(error))]) from None


def folder_within(project: ProjectSettings, word: str) -> Path:
    """The folder `word`, which has to be within that of the file: commands write there. Raises WrongValue."""
    place = project.folder / word
    inner, project_folder = place.resolve(), project.folder.resolve()
    if not inner.is_relative_to(project_folder) or GIT in inner.relative_to(project_folder).parts:
        raise WrongValue(f"expected a folder within that of {project.path}, as files are written there; got {word!r}")
    return place
