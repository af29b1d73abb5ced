"""Recorded calls as samples for a fit: what was sent, what was billed for it, and who recorded it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.analysis.fidelity.validation import is_held_out, name_in_source
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden, Renderer
from cachecost.prompts.request import Breakpoint, NotAMessage, Request
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.tokens.parts import parts_of
from cachecost.tokens.textcounter import TextCounter

HOST = "anthropic"


@dataclass(frozen=True, slots=True)
class Sample:
    """One recorded call. `total` is its billed prompt length, `cached` that up to the last breakpoint (0 if nothing
    was), `read_and_1h` that up to the last 1h breakpoint (None unless the bill tells); `blocks` are those rendered,
    in order.
    """

    source: str
    request: Request
    rules: ModelRules
    blocks: tuple[Block, ...]
    total: int
    cached: int
    read_and_1h: int | None

    @property
    def generation(self) -> str:
        return self.rules.generation

    @property
    def has_format(self) -> bool:
        config = self.request.params.get("output_config") or {}
        return bool(config.get("format") or self.request.params.get("output_format"))


class Nothing:
    """A counter that counts nothing: rendering without tokenizing."""

    name = "nothing"
    source = ""
    error_margin = 0.0

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        return 0

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


@dataclass
class Samples:
    """Reads logs; each distinct prompt once. `left_out` says how many rows were not taken, by reason.

    Rows of recordings that are held out of every fit are left out; with `only_held_out`, all others are.
    """

    only_held_out: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    _intake: Intake = field(default_factory=lambda: Intake(keep_content=True))
    _rules: RuleBook = field(default_factory=RuleBook)
    _renderer: Renderer = field(default_factory=lambda: Renderer(Nothing()))
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    def read(self, logs: Iterable[Path]) -> list[Sample]:
        """The samples of all logs, in order. A row: {"source"?, "request", "usage", "redacted"?}. Raises InputError."""
        return [sample for log in logs for row in self._part(log) for sample in self._take(row, log.stem)]

    def _part(self, log: Path) -> Iterator[Mapping[str, Any]]:
        """The rows of one part of a log, which may hold those of many recorded files."""
        for row in read_rows(log):
            if is_held_out(row_name(row, log)) == self.only_held_out:
                yield row
            else:
                self.left_out[OTHER_PART[self.only_held_out]] += 1

    def _take(self, row: Mapping[str, Any], name: str) -> Iterator[Sample]:
        try:
            request = self._intake.body(row["request"])
            rules = self._rules.rules(HOST, request.model)
        except NotAMessage:
            self.left_out["no Messages request"] += 1
        except CannotEvaluate:
            self.left_out["unknown model"] += 1
        else:
            yield from self._sample(row, name, request, rules)

    def _sample(self, row: Mapping[str, Any], name: str, request: Request, rules: ModelRules) -> Iterator[Sample]:
        blocks = rendered(self._renderer.render(request, (), rules).end)
        reason = _unfit(row, blocks) or self._repeated(request)
        if reason:
            self.left_out[reason] += 1
            return
        read, write, plain = (row["usage"].get(key) or 0 for key in USAGE)
        split = row["usage"].get("cache_creation") or {}
        five, hour = (split.get(f"ephemeral_{ttl}_input_tokens") or 0 for ttl in ("5m", "1h"))
        source = str(row.get("source") or name)
        yield Sample(
            source, request, rules, blocks, read + write + plain, read + write, read + hour if five and hour else None
        )

    def _repeated(self, request: Request) -> str:
        params = {key: value for key, value in request.params.items() if key != "max_tokens"}
        head = (request.model, request.tools.digest, request.system.digest, request.thread)
        key = (*head, json.dumps(params, sort_keys=True))
        if key in self._seen:
            return "the same prompt again"
        self._seen.add(key)
        return ""


OTHER_PART = {False: "held out of the fit", True: "used for the fit"}
"""Why a row is left out, by whether only those that are held out are read."""


def row_name(row: Mapping[str, Any], log: Path) -> str:
    """The name of the recording that a row is of: its `file` in its `source`, else that of the log."""
    source, file = row.get("source"), row.get("file")
    return name_in_source(source, file) if isinstance(source, str) and isinstance(file, str) else log.name


USAGE = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")


def read_rows(log: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a log. Raises InputError for one without request and usage."""
    for number, line in enumerate(log.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield _row(log, number, line)


def _row(log: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not all(isinstance(row.get(name), dict) for name in ("request", "usage")):
        raise InputError([Fault(str(log), 'expected a JSON object with "request" and "usage"', number)])
    return row


def rendered(end: Prefix) -> tuple[Block, ...]:
    """The blocks of the prompt that `end` ends."""
    blocks: list[Block] = []
    node: Prefix | None = end
    while node is not None:
        if node.block is not None:
            blocks.append(node.block)
        node = node.parent
    return tuple(reversed(blocks))


def _unfit(row: Mapping[str, Any], blocks: Iterable[Block]) -> str:
    """Why a bill says nothing about our tokens; "" where it does."""
    body = row["request"]
    if row.get("redacted"):
        return "text altered by the recorder"
    if body.get("container") or body.get("mcp_servers") or len(row["usage"].get("iterations") or ()) > 1:
        return "server side work"
    if any("input_schema" not in tool or tool.get("defer_loading") for tool in body.get("tools") or ()):
        return "tools that the provider defines, or loads later"
    if any(map(is_emptied, blocks)):
        return "thinking taken out by the recorder"
    kinds = sorted({block.kind for block in blocks if _is_guessed(block)})
    return f"no rule counts: {', '.join(kinds)}" if kinds else ""


def _is_guessed(block: Block) -> bool:
    return block.content is not None and "guessed" in parts_of(block.kind, block.content).facts


def is_emptied(block: Block) -> bool:
    """Thinking with neither a text nor a signature that could hold one: the recorder took them out."""
    if not block.is_thinking or block.content is None:
        return False
    parts = parts_of(block.kind, block.content)
    return not any(parts.texts) and not parts.facts


def parallel_runs(blocks: Iterable[Block]) -> int:
    """How many runs of two or more tool results there are: the results of parallel calls."""
    kinds = ["", "", *(block.kind for block in blocks)]
    triples = zip(kinds, kinds[1:], kinds[2:], strict=False)
    return sum(first != second == third == "tool_result" for first, second, third in triples)


def length(sample: Sample, counter: TextCounter) -> int:
    """Predicted tokens of the whole prompt."""
    return Renderer(counter).render(sample.request, (), sample.rules).total_tokens


def length_to(sample: Sample, breakpoint: Breakpoint, counter: TextCounter) -> int:
    """Predicted tokens up to `breakpoint`."""
    return Renderer(counter).render(sample.request, (breakpoint,), sample.rules).breakpoints[0].prefix.tokens
