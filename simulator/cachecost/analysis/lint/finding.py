"""A finding of lint, over how many calls it holds, and the codes of lint as data: `codes.toml`, one table a code."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from cachecost.analysis.lint.loaded_request import LAYERS, UNCONFIRMED, Confirmation
from cachecost.base.structs import replace

Severity = Literal["error", "warning", "note"]
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
    explains_as: Mapping[str, str]

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
    """Every code of lint, by its id, in order. A row names one code of explain for all layers, or one for each."""
    text = files("cachecost.analysis.lint").joinpath("codes.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)
    for row in rows.values():
        named = row["explains_as"]
        row["explains_as"] = {layer: named if isinstance(named, str) else named[layer] for layer in LAYERS}
    return {code: LintCode(code, **row) for code, row in rows.items()}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One fault of a request, or between a request and the one after it.

    `path` is as the API writes paths: `tools.3`, `system.1`, `messages.4.content.0`. `tokens` is what it is about:
    how many are written again, never cached, missing … (None: not known). `offset` counts characters from 0 in the
    text at `path`, `excerpt` is that text around it. `request` says which input it is in, `call` the first call of
    a log that has it (from 1), `calls` how many have; then `tokens` are the most in any of them. `digest` is that of
    the block. `session`, `file` and `line` are those of the call; "", "" and None outside a log, or if it has none.
    `bill` is "confirmed" where the call's bill shows what the finding says, "" where there is no bill or it shows
    nothing of the kind; what a bill refutes is no finding.
    """

    code: str
    path: str
    message: str
    tokens: int | None = None
    offset: int | None = None
    excerpt: str = ""
    request: str = ""
    call: int | None = None
    calls: int = 1
    digest: bytes = b""
    session: str = ""
    file: str = ""
    line: int | None = None
    bill: Confirmation = UNCONFIRMED

    @property
    def about(self) -> LintCode:
        """What the code means, in general."""
        return codes()[self.code]

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def severity(self) -> Severity:
        return self.about.severity

    @property
    def why(self) -> str:
        return self.about.why

    @property
    def fix(self) -> str:
        return self.about.fix

    @property
    def source(self) -> str:
        return self.about.source

    @property
    def explains_as(self) -> str:
        """The code under which `explain` prices this in a log; "" for what no log can show."""
        return self.about.explained_at(self.path)

    @property
    def is_note(self) -> bool:
        return self.severity == "note"

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same finding in another call: the code, the log, and where it is; messages move on."""
        place = "messages" if self.path.startswith("messages.") else self.path
        return self.code, "" if self.call is None else self.request, place


def sort_findings(found: Iterable[LintFinding]) -> list[LintFinding]:
    """The worst first; of equal severity that with more tokens."""

    def rank(one: LintFinding) -> tuple[int, int, str, str, str, int]:
        return SEVERITIES.index(one.severity), -(one.tokens or 0), one.code, one.path, one.request, one.call or 0

    return sorted(found, key=rank)


def merge_findings(found: Iterable[LintFinding]) -> list[LintFinding]:
    """Equal findings of several calls as one: that of the first call, the most tokens, how many calls have it.

    `found` come call by call. Two findings of one call stay two.
    """
    groups: dict[tuple[tuple[str, str, str], int], list[LintFinding]] = {}
    met: Counter[tuple[tuple[str, str, str], str, int | None]] = Counter()
    for one in found:
        met[one.key, one.request, one.call] += 1
        groups.setdefault((one.key, met[one.key, one.request, one.call]), []).append(one)
    return sort_findings(
        replace(
            group[0],
            tokens=max((one.tokens for one in group if one.tokens is not None), default=None),
            calls=len(group),
        )
        for group in groups.values()
    )
