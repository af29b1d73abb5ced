"""How a host spells model ids, and the endpoint (and so the price) that an id names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from cachecost.base.structs import value

ANY_ENDPOINT = "*"


@value
class Naming:
    """The ids of a host. `pattern` has the groups `model` and, where ids have them, `endpoint` and `version`.

    `endpoints` maps an endpoint ("us", "global"; "*" for any other) to the price modifiers it implies;
    `default` is the endpoint of an id that names none; `spelling` writes an id that names another.
    """

    pattern: re.Pattern[str]
    spelling: str
    default: str
    endpoints: Mapping[str, tuple[str, ...]]
    spellings: Mapping[str, str] = field(default_factory=dict)
    """As `spelling`, for models whose name begins so."""

    def read(self, name: str) -> tuple[str, str] | None:
        """The model's own name and the endpoint in `name`; None if this host has no such ids."""
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        groups = found.groupdict()
        endpoint = groups.get("endpoint") or self.default
        return (_dated_id(groups), endpoint) if self._knows(endpoint) else None

    def write(self, model: str, endpoint: str) -> str:
        """The id of `model` at `endpoint`: its own name at the default one. `read` understands it."""
        own = (spelling for start, spelling in self.spellings.items() if model.startswith(start))
        spelling = next(own, self.spelling)
        return model if endpoint == self.default else spelling.format(model=model, endpoint=endpoint)

    def modifiers(self, endpoint: str) -> tuple[str, ...]:
        """The price modifiers of `endpoint`."""
        return self.endpoints.get(endpoint, self.endpoints.get(ANY_ENDPOINT, ()))

    def _knows(self, endpoint: str) -> bool:
        return endpoint in self.endpoints or ANY_ENDPOINT in self.endpoints


def naming_of(data: Mapping[str, Any]) -> Naming:
    """The [naming] table of a rule file."""
    endpoints = {name: tuple(modifiers) for name, modifiers in data["endpoints"].items()}
    return Naming(re.compile(data["pattern"]), data["spelling"], data["default"], endpoints, data.get("spellings", {}))


def _dated_id(groups: Mapping[str, str | None]) -> str:
    """Anthropic writes `claude-opus-4-5@20251101` as claude-opus-4-5-20251101; @default names no day."""
    model, version = groups["model"] or "", groups.get("version") or ""
    return f"{model}-{version}" if version.isdigit() else model
