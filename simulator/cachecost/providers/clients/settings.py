"""What a person can set in a client that changes the cost of caching, and the TTL that follows from it.

Rows hold from a version of the client on; where it places its message breakpoints is for recordings that lack them. No
settings are read here: the caller passes the files as parsed JSON, and the environment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import msgspec

FOLDER = Path(__file__).parent


class ClientSetting(msgspec.Struct, frozen=True):
    """One thing that a person can set: its `key` in a settings file, its environment `variable`, or both.

    `type` is flag, choice (of `values`), number or text. `since` is the version of the client that first knows it.
    """

    name: str
    type: str
    since: str
    source: str
    does: str
    key: str = ""
    variable: str = ""
    frontmatter: str = ""
    values: tuple[str, ...] = ()


class SettingsFile(msgspec.Struct, frozen=True):
    """A kind of settings file, and where it is on each platform."""

    scope: str
    paths: tuple[str, ...]
    source: str


class TTLStep(msgspec.Struct, frozen=True):
    """One step of the order in which the TTL is decided. `origin` is environment, settings or frontmatter."""

    reason: str
    main: str
    side: str
    origin: str
    ttl: str = ""
    host: str = ""


class SubscriptionTTL(msgspec.Struct, frozen=True):
    """The TTL on a subscription where no step decides, from a version on."""

    since: str
    main: str
    side: str
    source: str


class MessageBreakpoints(msgspec.Struct, frozen=True):
    """From a version on: how many messages, from the last one back, have a breakpoint on their last block."""

    since: str
    count: int
    source: str


class PartialOutput(msgspec.Struct, frozen=True):
    """What the record of an answer says of its output tokens, where those were recorded before it was complete."""

    bytes_per_token: float
    margin: float
    source: str


class ClientFault(msgspec.Struct, frozen=True):
    """A reported fault of the client that makes it pay again, and the losses that have its form.

    `since` and `last` are the oldest and the newest version in which it was seen, `mended_in` the first without it ("":
    none is known). The cache breaks at one of `places`, or the loss has such a cause, after one of the events of
    `after` (none: whatever stands before), on one of `models` (none: any).
    """

    report: str
    date: str
    title: str
    since: str
    last: str
    places: tuple[str, ...]
    mended_in: str = ""
    after: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"as in {self.report.partition('/')[2]}{f', mended in {self.mended_in}' if self.mended_in else ''}"


class ClientSettings(msgspec.Struct, frozen=True):
    """The table of a client. Settings files are in their order of precedence, the one that wins first."""

    client: str
    date: str
    sources: Mapping[str, str]
    settings: Mapping[str, ClientSetting]
    files: tuple[SettingsFile, ...]
    ttl_steps: tuple[TTLStep, ...]
    subscription_ttls: tuple[SubscriptionTTL, ...]
    partial_output: PartialOutput
    message_breakpoints: tuple[MessageBreakpoints, ...]
    faults: tuple[ClientFault, ...]


TTL_SCOPES = {"main_ttl": "the main conversation", "side_ttl": "sub-agents"}


def ttl_words(ttl: str, setting: str) -> str:
    """What setting a TTL does, in the words of every command."""
    return f"a {ttl} TTL for {TTL_SCOPES[setting]}"


@cache
def client_settings(name: str = "claude_code") -> ClientSettings:
    """The table of a client, by the name of its file."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return ClientSettings(
        table["data"]["client"],
        table["data"]["date"].isoformat(),
        {key: f"{row['title']} ({row['date'].isoformat()})" for key, row in table["sources"].items()},
        {row["name"]: ClientSetting(**_frozen(row)) for row in table["setting"]},
        tuple(SettingsFile(**_frozen(row)) for row in table["settings_file"]),
        tuple(TTLStep(**_frozen(row | {"origin": row["from"]}, "from")) for row in table["ttl_step"]),
        tuple(SubscriptionTTL(**row) for row in table["subscription_ttl"]),
        PartialOutput(**table["partial_output"]),
        tuple(MessageBreakpoints(**row) for row in table["message_breakpoints"]),
        tuple(ClientFault(**_frozen(row | {"date": row["date"].isoformat()})) for row in table["fault"]),
    )


def _frozen(row: Mapping[str, Any], *without: str) -> dict[str, Any]:
    items: Iterable[tuple[str, Any]] = ((key, item) for key, item in row.items() if key not in without)
    return {key: tuple(item) if isinstance(item, list) else item for key, item in items}


NUMBERS = re.compile(r"\d{1,9}")
LATEST = (10**9,)
"""Stands for a client that does not state its version: it is taken for the newest."""


Row = TypeVar("Row", SubscriptionTTL, MessageBreakpoints)


@lru_cache(maxsize=1024)
def version_key(version: str | None) -> tuple[int, ...]:
    """The numbers of "2.1.330", for comparison; `LATEST` where there are none."""
    numbers = tuple(map(int, NUMBERS.findall((version or "").split("-")[0])))
    return numbers or LATEST


def row_at(rows: Iterable[Row], version: str | None) -> Row | None:
    """The row that holds at `version`: the latest that began by then. Rows may stand in any order."""
    key = version_key(version)
    begun = [row for row in rows if version_key(row.since) <= key]
    return max(begun, key=lambda row: version_key(row.since), default=None)


@cache
def message_breakpoints(version: str | None, name: str = "claude_code") -> int:
    """How many messages of a request have a breakpoint; an unknown version is the newest."""
    rows = client_settings(name).message_breakpoints
    return (row_at(rows, version) or rows[0]).count


FAULTS_OF = {"claude-code": "claude_code"}
"""The tables of clients, by the names of the readers of their sessions."""


def find_fault(client: str, version: str, model: str, place: str, before: Collection[str]) -> ClientFault | None:
    """The known fault of a client whose losses have this form: the version, the place, and what stands before. The
    first of the table; None where none fits or the version is not known."""
    key = version_key(version)
    if client not in FAULTS_OF or key == LATEST:
        return None
    for row in client_settings(FAULTS_OF[client]).faults:
        ends_before = key < version_key(row.mended_in) if row.mended_in else key <= version_key(row.last)
        if not ends_before or key < version_key(row.since) or place not in row.places:
            continue
        if (not row.after or not set(row.after).isdisjoint(before)) and (not row.models or model in row.models):
            return row
    return None


TRUE = ("1", "true", "yes", "on")
"""The spellings of a set flag in an environment, in any case."""
FALSE = ("0", "false", "no", "off")
ClientTTL = Literal["5m", "1h"]
SettingValue = bool | int | float | str
DISABLED = "disabled"
"""The reason that `effective_ttl` gives where caching is turned off."""
SIZE = re.compile(r"(\d{1,10})([km]?)", re.IGNORECASE)
"""A number of tokens as the client takes it: 200000, 200k, 1m."""
THOUSANDS = {"": 1, "k": 1000, "m": 1_000_000}


class EffectiveTTL(NamedTuple):
    """The TTL of a request and what decided it; None where caching is turned off."""

    ttl: ClientTTL | None
    reason: str


def merge_environment(settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that the client sees: the `env` of its settings wins over that of its process."""
    own = settings.get("env")
    items = own.items() if isinstance(own, Mapping) else ()
    return {**environment, **{key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in items}}


def effective_ttl(
    settings: Mapping[str, Any],
    environment: Mapping[str, str],
    is_main: bool,
    is_subscription: bool,
    version: str | None = None,
    *,
    agent_ttl: object = None,
    has_extra_usage: bool = False,
    host: str = "anthropic",
    model: str = "",
) -> EffectiveTTL:
    """The TTL that Claude Code asks for, and which step of its order decided.

    `settings` are the merged settings files, `environment` that of the process; an unknown `version` is the newest.
    `is_main` is the main conversation of a session; sub-agents, compaction and titles are not. `agent_ttl` is the
    `experimental.cacheTtl` of an agent. `has_extra_usage` is a subscription beyond its included usage.
    """
    table = client_settings()
    variables = merge_environment(settings, environment)
    families = ("", *model.lower().split("-"))
    for name, row in table.settings.items():
        family = name.removeprefix("disable_caching").removeprefix("_") if name.startswith("disable_caching") else None
        if family in families and _knows(row, version) and variable_value(row, variables) is True:
            return EffectiveTTL(None, DISABLED)
    for step in table.ttl_steps:
        row = table.settings[step.main if is_main else step.side]
        if step.host not in ("", host) or not _knows(row, version):
            continue
        if step.origin == "frontmatter":
            found: SettingValue | None = _allowed(row, agent_ttl) if isinstance(agent_ttl, str) else None
        else:
            found = variable_value(row, variables) if step.origin == "environment" else key_value(row, settings)
        if step.ttl:
            found = step.ttl if found is True else None
        is_refused = step.origin == "frontmatter" and found == "1h" and is_subscription and has_extra_usage
        if found and not is_refused:
            return EffectiveTTL(cast("ClientTTL", found), step.reason)
    default = row_at(table.subscription_ttls, version) if is_subscription and not has_extra_usage else None
    ttl = cast("ClientTTL", (default.main if is_main else default.side) if default else "5m")
    return EffectiveTTL(ttl, "subscriber" if ttl == "1h" else "default")


def messages_ttl(ttl: ClientTTL, environment: Mapping[str, str], version: str | None = None) -> ClientTTL:
    """The TTL of the breakpoint in the messages, where that of the request is `ttl`."""
    row = client_settings().settings["messages_ttl"]
    found = variable_value(row, environment) if _knows(row, version) else None
    return cast("ClientTTL", found) if found is not None else ttl


def variable_value(row: ClientSetting, environment: Mapping[str, str]) -> SettingValue | None:
    """The value of the row's environment variable; None where it is not set or not valid."""
    text = environment.get(row.variable, "").strip() if row.variable else ""
    if not text:
        return None
    if row.type == "flag":
        return True if text.lower() in TRUE else False if text.lower() in FALSE else None
    size = SIZE.fullmatch(text) if row.type == "number" else None
    return int(size[1]) * THOUSANDS[size[2].lower()] if size else _allowed(row, text)


def key_value(row: ClientSetting, settings: Mapping[str, Any]) -> SettingValue | None:
    """The value of the row's key in the settings; None where it is not set or not valid."""
    found = settings.get(row.key) if row.key else None
    if row.type == "flag":
        return found if isinstance(found, bool) else None
    if row.type == "number" and isinstance(found, int | float) and not isinstance(found, bool):
        return found
    return _allowed(row, found) if isinstance(found, str) else None


def _knows(row: ClientSetting, version: str | None) -> bool:
    return version_key(version) >= version_key(row.since)


def _allowed(row: ClientSetting, text: str) -> str | None:
    return text if text in row.values or row.type == "text" else None
