"""Renders a request to the prompt that the provider hashes: cache keys, thinking, hidden tokens (rules 1-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, Layer, Message, Part, Prefix, Thread
from cachecost.prompts.cache_keys import CacheKeys, cache_keys_of, thread_key
from cachecost.prompts.counting import Hidden, TokenCounter, thread_traits
from cachecost.prompts.edits import apply_edits, edits_of, since_compaction
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.rules import ModelRules

NEW_MESSAGE = b"message"
"""Stands between two messages of one role where each has a frame of its own: one message of both has other tokens."""
MOST_SETTINGS = 4096
"""Settings of requests that are kept."""


@value
class BreakpointPrefix:
    """A rendered breakpoint: the prefix that it ends, and its TTL."""

    prefix: Prefix
    ttl: TTL


@value
class Prompt:
    """What the cache sees of a call. Tokens are whole tokens of the model.

    `breakpoints` are in prompt order; `tools_tokens` and `system_tokens` are the lengths of the prompt
    up to the end of those layers; `total_tokens` includes what comes after the last block.
    `format_tokens` of them are the prompt of a structured output.
    `boundaries` are the only places where an entry is looked up; None: the lookback of each breakpoint (rule 9).
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


@value
class _RenderedHead:
    tools: tuple[Prefix, ...]
    system: tuple[Prefix, ...]
    tools_end: Prefix
    system_end: Prefix
    start: Prefix


@value
class _RequestSetting:
    """What a request has in common with all that differ from it in their messages and breakpoints only.

    `params` and `rules` are kept since they are known by their ids.
    """

    params: Mapping[str, Any]
    rules: ModelRules
    hidden: Hidden
    cache_keys: CacheKeys
    head: _RenderedHead


class Renderer:
    """Renders requests into one shared tree of prefixes, for one token counter.

    Rendering costs work for the messages that are new under their head, not for the whole prompt.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._roots: dict[str, Prefix] = {}
        self._heads: dict[tuple[Prefix, Part, Part, CacheKeys, Hidden], _RenderedHead] = {}
        self._ends: dict[tuple[Prefix, Thread | None], dict[Thread, Prefix]] = {}
        self._stripped: dict[Thread, Thread] = {}
        self._settings: dict[tuple[object, ...], _RequestSetting] = {}

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
        setting = self._setting(request, rules, workspace)
        head, hidden = setting.head, setting.hidden
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
            setting.cache_keys,
            places,
            hidden.format,
        )

    def _setting(self, request: Request, rules: ModelRules, workspace: str) -> _RequestSetting:
        """Hidden tokens, cache keys and head, found once for all requests that are alike in what these depend on."""
        thread_id = thread_key(request, rules)
        thread, traits = request.thread, thread_traits(request.thread)
        settled = request.params_id, id(rules), request.tools, request.system, workspace
        key = (*settled, thread_id, thread.has_image, traits)
        found = self._settings.get(key)
        if found is None:
            if len(self._settings) >= MOST_SETTINGS:
                self._settings.clear()
            found = self._settings[key] = self._new_setting(request, rules, workspace)
        return found

    def _new_setting(self, request: Request, rules: ModelRules, workspace: str) -> _RequestSetting:
        hidden, cache_keys = self.counter.hidden(request, rules), cache_keys_of(request, rules)
        head = self._head(request, cache_keys, hidden, rules.pool(workspace))
        return _RequestSetting(request.params, rules, hidden, cache_keys, head)

    def _head(self, request: Request, cache_keys: CacheKeys, hidden: Hidden, pool: str) -> _RenderedHead:
        root = self._roots.get(pool)
        if root is None:
            root = self._roots[pool] = Prefix(None, Layer.TOOLS, None, 0)
        key = (root, request.tools, request.system, cache_keys, hidden)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._build_head(*key)
        return head

    def _build_head(
        self, root: Prefix, tools: Part, system: Part, cache_keys: CacheKeys, hidden: Hidden
    ) -> _RenderedHead:
        tools_start = root.cache_key(cache_keys[0].encode(), Layer.TOOLS, hidden.tools)
        tool_nodes = self._layer(tools_start, tools, Layer.TOOLS)
        tools_end = tool_nodes[-1] if tool_nodes else tools_start
        system_start = tools_end.cache_key(cache_keys[1].encode(), Layer.SYSTEM, hidden.system)
        system_nodes = self._layer(system_start, system, Layer.SYSTEM)
        system_end = system_nodes[-1] if system_nodes else system_start
        start = system_end.cache_key(_frame_salt(cache_keys[2], hidden), Layer.MESSAGES, hidden.messages)
        return _RenderedHead(tool_nodes, system_nodes, tools_end, system_end, start)

    def _layer(self, start: Prefix, part: Part, layer: Layer) -> tuple[Prefix, ...]:
        nodes: list[Prefix] = []
        node = start
        for block in part.blocks:
            node = node.then(block, layer, self.counter.block(block))
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
        return node.fold(known, start, lambda prefix, message: self._message(prefix, message, hidden))

    def _message(self, prefix: Prefix, message: Message, hidden: Hidden) -> Prefix:
        if hidden.each_message and _opens_anew(prefix.block, message):
            prefix = prefix.cache_key(NEW_MESSAGE, Layer.MESSAGES, 0)
        for block in message.blocks:
            frame = _frame(prefix, block, hidden)
            prefix = prefix.then(block, Layer.MESSAGES, self.counter.block(block) + frame)
        return prefix

    def _strip(self, thread: Thread) -> Thread:
        """The same messages without thinking blocks (rule 3)."""
        return thread.fold(self._stripped, thread.root, _then_bare)

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
        for _ in range(self._rendered_after(breakpoint, request, rules)):
            assert prefix.parent is not None
            prefix = prefix.parent
        return prefix

    def _rendered_after(self, breakpoint: Breakpoint, request: Request, rules: ModelRules) -> int:
        assert breakpoint.node is not None and breakpoint.node.message is not None
        after = breakpoint.node.message.blocks[breakpoint.index + 1 :]
        if not after:
            return 0
        human = request.thread.human
        stripped = not rules.keeps_thinking and human is not None and breakpoint.node.length < human.length
        return sum(not (stripped and block.is_thinking) for block in after)


def _frame_salt(cache_key: str, hidden: Hidden) -> bytes:
    """The cache key of the messages, including the frames of their blocks (which may change by day, as rules do)."""
    return f"{hidden.turn}/{hidden.parallel}/{hidden.after_results}:{cache_key}".encode()


def _frame(before: Prefix, block: Block, hidden: Hidden) -> int:
    """Hidden tokens before `block`, where it opens a turn or is the second of a run of parallel results."""
    last = before.block if before.layer is Layer.MESSAGES else None
    if last is None or last.role != block.role:
        return hidden.turn + _at_results(last, block, hidden)
    if not block.kind == last.kind == "tool_result":
        return _at_results(last, block, hidden)
    first = before.parent.block if before.parent else None
    return 0 if first is not None and first.kind == "tool_result" else hidden.parallel


def _opens_anew(last: Block | None, message: Message) -> bool:
    """Whether `message` has a frame of its own after a block of the same role: calls and results have theirs anyway."""
    first = message.blocks[0] if message.blocks else None
    return last is not None and first is not None and last.role == first.role and {last.kind, first.kind} == {"text"}


def _at_results(last: Block | None, block: Block, hidden: Hidden) -> int:
    """The correction at the start of a run of tool results, and its counterpart after the run."""
    was, is_now = last is not None and last.kind == "tool_result", block.kind == "tool_result"
    return hidden.after_results * (was - is_now)


def _then_bare(thread: Thread, message: Message) -> Thread:
    if not message.has_thinking:
        return thread.then(message)
    blocks = tuple(block for block in message.blocks if not block.is_thinking)
    return thread.then(Message.of(message.role, blocks)) if blocks else thread
