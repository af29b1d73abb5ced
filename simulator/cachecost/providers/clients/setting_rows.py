"""The table of a client: what a person can set in it, its settings files, and the order that decides the TTL."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.structs import value

FOLDER = Path(__file__).parent


@value
class ClientSetting:
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


@value
class SettingsFile:
    """A kind of settings file, and where it is on each platform."""

    scope: str
    paths: tuple[str, ...]
    source: str


@value
class TTLStep:
    """One step of the order in which the TTL is decided. `origin` is environment, settings or frontmatter."""

    reason: str
    main: str
    side: str
    origin: str
    ttl: str = ""
    host: str = ""


@value
class SubscriptionTTL:
    """The TTL on a subscription where no step decides, from a version on."""

    since: str
    main: str
    side: str
    source: str


@value
class MessageBreakpoints:
    """From a version on: how many messages, from the last one back, have a breakpoint on their last block."""

    since: str
    count: int
    source: str


@value
class PartialOutput:
    """What the record of an answer says of its output tokens, where those were recorded before it was complete."""

    bytes_per_token: float
    margin: float
    source: str


@value
class ClientSettings:
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
    )


def _frozen(row: Mapping[str, Any], *without: str) -> dict[str, Any]:
    items: Iterable[tuple[str, Any]] = ((key, item) for key, item in row.items() if key not in without)
    return {key: tuple(item) if isinstance(item, list) else item for key, item in items}
