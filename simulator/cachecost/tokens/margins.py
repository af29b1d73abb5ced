"""Error margins by content kind (rule 18): how far a count may be off, nine times out of ten.

`margins.toml` and `maker_margins.toml` have them by tokenizer generation and counter, fitted on bills. The margin of a
prompt is the sum of those of its blocks, each by its kind, of a few tokens for what stands around them, and, for makers
whose bills may hold reasoning that no request shows, of some tokens for each answer in it; as a share of the prompt's
tokens. The errors of blocks are taken to have one cause and to add up.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from cachecost.prompts.blocks import THINKING, Block, Prefix, is_server_result, main_kind
from cachecost.prompts.compare import new_prefixes
from cachecost.prompts.render import Prompt, TokenCounter
from cachecost.tokens.calibration import SCRIPTS, script_data
from cachecost.tokens.images import media_data, unseen_margins
from cachecost.tokens.parts import GUESSED, SIZED

LAYER_ERROR = 0.22
"""The relative error, at least, of an estimated length between billed ones: one layer is 10% too long, the next as much
too short (1.1 / 0.9)."""

DATA = "margins.toml"
MAKERS = "maker_margins.toml"
"""Of other makers than Anthropic and OpenAI."""
FITTED = ("text", "tools", "results", "format", "thinking", "image", "pdf", "server", "mcp", "unknown")
"""Text · tool definitions · calls and their results · structured output · reasoning · images · PDFs · server tools and
their results · tools of an MCP server, whose definitions are billed and not in the request · what nothing published
tells."""
UNSEEN = ("unseen_image", "unseen_pdf")
"""What only a URL or a file id names: a range of what was recorded, as bills of single files tell no distribution."""
KINDS = (*FITTED, *SCRIPTS, *UNSEEN)
FILES = ("image", "pdf", *UNSEEN)
MCP = ("mcp_tool_use", "mcp_tool_result")
CALLS = ("tool_use", "tool_result")


class Margins(msgspec.Struct, frozen=True):
    """Relative errors by content kind; `base`, the tokens that any prompt may be off besides, and `answer`, those for
    each run of the assistant's blocks in it.
    """

    base: float
    kinds: Mapping[str, float]
    answer: float = 0.0

    @classmethod
    def uniform(cls, error_margin: float) -> Margins:
        """The same for every kind: of a maker without bills to tell them apart."""
        return cls(0.0, dict.fromkeys((*FITTED, *SCRIPTS), error_margin) | unseen_margins())


def content_kind(block: Block, facts: Mapping[str, int], prose: str) -> str:
    """Which of KINDS a block is, by its own kind, the facts of its content, and the blend of its texts."""
    if block.kind in MCP or "mcp" in facts:
        return "mcp"
    if (is_server_result(block.kind) and block.kind != "tool_result") or block.kind == "server_tool_use":
        return "server"
    if block.kind in THINKING:
        return "thinking"
    sized = {found[3] for fact in facts if (found := SIZED.fullmatch(fact))}
    if sized and GUESSED in facts:
        return "unseen_pdf" if "page" in sized else "unseen_image"
    if sized and not ("page" in sized and "unseen" in facts):
        return "pdf" if "page" in sized else "image"
    if sized or GUESSED in facts:  # of a PDF, characters that nothing could read count
        return "unknown"
    if (main := main_kind(prose)) in SCRIPTS:
        return main
    return "tools" if block.kind == "tool" else "results" if block.kind in CALLS else "text"


def margins_of(generation: str, counter: str, general: float) -> Margins:
    """The margins of a counter, those of tiktoken where its own were not fitted: no counter is less sure. `general` for
    every kind where neither was.
    """
    rows = _rows().get(generation, {})
    row = rows.get(counter, rows.get("tiktoken"))
    margins = script_data()["margin"]
    scripts = margins.get(generation, margins["assumed"]) if counter == "tiktoken" else {}
    if row is None:
        return Margins(0.0, {**Margins.uniform(general).kinds, **scripts})
    scripts = dict.fromkeys(SCRIPTS, row["text"]) | scripts
    pdf = {"pdf": max(row["pdf"], media_data()["pdf"]["error_margin"])}
    kinds = {kind: row[kind] for kind in FITTED} | pdf | unseen_margins() | scripts
    return Margins(row["base"], kinds, row.get("answer", 0.0))


@runtime_checkable
class UnsureCounter(TokenCounter, Protocol):
    """A counter that says how sure it is of each block."""

    margins: Margins

    def block_margin(self, block: Block) -> float:
        """The relative error of the count of `block`."""
        ...


class PromptMargins:
    """The error margins of prompts of one counter; each prefix is looked at once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._general = counter.error_margin
        self._counter = counter if isinstance(counter, UnsureCounter) else None
        self._known: dict[Prefix, float] = {}

    def of(self, prompts: Sequence[Prompt]) -> float:
        """The relative error of the tokens of a call, all its passes together."""
        if self._counter is None:
            return self._general
        margins, doubts = self._counter.margins, []
        for prompt in prompts:
            new, known = new_prefixes(prompt.end, self._known)
            doubt = self._known[known] if known is not None else 0.0
            for node in reversed(new):
                if node.block is not None and node.parent is not None and node.block.digest not in prompt.uncounted:
                    doubt += (node.tokens - node.parent.tokens) * self._counter.block_margin(node.block)
                    doubt += margins.answer if opens_answer(node) else 0.0
                self._known[node] = doubt
            doubts.append(margins.base + margins.kinds["format"] * prompt.format_tokens + doubt)
        tokens = sum(prompt.total_tokens for prompt in prompts)
        return sum(doubts) / tokens if tokens else 0.0


def general_margin(generation: str, counter: str) -> float | None:
    """The relative error that 95 of 100 prompts do not exceed, where it was measured with the margins."""
    row = _rows().get(generation, {}).get(counter, {})
    return float(row["error"]["p95"]) if "error" in row else None


def opens_answer(node: Prefix) -> bool:
    """Whether the last block of a prefix is the first of a run of the assistant's."""
    before = node.parent.block if node.parent is not None else None
    is_answer = node.block is not None and node.block.role == "assistant"
    return is_answer and (before is None or before.role != "assistant")


@cache
def _rows() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    rows: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name in (DATA, MAKERS):
        data = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
        for generation, counters in data["margins"].items():
            rows.setdefault(generation, {}).update(counters)
    return rows
