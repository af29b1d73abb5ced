"""The codes of lint as data: `codes.toml`, one table a code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
LAYERS = ("tools", "system", "messages")
ByLayer = Mapping[str, str]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first. error: the API refuses. warning: it costs money. note: nothing is lost for sure."""


@dataclass(frozen=True, slots=True)
class LintCode:
    """What a code means, in general: what, why, the fix, who says so, and which code of explain prices it in a log.

    `explains_as` has that code by the layer that the finding is in; "" for none.
    """

    code: str
    name: str
    severity: Severity
    what: str
    why: str
    fix: str
    source: str
    explains_as: ByLayer

    @property
    def explain_codes(self) -> list[str]:
        """The codes of explain, each once, in the order of the layers."""
        return [code for code in dict.fromkeys(self.explains_as.values()) if code]

    def explained_at(self, path: str) -> str:
        """The code of explain for a finding at `path`; a parameter of the request stands in no layer, as if in the
        messages.
        """
        layer = path.partition(".")[0]
        return self.explains_as[layer if layer in LAYERS else LAYERS[-1]]


@cache
def codes() -> Mapping[str, LintCode]:
    """Every code of lint, by its id, in order."""
    text = files("cachecost.analysis.lint").joinpath("codes.toml").read_text(encoding="utf-8")
    return {code: LintCode(code, **{**row, "explains_as": _by_layer(row)}) for code, row in tomllib.loads(text).items()}


def _by_layer(row: Mapping[str, Any]) -> ByLayer:
    """One code for all layers, or one for each."""
    named = row["explains_as"]
    return {layer: named if isinstance(named, str) else named[layer] for layer in LAYERS}
