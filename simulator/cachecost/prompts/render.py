"""Renders a request to the prompt that the provider hashes: cache keys, thinking, hidden tokens (rules 1-5).

Beside it are the interface of token counters, the context edits and compaction that the server applies before the cache
look-up, and the lengths of prefixes, as counted or as bills say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from json import JSONEncoder
from typing import Any, Protocol

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.blocks import COMPACTION, Block, Layer, Message, Part, Prefix, Thread, digest_of
from cachecost.prompts.compare import prefixes_back
from cachecost.prompts.output_format import (
    effort_asked,
    effort_layer,
    host_cache_keys,
    output_format,
    skills_asked,
    thinking_asked,
)
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.rules import ModelRules

CacheKeys = tuple[str, str, str]
ENCODER = JSONEncoder(separators=(",", ":"))


def cache_keys_of(request: Request, rules: ModelRules) -> CacheKeys:
    """The cache keys of tools, system and messages: what each depends on besides its blocks (rule 2, `keyed_by`)."""
    if rules.keyed_by is not None:
        return host_cache_keys(request, rules, rules.keyed_by)
    params = request.params
    assumptions = rules.assumptions
    tools: list[Any] = [rules.model, params.get("speed") == "fast"]
    system: list[Any] = [
        (request.thread.has_citations or request.system.has_citations),
        skills_asked(request),
        (params.get("output_config") or {}).get("task_budget"),
    ]
    choice = params.get("tool_choice") or {}
    single = choice.get("disable_parallel_tool_use") is True
    kind, name = choice.get("type") or "auto", choice.get("name")
    unkeyed = {"rendered_class": ("auto", "none"), "any_change": ("auto",), "never": (kind,)}
    is_keyed = kind not in unkeyed[assumptions.tool_choice_invalidation]
    messages: list[Any] = [
        [[kind, name] if is_keyed else None, single],
        request.thread.has_image,
        *thread_key(request, rules),
    ]
    where = {"tools": tools, "system": system, "messages": messages}
    where[assumptions.structured_output_at].append(output_format(request.params))
    where[assumptions.thinking_rendered_at].append(thinking_asked(request, rules))
    where[effort_layer(rules)].append(effort_asked(request, rules))
    return ENCODER.encode(tools), ENCODER.encode(system), ENCODER.encode(messages)


def thread_key(request: Request, rules: ModelRules) -> tuple[str, ...]:
    """The message thread, where its messages are not shared with other requests; else nothing."""
    thread = request.message_thread
    return (thread.id,) if thread is not None and thread.id and rules.thread_reads == "system" else ()


class CannotCount(CannotEvaluate):
    """A block that has neither content nor the counts this counter needs. The text says what to do."""


class Hidden(msgspec.Struct, frozen=True):
    """Hidden prompt tokens by place (rule 4), in tokens.

    `tools`, `system`, `messages` come at the start of that layer; `turn` before the first block
    of each run of equal roles; `parallel` before the second of a run of tool results (results of
    parallel calls are rendered with their names); `tail` after the last block, so never read or
    written. `after_results` come after a run of tool results: they are cached with the block after the
    run, or belong to `tail` (negative: that many more are cached with the run). With `each_message`, `turn` comes
    before every message, also where the one before it has the same role. `format` says how many of all these are the
    prompt of a structured output.
    """

    tools: int = 0
    system: int = 0
    messages: int = 0
    turn: int = 0
    tail: int = 0
    parallel: int = 0
    after_results: int = 0
    each_message: bool = False
    format: int = 0


NOTHING_HIDDEN = Hidden()


class TokenCounter(Protocol):
    """Counts blocks for one tokenizer generation.

    `name` is what `--tokens` calls it, `source` one phrase for reports, `error_margin` the relative error
    (0.031 is ±3.1 %) at the 95th percentile of its measurements; 0.0 is exact.
    """

    name: str
    source: str
    error_margin: float

    def block(self, block: Block) -> int:
        """Tokens of `block` alone, without its breakpoint. Raises CannotCount if the block has neither content nor
        counts.
        """
        ...

    def shared(self, one: Block, other: Block) -> int:
        """The tokens that two blocks of one kind and role both begin with; 0 where one has no content."""
        ...

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden prompt tokens of `request`.

        Of its messages they depend on nothing but `thread_traits`.
        """
        ...


def thread_traits(thread: Thread) -> tuple[bool, str, str]:
    """What of the messages decides how many hidden tokens there are: citations, and how the last message ends."""
    last = thread.message
    if last is None:
        return thread.has_citations, "", ""
    return thread.has_citations, last.role, last.blocks[-1].kind if last.blocks else ""


CLEAR_TOOLS, CLEAR_THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"
TRIGGER_TOKENS, KEPT_TOOL_USES = 100_000, 3
"""The API's defaults, of the type's own date: another default would be another type."""
PLACEHOLDER_TOKENS = 12
"""What stands for a cleared result; its length is not published: an assumption."""


def edits_of(request: Request) -> list[Mapping[str, Any]]:
    """The requested edits, as sent."""
    edits = (request.params.get("context_management") or {}).get("edits")
    return [edit for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else []


def apply_edits(
    request: Request, breakpoints: tuple[Breakpoint, ...], prompt_tokens: int
) -> tuple[Request, tuple[Breakpoint, ...]]:
    """The request and its breakpoints after the edits; `prompt_tokens` is its length before them."""
    thoughts: set[int] = set()  # messages whose thinking is removed, by number from 1
    results: set[tuple[int, int]] = set()  # (message, block) of removed results
    for edit in edits_of(request):
        if edit.get("type") == CLEAR_THINKING:
            thoughts.update(_find_cleared_thinking(request.thread, edit))
        elif edit.get("type") == CLEAR_TOOLS and _is_due(request.thread, edit, prompt_tokens):
            keep = edit.get("keep")
            kept = int(keep.get("value", KEPT_TOOL_USES)) if isinstance(keep, Mapping) else KEPT_TOOL_USES
            results.update(list(_results(request.thread))[kept:])
    if not thoughts and not results:
        return request, breakpoints
    thread, places = request.thread.root, dict[Thread, Thread]()
    for node in list(request.thread.back())[::-1]:
        assert node.message is not None
        blocks = tuple(_blocks_after_edits(node, thoughts, results))
        thread = places[node] = thread.then(Message.of(node.message.role, blocks)) if blocks else thread
    moved = []
    for one in breakpoints:
        if one.layer is Layer.MESSAGES and one.node is not None:
            before = one.node.message_blocks[: one.index] if one.node.length in thoughts else ()
            gone = sum(block.is_thinking for block in before)
            one = replace(one, node=places[one.node], index=one.index - gone)
        moved.append(one)
    return replace(request, thread=thread, breakpoints=tuple(moved)), tuple(moved)


def _blocks_after_edits(node: Thread, thoughts: set[int], results: set[tuple[int, int]]) -> Iterator[Block]:
    for index, block in enumerate(node.message_blocks):
        if (node.length, index) in results:
            digest = digest_of(block.role, block.kind, b"cleared:" + block.digest)
            yield Block(block.kind, block.role, digest, PLACEHOLDER_TOKENS * 4, tokens=PLACEHOLDER_TOKENS)
        elif not (block.is_thinking and node.length in thoughts):
            yield block


def since_compaction(request: Request, breakpoints: tuple[Breakpoint, ...]) -> tuple[Request, tuple[Breakpoint, ...]]:
    """The request without everything before its last compaction block, which the API ignores."""
    first = request.thread.compaction
    if first is None or first.message is None:
        return request, breakpoints
    kinds = [block.kind for block in first.message.blocks]
    cut = len(kinds) - 1 - kinds[::-1].index(COMPACTION)
    nodes = list(request.thread.back())[::-1]
    thread, places = nodes[0].parent or Thread(), {}
    for node in nodes[first.length - 1 :]:
        assert node.message is not None
        blocks = node.message.blocks[cut:] if node is first else node.message.blocks
        thread = places[node] = thread.then(Message.of(node.message.role, blocks))
    moved = []
    for one in breakpoints:
        if one.layer is not Layer.MESSAGES or one.node is None:
            moved.append(one)
        elif one.node in places and (index := one.index - (cut if one.node is first else 0)) >= 0:
            moved.append(replace(one, node=places[one.node], index=index))
    return replace(request, thread=thread, breakpoints=tuple(moved)), tuple(moved)


def _find_cleared_thinking(thread: Thread, edit: Mapping[str, Any]) -> Iterator[int]:
    """Messages before the last `keep` turns with thinking; a turn begins with a human message."""
    keep = edit.get("keep")
    kept = keep.get("value") if isinstance(keep, Mapping) else None
    if not isinstance(kept, int):
        return
    turns: list[Thread | None] = []
    for node in thread.back():
        if node.message is not None and node.message.has_thinking:
            if node.human not in turns:
                turns.append(node.human)
            if turns.index(node.human) >= kept:
                yield node.length


def _is_due(thread: Thread, edit: Mapping[str, Any], prompt_tokens: int) -> bool:
    trigger = edit.get("trigger")
    threshold: Mapping[str, Any] = trigger if isinstance(trigger, Mapping) else {"value": TRIGGER_TOKENS}
    limit = int(threshold.get("value", TRIGGER_TOKENS))
    if threshold.get("type") == "tool_uses":
        return sum(1 for _ in _results(thread)) >= limit
    return prompt_tokens >= limit


def _results(thread: Thread) -> Iterator[tuple[int, int]]:
    """(message, block) of every tool result, latest first."""
    for node in thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            if node.message.blocks[index].kind == "tool_result":
                yield node.length, index


NEW_MESSAGE = b"message"
"""Stands between two messages of one role where each has a frame of its own: one message of both has other tokens."""
NONE_UNCOUNTED: Mapping[bytes, str] = {}
UNCOUNTED_WEIGHT = 256
"""What stands for the tokens of a block that nothing counts until a bill gives them: several share them equally."""
MOST_SETTINGS = 4096
"""Settings of requests that are kept."""


class BreakpointPrefix(msgspec.Struct, frozen=True):
    """A rendered breakpoint: the prefix that it ends, and its TTL."""

    prefix: Prefix
    ttl: TTL


class Prompt(msgspec.Struct, frozen=True):
    """What the cache sees of a call. Tokens are whole tokens of the model.

    `breakpoints` are in prompt order; `tools_tokens` and `system_tokens` are the lengths of the prompt
    up to the end of those layers; `total_tokens` includes what comes after the last block.
    `format_tokens` of them are the prompt of a structured output.
    `boundaries` are the only places where an entry is looked up; None: the lookback of each breakpoint (rule 9).
    `counter` says what two blocks begin with, for hosts that match tokens; None: nothing is known of that.
    `uncounted` are blocks that nothing counts, by digest, and why: only a bill gives their tokens.
    `hidden` are its hidden tokens by place; None: not known.
    """

    end: Prefix
    head: Prefix
    breakpoints: tuple[BreakpointPrefix, ...]
    tools_tokens: int
    system_tokens: int
    total_tokens: int
    cache_keys: CacheKeys
    boundaries: tuple[Prefix, ...] | None = None
    format_tokens: int = 0
    counter: TokenCounter | None = None
    hidden: Hidden | None = None
    uncounted: Mapping[bytes, str] = NONE_UNCOUNTED

    def answered(self, blocks: tuple[Block, ...]) -> Prefix | None:
        """The prompt followed by an answer of these blocks; None where its frames are not known. Raises CannotCount."""
        if self.counter is None or self.hidden is None:
            return None
        return _with_message(self.end, Message.of("assistant", blocks), self.counter.block, self.hidden)


class _RenderedHead(msgspec.Struct, frozen=True):
    tools: tuple[Prefix, ...]
    system: tuple[Prefix, ...]
    tools_end: Prefix
    system_end: Prefix
    start: Prefix


class Renderer:
    """Renders requests into one shared tree of prefixes, for one token counter.

    Rendering costs work for the messages that are new under their head, not for the whole prompt. With `may_be_billed`
    a block that cannot be counted raises nothing: it is in `uncounted`, and has the tokens that bills are known to give
    it (`billed`, by digest).
    """

    def __init__(self, counter: TokenCounter, may_be_billed: bool = False) -> None:
        self.counter = counter
        self.uncounted: dict[bytes, str] = {}
        self.billed: dict[bytes, int] = {}
        self._may_be_billed = may_be_billed
        self._roots: dict[str, Prefix] = {}
        self._heads: dict[tuple[Prefix, Part, Part, CacheKeys, Hidden], _RenderedHead] = {}
        self._ends: dict[tuple[Prefix, Thread | None], dict[Thread, Prefix]] = {}
        self._stripped: dict[Thread, Thread] = {}
        self._settings: dict[tuple[object, ...], tuple[Hidden, CacheKeys, _RenderedHead, object]] = {}
        """What a request has in common with all that differ from it in their messages and breakpoints only; its
        parameters and rules, last, are kept since they are known by their ids."""

    def count(self, block: Block) -> int:
        """Tokens of a block. Raises CannotCount."""
        try:
            return self.counter.block(block)
        except CannotCount as error:
            if not self._may_be_billed:
                raise
            self.uncounted[block.digest] = str(error)
            return self.billed.get(block.digest, UNCOUNTED_WEIGHT)

    def why_unsized(self, prompt: Prompt, is_billed: Callable[[Prefix], bool] | None) -> str:
        """Why neither a count nor a bill gives the length of a prompt; "" where one does."""
        for node in prefixes_back(prompt.end) if self.uncounted else ():
            if is_billed and is_billed(node):
                break
            digest = node.block.digest if node.block else b""
            if digest in self.uncounted and digest not in self.billed:
                return self.uncounted[digest]
        return ""

    def render(
        self,
        request: Request,
        breakpoints: tuple[Breakpoint, ...],
        rules: ModelRules,
        workspace: str = "",
        looks_at: tuple[Breakpoint, ...] | None = None,
    ) -> Prompt:
        """The prompt of `request` with the breakpoints `breakpoints` (automatic resolved) and context edits
        applied. Raises CannotCount.

        `looks_at` are the only places where the host looks up an entry; None: the lookback of each breakpoint.
        """
        if not rules.uses_breakpoints:
            return self._rendered(request, breakpoints, rules, workspace, looks_at)
        request, breakpoints = since_compaction(request, breakpoints)
        plain = self._rendered(request, breakpoints, rules, workspace)
        if not edits_of(request):
            return plain
        return self._rendered(*apply_edits(request, breakpoints, plain.total_tokens), rules, workspace)

    def _rendered(
        self,
        request: Request,
        breakpoints: tuple[Breakpoint, ...],
        rules: ModelRules,
        workspace: str,
        looks_at: tuple[Breakpoint, ...] | None = None,
    ) -> Prompt:
        thread_id = thread_key(request, rules)
        thread, traits = request.thread, thread_traits(request.thread)
        settled = request.params_id, id(rules), request.tools, request.system, workspace
        key = (*settled, thread_id, thread.has_image, traits)
        found = self._settings.get(key)
        if found is None:
            if len(self._settings) >= MOST_SETTINGS:
                self._settings.clear()
            hidden, cache_keys = self.counter.hidden(request, rules), cache_keys_of(request, rules)
            head = self._head(request, cache_keys, hidden, rules.pool(workspace))
            found = self._settings[key] = hidden, cache_keys, head, (request.params, rules)
        hidden, cache_keys, head, _ = found
        end = self._end(head.start, request.thread, request.thread, rules, hidden)
        marked = [
            BreakpointPrefix(self._marked(head, breakpoint, end, request, rules, hidden), breakpoint.ttl)
            for breakpoint in breakpoints
        ]
        places = None
        if looks_at is not None:
            places = tuple([self._marked(head, breakpoint, end, request, rules, hidden) for breakpoint in looks_at])
        return Prompt(
            end,
            head.start,
            tuple(marked),
            head.tools_end.tokens,
            head.system_end.tokens,
            end.tokens + hidden.tail,
            cache_keys,
            places,
            hidden.format,
            self.counter,
            hidden,
            self.uncounted,
        )

    def _head(self, request: Request, cache_keys: CacheKeys, hidden: Hidden, pool: str) -> _RenderedHead:
        root = self._roots.get(pool)
        if root is None:
            root = self._roots[pool] = Prefix(None, Layer.TOOLS, None, 0)
        key = (root, request.tools, request.system, cache_keys, hidden)
        if key in self._heads:
            return self._heads[key]
        tools_start = root.cache_key(cache_keys[0].encode(), Layer.TOOLS, hidden.tools)
        tool_nodes = self._layer(tools_start, request.tools, Layer.TOOLS)
        tools_end = tool_nodes[-1] if tool_nodes else tools_start
        system_start = tools_end.cache_key(cache_keys[1].encode(), Layer.SYSTEM, hidden.system)
        system_nodes = self._layer(system_start, request.system, Layer.SYSTEM)
        system_end = system_nodes[-1] if system_nodes else system_start
        start = system_end.cache_key(
            f"{hidden.turn}/{hidden.parallel}/{hidden.after_results}:{cache_keys[2]}".encode(),
            Layer.MESSAGES,
            hidden.messages,
        )
        head = self._heads[key] = _RenderedHead(tool_nodes, system_nodes, tools_end, system_end, start)
        return head

    def _layer(self, start: Prefix, part: Part, layer: Layer) -> tuple[Prefix, ...]:
        nodes: list[Prefix] = []
        node = start
        for block in part.blocks:
            node = node.then(block, layer, self.count(block))
            nodes.append(node)
        return tuple(nodes)

    def _end(self, start: Prefix, node: Thread, last: Thread, rules: ModelRules, hidden: Hidden) -> Prefix:
        """The prefix at the end of `node` in a request that ends at `last`."""
        human = last.human
        before = human.parent if human else None
        if rules.keeps_thinking or before is None or not before.has_thinking:
            return self._lift(self._known(start, None), start, node, hidden)
        if human is None or node.length < human.length:
            return self._lift(self._known(start, None), start, self._strip(node), hidden)
        known = self._known(start, human)
        known[before] = self._lift(self._known(start, None), start, self._strip(before), hidden)
        return self._lift(known, start, node, hidden)

    def _known(self, start: Prefix, human: Thread | None) -> dict[Thread, Prefix]:
        known = self._ends.get((start, human))
        if known is None:
            known = self._ends[start, human] = {}
        return known

    def _lift(self, known: dict[Thread, Prefix], start: Prefix, node: Thread, hidden: Hidden) -> Prefix:
        return node.fold(known, start, lambda prefix, message: _with_message(prefix, message, self.count, hidden))

    def _strip(self, thread: Thread) -> Thread:
        """The same messages without thinking blocks (rule 3)."""

        def add(bare: Thread, message: Message) -> Thread:
            if not message.has_thinking:
                return bare.then(message)
            blocks = tuple(block for block in message.blocks if not block.is_thinking)
            return bare.then(Message.of(message.role, blocks)) if blocks else bare

        return thread.fold(self._stripped, thread.root, add)

    def _marked(
        self,
        head: _RenderedHead,
        breakpoint: Breakpoint,
        end: Prefix,
        request: Request,
        rules: ModelRules,
        hidden: Hidden,
    ) -> Prefix:
        """The prefix at a breakpoint of a request whose prompt ends at `end`."""
        if breakpoint.layer is Layer.TOOLS:
            return head.tools[breakpoint.index]
        if breakpoint.layer is Layer.SYSTEM:
            return head.system[breakpoint.index]
        if breakpoint.node is None or breakpoint.node.message is None:
            raise ValueError(f"breakpoint={breakpoint!r}: a breakpoint in messages needs the node of its message")
        prefix = end
        if breakpoint.node is not request.thread:
            prefix = self._end(head.start, breakpoint.node, request.thread, rules, hidden)
        human = request.thread.human
        is_stripped = not rules.keeps_thinking and human is not None and breakpoint.node.length < human.length
        for block in breakpoint.node.message.blocks[breakpoint.index + 1 :]:
            if not (is_stripped and block.is_thinking):
                assert prefix.parent is not None
                prefix = prefix.parent
        return prefix


def _with_message(prefix: Prefix, message: Message, count: Callable[[Block], int], hidden: Hidden) -> Prefix:
    last, first = prefix.block, message.blocks[0] if hidden.each_message and message.blocks else None
    if last is not None and first is not None and last.role == first.role and last.kind == first.kind == "text":
        prefix = prefix.cache_key(NEW_MESSAGE, Layer.MESSAGES, 0)  # calls and results have a frame of theirs anyway
    for block in message.blocks:
        frame = _frame(prefix, block, hidden)
        prefix = prefix.then(block, Layer.MESSAGES, count(block) + frame)
    return prefix


def _frame(before: Prefix, block: Block, hidden: Hidden) -> int:
    """Hidden tokens before `block`, where it opens a turn or is the second of a run of parallel results."""
    last = before.block if before.layer is Layer.MESSAGES else None
    if last is None or last.role != block.role:
        return hidden.turn + _at_results(last, block, hidden)
    if not block.kind == last.kind == "tool_result":
        return _at_results(last, block, hidden)
    first = before.parent.block if before.parent else None
    return 0 if first is not None and first.kind == "tool_result" else hidden.parallel


def _at_results(last: Block | None, block: Block, hidden: Hidden) -> int:
    """The correction at the start of a run of tool results, and its counterpart after the run."""
    was, is_now = last is not None and last.kind == "tool_result", block.kind == "tool_result"
    return hidden.after_results * (was - is_now)


Place = tuple[float, int]
"""Where a prefix ends: its tokens as counted, and its depth in blocks."""
EVERYWHERE: Place = (float("inf"), 0)


class PrefixSizes(Protocol):
    """Lengths of prefixes and prompts in tokens: as counted, or as bills say."""

    def of(self, prefix: Prefix) -> int:
        """Tokens up to and including `prefix`."""
        ...

    def total(self, prompt: Prompt) -> int:
        """Tokens of the whole prompt, including what comes after its last block."""
        ...

    def at(self, counted: int) -> int:
        """Tokens up to the place whose counted position is `counted`, such as the end of a layer."""
        ...

    def shared(self) -> tuple[object, Place]:
        """What else has an equal first item gives the same lengths up to the second: the earlier place of both."""
        ...

    def doubt(self, tokens: int) -> int:
        """The uncertain tokens of a length: those between it and the nearest billed length."""
        ...

    def doubt_of_total(self, prompt: Prompt) -> int:
        """Like `doubt`, for the whole prompt."""
        ...


class CountedSizes:
    """Lengths as counted when the prompt was rendered."""

    def of(self, prefix: Prefix) -> int:
        return prefix.tokens

    def total(self, prompt: Prompt) -> int:
        return prompt.total_tokens

    def at(self, counted: int) -> int:
        return counted

    def shared(self) -> tuple[object, Place]:
        return CountedSizes, EVERYWHERE

    def doubt(self, tokens: int) -> int:
        return tokens

    def doubt_of_total(self, prompt: Prompt) -> int:
        return prompt.total_tokens


AS_COUNTED = CountedSizes()


def lookback_steps(breakpoint: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Positions from the breakpoint `breakpoint` back to `node` (0 for its own); negative where `node` comes after
    it.
    """
    return breakpoint.position - node.position if rules.collapses_runs else breakpoint.depth - node.depth


def is_within_lookback(breakpoint: Prefix, node: Prefix, rules: ModelRules) -> bool:
    """Whether a breakpoint at `breakpoint` finds an entry at `node`, a prefix of the same prompt."""
    return 0 <= lookback_steps(breakpoint, node, rules) < rules.lookback_positions


def lookback_window(breakpoint: Prefix, rules: ModelRules) -> Iterator[Prefix]:
    """The prefixes at which a breakpoint looks for an entry, from its own position backwards."""
    node: Prefix | None = breakpoint
    while node is not None and lookback_steps(breakpoint, node, rules) < rules.lookback_positions:
        if node.block:
            yield node
        node = node.parent
