"""The host of a call: what its recording says, else the address, the id of the message, `--host`, the model's name.

What of each names which host is in hosts.toml. An address that nobody knows is a host without rules and prices, and
named as it is written, unless `--host` says what is behind it.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from re import Pattern

FILE = Path(__file__).with_name("hosts.toml")
AUTO_HOST = "auto"
"""What `--host` is where nobody gave one."""
DEFAULT_HOST = "anthropic"
"""The host of a model that nobody knows, so that the nearest name can be shown."""
NEVER = re.compile(r"(?!)")
MACHINE = re.compile(r"[a-z\d.-]+|\[[\da-f:.]+\]")
"""What a machine's name is made of; what a recorder wrote in its place often is not."""
LOCAL = re.compile(
    r"[^.]*|.*\.(local|localhost|internal)|(127|10|0)\.[\d.]+|192\.168\.[\d.]+|172\.(1[6-9]|2\d|3[01])\.[\d.]+"
)
"""Machines of one's own: a proxy there says nothing of who serves a model behind it."""
WINDOW = re.compile(r"\[\w+\]$")
"""How Claude Code writes a context window behind a model's name ("[1m]")."""


@dataclass(frozen=True, slots=True)
class HostNames:
    """A table of hosts.toml."""

    providers: frozenset[str]
    addresses: Pattern[str]
    message_ids: Pattern[str]
    ids: Pattern[str]
    models: Pattern[str]
    open_models: Pattern[str]
    claude: str | None
    others: str | None


@cache
def host_names() -> dict[str, HostNames]:
    """Every host that hosts.toml names."""

    def pattern(text: str | None) -> Pattern[str]:
        return NEVER if text is None else re.compile(text)

    return {
        host: HostNames(
            frozenset((_plain(host), *row.get("providers", ()))),
            pattern(row.get("addresses")),
            pattern(row.get("message_ids")),
            pattern(row.get("ids")),
            pattern(row.get("models")),
            pattern(row.get("open_models")),
            row.get("claude"),
            row.get("others"),
        )
        for host, row in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
    }


def host_of(stated: str | None, default: str, model: str) -> str:
    """The host of a call. `stated` is what was recorded of it, `default` what `--host` says (AUTO_HOST: nothing)."""
    if stated and (default == AUTO_HOST or stated in host_names()):
        return stated
    return default if default != AUTO_HOST else host_of_model(model) or DEFAULT_HOST


@lru_cache(maxsize=4096)
def host_of_model(model: str) -> str:
    """The host that a model's name shows: one that alone writes ids so, a gateway's prefix, its maker; "" for none."""
    return (
        next((host for host, names in host_names().items() if names.ids.fullmatch(model)), "")
        or parse_model_name(model)[1]
        or maker_of(model)
    )


@lru_cache(maxsize=4096)
def maker_of(model: str) -> str:
    """The host of a model's maker; "" for a model of another maker."""
    name = WINDOW.sub("", model).rpartition("/")[2].lower()
    return next((host for host, names in host_names().items() if names.models.fullmatch(name)), "")


def host_of_provider(provider: str, model: str = "") -> str | None:
    """The host of a provider as tracers, gateways and agents name it; None for one that is unknown."""
    name = _plain(provider)
    found = next((host for host, names in host_names().items() if name in names.providers), None)
    return serving_host(found, model) if found else None


def host_of_message(message: str) -> str | None:
    """The host that an answer's id shows."""
    return next((host for host, names in host_names().items() if names.message_ids.fullmatch(message)), None)


def host_at(address: str, model: str = "") -> str | None:
    """The host at a machine ("api.z.ai", with a port or not); its own name where nobody knows it.

    None where it shows nothing: a proxy on a machine of one's own, unless a model whose weights are public may run
    there, or an address that was taken out of a recording.
    """
    name = re.sub(r":\d*$", "", address.rpartition("@")[2]).lower()
    found = next((host for host, names in host_names().items() if names.addresses.fullmatch(name)), None)
    if found:
        return serving_host(found, model) or name
    maker = host_names().get(maker_of(model))
    is_open = maker is not None and maker.open_models.fullmatch(own_name(model).lower()) is not None
    return name if MACHINE.fullmatch(name) and (is_open or not LOCAL.fullmatch(name)) else None


def serving_host(host: str, model: str) -> str | None:
    """The host that serves the model where its provider has two; None where it cannot be this one."""
    names, maker = host_names().get(host), maker_of(model)
    if names is None or not model:
        return host
    instead = names.claude if maker == "anthropic" or "claude" in model else names.others
    return host if instead is None else instead or None


def parse_model_name(model: str, provider: str = "") -> tuple[str, str | None]:
    """(the model's own id, the host that the provider or a prefix of the id names).

    The host is None where neither names it: a gateway's prefix with the model's maker says who made it.
    """
    known = host_of_provider(provider)
    head, _, rest = model.partition("/")
    of_head = host_of_provider(head) if rest else None
    if rest and (of_head or _plain(head) == _plain(provider)):
        model = rest
        if known is None and of_head != maker_of(rest):
            known = of_head
    if known == "bedrock":
        at = model.find("arn:")  # an ARN is an id; else what stands before it is a route and a region
        model = model[at:] if at >= 0 else model.rpartition("/")[2]
    elif known == "openrouter":
        model = model.rpartition("/")[2]
    return model, serving_host(known, model) if known else None


def own_name(model: str) -> str:
    """A model's name without a gateway's prefix and a context window."""
    return WINDOW.sub("", model).rpartition("/")[2]


def _plain(provider: str) -> str:
    return provider.strip().lower().replace("-", "_").replace(" ", "_")
