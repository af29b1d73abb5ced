"""What leaves the context: turns compacted, results pruned, cut or deduplicated, the oldest messages dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from cachecost.base.structs import replace
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, compact, digest_of, estimate_tokens, given_block
from cachecost.prompts.request import Request
from cachecost.strategies.agent import Window
from cachecost.strategies.changes.base import (
    AgentChange,
    CallRewriter,
    EvenSampler,
    GrowingThread,
    Span,
    ThreadRewriter,
    assumed_block,
    head_of,
    model_window,
    params_for_model,
    placeholder_for,
    starts_turn,
    tokens_of,
)

Kind = Literal["summary", "strip", "strip_reasoning", "strip_tools", "range", "keep_first", "keep_last"]
STRIPPED_TOKENS = 12
"""What stands for stripped arguments or a stripped result: "[compacted] name: success" (RFD 064); an assumption."""


@dataclass(frozen=True, slots=True)
class Compaction(AgentChange):
    """Between turns, turns but the first `keep_first` and the last `keep_last` are made shorter.

    `kind` says how. "strip_reasoning" leaves thinking out, "strip_tools" puts placeholders for `clears` of tool calls,
    "strip" does both; "summary" puts a summary of `summary_tokens` in their place; "range" leaves them out,
    "keep_first" leaves all but the first out, "keep_last" all but the last. Turns are compacted once; not `rolling`,
    an earlier summary is among those that are summed up again.

    It happens at most once between two turns: after more than `min_turns` turns, where head and thread are estimated
    at more than `at` of the window (`window_tokens`, else the model's; unknown, it never happens); or after every
    `every_turns` turns of any size. Nothing is compacted after the last turn.

    A summary is a call of its own: the thread so far and an instruction, sent with the head of the main thread, by
    `model` if one is given (then without thinking, effort and speed). With `system_tokens` it has a system prompt of
    its own and no tools, so it shares no prefix. It starts `wait_s` seconds after the first token of the turn's last
    call, or with the next message if that is earlier ("turn_end"), or with that message, whose call waits `wait_s`
    for it ("turn_start"). `summary_at` "front" puts the summary before the kept first turns, which are then written
    again each time (anthropics/claude-code#94197).

    Sources: jp RFD 036, 064 and D50 (2026-06-15: 0.75, 5, 1, 3; its default is "strip"). Tokens and seconds: assumed.
    """

    kind: Kind = "summary"
    keep_first: int = 1
    keep_last: int = 3
    rolling: bool = True
    at: float = 0.75
    window_tokens: int | None = None
    min_turns: int = 5
    every_turns: int = 0
    clears: Literal["responses", "requests", "both"] = "both"
    summary_tokens: int = 2_000
    instruction_tokens: int = 500
    summary_at: Literal["in_place", "front"] = "in_place"
    model: str | None = None
    system_tokens: int | None = None
    when: Literal["turn_end", "turn_start"] = "turn_end"
    wait_s: float = 10.0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if not 0 <= self.at <= 1:
            raise ValueError(f"at={self.at}: expected a share from 0 to 1")


class _CompactionRewriter(ThreadRewriter, change=Compaction):
    """The walk over a conversation.

    The first `_upto` messages sent are compacted or kept, the first `_front` are summaries at the front. `_past` turns
    were, `_since` of them after the last compaction. `_now` is when the last event was, `_quiet` when the first token
    of the last call was there, `_ready` when a summary is.
    """

    _options: Compaction

    def begin(self, conversation: Conversation) -> None:
        self._thread = GrowingThread(conversation.root)
        self._main = head_of(conversation)
        tokens = self._options.system_tokens
        own = () if tokens is None else (given_block("text", "system", "summary system prompt", tokens),)
        self._own_system = Part(own)
        self._upto = self._front = self._past = self._since = 0
        self._now = self._quiet = self._ready = float("-inf")

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            for new in self._compact(event.at):
                self._thread.add(new)
                yield new
            self._past += 1
            self._since += 1
        sent = self.send(event)
        self._now = max(self._now, sent.at)
        if isinstance(sent, Switch):
            self._main = sent
        elif isinstance(sent, Reply):  # the call that follows a summary waits for it
            sent = replace(sent, at=max(sent.at, self._ready))
            self._quiet = sent.at + (sent.first_token_s or 0.0)
        self._thread.add(sent)
        yield sent

    def forget(self, keep: int) -> None:
        self._upto = min(self._upto, keep)
        self._front = self._front if keep >= self._front else 0

    def _compact(self, at: float) -> Iterator[Event]:
        """What is said between two turns, if it is time to; the second begins at `at`."""
        options = self._options
        if not self._is_due():
            return
        first = 0 if options.kind == "keep_last" else options.keep_first + self._front // 2
        last = 0 if options.kind == "keep_first" else options.keep_last
        ends = [*self.turns, len(self.sent_messages)]
        start = max(ends[min(first, len(ends) - 1)], self._upto if options.rolling else 0)
        stop = ends[max(len(ends) - 1 - last, 0)]
        if start >= stop:
            return
        if options.kind == "summary":
            call = self._summary_call(at, self._summary(start, stop)[-1].blocks)
            self._now = at = call.at
            yield call
        self._since = 0
        yield self._shorten(at, start, stop)

    def _is_due(self) -> bool:
        options = self._options
        if options.every_turns:
            return self._since >= options.every_turns
        window = options.window_tokens or model_window(self._main.model, self._facts)
        if window is None or self._past <= options.min_turns:
            return False
        return tokens_of((self._main.tools, self._main.system)) + self.tokens > options.at * window

    def _shorten(self, at: float, start: int, stop: int) -> Event:
        """The messages between are made shorter; the first `_upto` sent are then compacted or kept."""
        short: list[Message] = []
        if self._options.kind == "summary":
            short = self._summary(start, stop)
        elif self._options.kind.startswith("strip"):
            for message in self.sent_messages[start:stop]:
                blocks = tuple(self._strip(message.blocks))
                short += [Message.of(message.role, blocks)] if blocks else []
        if self._options.kind == "summary" and self._options.summary_at == "front":
            before = [*self.sent_messages[: self._front], *short] if self._options.rolling else short
            kept = self.sent_messages[self._front : start]
            self._front, self._upto = len(before), len(before) + len(kept)
            return self.replace_range(at, 0, stop, [*before, *kept])
        self._upto = start + len(short)
        return self.replace_range(at, start, stop, short)

    def _summary(self, start: int, stop: int) -> list[Message]:
        """A question and its answer, as jp has it; another for other messages."""
        digest = digest_of("", "summary", b"".join(message.digest for message in self.sent_messages[start:stop])).hex()
        title = given_block("text", "user", "summary of what was said", 10)  # the question it answers (RFD 064)
        summary = given_block("text", "assistant", f"summary {digest}", self._options.summary_tokens)
        return [Message.of("user", (title,)), Message.of("assistant", (summary,))]

    def _strip(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks without thinking, with placeholders for what is cleared of tool calls, or with one of both."""
        for block in blocks:
            if block.is_thinking and self._options.kind != "strip_tools":
                continue
            cleared = {"tool_result": ("responses", "both"), "tool_use": ("requests", "both")}.get(block.kind, ())
            is_cleared = self._options.kind != "strip_reasoning" and self._options.clears in cleared
            is_longer = is_cleared and estimate_tokens(block) > STRIPPED_TOKENS
            yield placeholder_for(block, "stripped", STRIPPED_TOKENS) if is_longer else block

    def _summary_call(self, human_at: float, summary: tuple[Block, ...]) -> Aside:
        options, main = self._options, self._main
        at = human_at if options.when == "turn_start" else min(self._quiet + options.wait_s, human_at)
        at = max(at, self._now)
        if options.when == "turn_start":
            self._ready = at + options.wait_s
        instruction = given_block("text", "user", "summary instruction", options.instruction_tokens)
        thread = self._thread.thread.then(Message.of("user", (instruction,)))
        is_own = options.system_tokens is not None
        tools, system = (NOTHING, self._own_system) if is_own else (main.tools, main.system)
        params = params_for_model(main.params, options.model)
        if not tools.blocks:
            params.pop("tool_choice", None)
        request = Request(options.model or main.model, thread, tools, system, params=params)
        return Aside(at, request, Reply(at, summary))


@dataclass(frozen=True, slots=True)
class Prune(AgentChange):
    """Tool results but the last `keep_results`, of turns before the last `keep_turns`, become a placeholder.

    They do before the first call of each `every_turns`-th turn (0: before every call) in which the estimated context
    passes `above_tokens`, and only if that saves `at_least_tokens`. So 1 clears a little each turn, and a
    higher number clears in steps: the cut, and with it what must be written again, moves rarely. Results that no call
    has sent yet stay. `clears` is jp's hint
    for tools (RFD 064, D17), here one for all: "requests" are arguments. A placeholder is `placeholder_tokens` long.

    Three results kept is the default of the API's own clear_tool_uses_20250919; 12 tokens are an assumption.
    """

    keep_results: int = 3
    keep_turns: int = 0
    every_turns: int = 1
    above_tokens: int = 0
    at_least_tokens: int = 0
    clears: Literal["responses", "requests", "both"] = "responses"
    placeholder_tokens: int = 12


class _ClearableBlock(NamedTuple):
    """A block that can be cleared: its message, its place in that, and the tokens it loses."""

    message: int
    block: int
    saves: int


class _PruneRewriter(ThreadRewriter, change=Prune):
    """`_open` are the tool results and the tool calls that are not cleared, in the order of the thread.

    The n-th result answers the n-th call: recordings without content do not say more.
    """

    _options: Prune

    def begin(self, conversation: Conversation) -> None:
        self._head = tokens_of((conversation.tools, conversation.system))
        self._open: dict[str, list[_ClearableBlock]] = {"tool_result": [], "tool_use": []}
        self._turn, self._is_due = 0, False

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Human):
            self._turn += 1
            every = self._options.every_turns
            self._is_due = every > 0 and (self._turn - 1) % every == 0
        elif isinstance(event, Reply):
            if self._is_due or not self._options.every_turns:
                yield from self._clear_old(event.at)
            self._is_due = False
        yield self.send(event)

    def rewrite_message(self, message: Message) -> Message:
        for place, block in enumerate(message.blocks):
            if block.kind in self._open:
                saves = estimate_tokens(block) - self._options.placeholder_tokens
                self._open[block.kind].append(_ClearableBlock(len(self.sent_messages), place, saves))
        return message

    def forget(self, keep: int) -> None:
        for places in self._open.values():
            while places and places[-1].message >= keep:
                places.pop()

    def _clear_old(self, at: float) -> Iterator[ThreadRewrite]:
        """The thread with its old calls cleared, where that is due and worth it."""
        options, results = self._options, self._open["tool_result"]
        if self._head + self.tokens <= options.above_tokens:
            return
        # kept are the last message, whose results no call has sent yet, and the last turns
        first_kept, turns = len(self.sent_messages) - 1, options.keep_turns
        if turns:
            first_kept = min(self.turns[-turns], first_kept) if len(self.turns) >= turns else 0
        old = max(len(results) - options.keep_results, 0)
        while old and results[old - 1].message >= first_kept:
            old -= 1
        kinds = {"responses": ["tool_result"], "requests": ["tool_use"], "both": ["tool_result", "tool_use"]}
        chosen = [each for kind in kinds[options.clears] for each in self._open[kind][:old] if each.saves > 0]
        if not chosen or sum(each.saves for each in chosen) < options.at_least_tokens:
            return
        for places in self._open.values():
            del places[:old]
        sent = self.sent_messages
        blocks = {place: list(sent[place].blocks) for place, _, _ in chosen}
        for place, number, _ in chosen:
            blocks[place][number] = placeholder_for(blocks[place][number], "cleared", options.placeholder_tokens)
        cleared = {place: Message.of(sent[place].role, tuple(kept)) for place, kept in blocks.items()}
        yield self.replace_messages(at, cleared)


@dataclass(frozen=True, slots=True)
class Truncate(AgentChange):
    """Before a call that would pass 90 % of the window, the oldest messages go until 80 % are left (as jp does).

    `in_steps` rounds what must go up to tenths of those 80 %, as jp does: the cut moves once in a while. Without, it
    moves on whenever one more turn must go, and everything after the head is written again. What stays begins with a
    human message, the last one at the latest: a turn that is too long alone is sent, and may be refused. The window is
    `window_tokens`, else the model's; unknown, nothing is cut.
    """

    in_steps: bool = True
    window_tokens: int | None = None


class _TruncationRewriter(ThreadRewriter, change=Truncate):
    """`_ends` are bytes up to and with each recorded message, `_humans` the human ones among them."""

    _options: Truncate

    def begin(self, conversation: Conversation) -> None:
        self._ends: list[int] = []
        self._humans: list[int] = []
        self._set_window(head_of(conversation))

    def step(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Switch):
            self._set_window(event)
        elif isinstance(event, Reply):
            cut, window = 0, self._window
            if window and self._humans and self._ends[-1] > window.budget:
                human = window.first_kept(self._ends, self._humans, self._options.in_steps)
                cut = self._humans[min(human, len(self._humans) - 1)]
            start = self.spans[0][0] if self.spans else len(self.recorded_messages)
            if cut != start and self.recorded_messages:
                spans: list[Span] = [(place, place + 1) for place in range(cut, len(self.recorded_messages))]
                yield self.resend(event.at, 0, self.recorded_messages[cut:], spans, "edit")
        yield self.send(event)
        self._forget_recorded(len(self.recorded_messages))
        for message in self.recorded_messages[len(self._ends) :]:
            if starts_turn(message):
                self._humans.append(len(self._ends))
            self._ends.append((self._ends[-1] if self._ends else 0) + sum(block.size for block in message.blocks))

    def _set_window(self, head: Switch) -> None:
        tokens = self._options.window_tokens or model_window(head.model, self._facts)
        self._window = Window(tokens, (head.tools, head.system)) if tokens else None

    def rewrite_message(self, message: Message) -> Message:
        self._forget_recorded(len(self.recorded_messages) - 1)
        return message

    def _forget_recorded(self, start: int) -> None:
        """The recorded messages from `start` on are others now."""
        del self._ends[start:]
        while self._humans and self._humans[-1] >= start:
            self._humans.pop()


@dataclass(frozen=True, slots=True)
class Deduplicate(AgentChange):
    """A tool result that was sent whole within the last `turns` turns becomes a reference of `reference_tokens`.

    Only results of `least_bytes` or more do, and only while the one they point to is in the thread. What is equal:
    the result's content; in a recording without content the whole block, which holds the id of its call, so there
    next to nothing is found. Source: jp RFD 067 (300 bytes, 30 turns, 40 to 50 tokens for the reference), which looks
    at the resource's address, too: recordings do not tell it.
    """

    turns: int = 30
    least_bytes: int = 300
    reference_tokens: int = 45


class _DuplicateRewriter(ThreadRewriter, change=Deduplicate):
    """`_whole` are the results sent whole, in order: message and content; `_at` where each content was, latest last."""

    _options: Deduplicate

    def begin(self, conversation: Conversation) -> None:
        self._whole: list[tuple[int, bytes]] = []
        self._at: dict[bytes, list[tuple[int, int]]] = {}

    def rewrite_message(self, message: Message) -> Message:
        blocks = tuple(map(self._shorten_result, message.blocks))
        return message if blocks == message.blocks else Message.of(message.role, blocks)

    def forget(self, keep: int) -> None:
        while self._whole and self._whole[-1][0] >= keep:
            self._at[self._whole.pop()[1]].pop()

    def _shorten_result(self, block: Block) -> Block:
        """A reference to the same result, where that is still there; else the block, which is sent whole."""
        if block.kind != "tool_result" or block.size < self._options.least_bytes:
            return block
        turn, content = len(self.turns), block.digest
        if block.content is not None and "content" in block.content:  # what it says, whichever call it answers
            content = digest_of("", "result", compact({"content": block.content["content"]}))
        places = self._at.setdefault(content, [])
        if places and places[-1][1] >= turn - self._options.turns:
            return placeholder_for(block, "reference", self._options.reference_tokens)
        places.append((len(self.sent_messages), turn))
        self._whole.append((len(self.sent_messages), content))
        return block


@dataclass(frozen=True, slots=True)
class OutputCap(AgentChange):
    """Tool results are cut to `tool_bytes` each, then those of one message to `batch_bytes` together, longest first.

    Bytes are those of a block's compact JSON, four a token for given counts; a cut result keeps that share of its
    tokens. Results with images are not cut: their bytes are no text. Source: jp RFD D24 (256 KB, 2 MB).
    """

    tool_bytes: int = 256 * 1024
    batch_bytes: int = 2 * 1024 * 1024
    least: ClassVar[int] = 1


class _CapRewriter(ThreadRewriter, change=OutputCap):
    _options: OutputCap

    def rewrite_message(self, message: Message) -> Message:
        can_cut = [block.kind == "tool_result" and not block.has_image for block in message.blocks]
        pairs = list(zip(message.blocks, can_cut, strict=True))
        sizes = sorted(min(block.size, self._options.tool_bytes) for block, is_cut in pairs if is_cut)
        level = left = self._options.batch_bytes
        for shorter, size in enumerate(sizes):  # what shorter ones leave is for longer ones
            share = left // (len(sizes) - shorter)
            if size > share:
                level = share
                break
            left -= size
        level = min(level, self._options.tool_bytes)
        blocks = [
            placeholder_for(block, "cut", estimate_tokens(block) * level // block.size)
            if is_cut and block.size > level
            else block
            for block, is_cut in pairs
        ]
        return message if blocks == list(message.blocks) else Message.of(message.role, tuple(blocks))


@dataclass(frozen=True, slots=True)
class Reread(AgentChange):
    """At `rate` of the tool results that a change before this one took out of the context, they are read again.

    That is one call each, of `call_tokens`, before the first reply after the cut; the result is as long as it was, and
    at the next cut becomes a placeholder of `placeholder_tokens`. No result is read again twice. Name this change after
    those that compact or prune. Left at 0, nothing that was taken out is ever missed. Rate and tokens: assumed.
    """

    rate: float = 0.0
    call_tokens: int = 100
    placeholder_tokens: int = 12


class _RereadRewriter(CallRewriter, change=Reread):
    """`_missing` are the results to read again before the next reply, `_gone` the digests of all that were cut,
    `_again` what each message that was read again is after the next cut."""

    _options: Reread

    def begin(self, conversation: Conversation) -> None:
        self._is_missed = EvenSampler(self._options.rate)
        self._missing: list[Block] = []
        self._gone: set[bytes] = set()
        self._again: dict[bytes, Message] = {}

    def rewrite_event(self, event: Event) -> Iterable[Event]:
        if isinstance(event, ThreadRewrite) and event.why in ("compaction", "edit"):  # a fork leaves results on purpose
            # results that are in the thread before the rewrite, not after it, and were never cut before
            left = {block.digest for block in _results(event.messages)} | self._gone
            cut = [block for block in _results(self.recorded_messages[event.keep :]) if block.digest not in left]
            self._gone |= {block.digest for block in cut}
            self._missing += [block for block in cut if self._is_missed()]
            sent = list(CallRewriter.rewrite_event(self, event))
            found = enumerate(self.sent_messages)
            again = {place: self._again[message.digest] for place, message in found if message.digest in self._again}
            return [*sent, self.replace_messages(event.at, again)] if again else sent
        if isinstance(event, Reply) and event.blocks and self._missing:
            calls: list[Reply | Results] = []
            for result in self._missing:
                call = assumed_block("tool_use", "assistant", "read again", (result,), self._options.call_tokens)
                calls += [Reply(event.at, (call,)), Results(event.at, (result,))]
                cleared = placeholder_for(result, "cleared", self._options.placeholder_tokens)
                self._again[Message.of("user", (result,)).digest] = Message.of("user", (cleared,))
            self._missing = []
            return self.replace_event(event, [*calls, event])
        return CallRewriter.rewrite_event(self, event)


def _results(messages: Iterable[Message]) -> Iterator[Block]:
    return (block for message in messages for block in message.blocks if block.kind == "tool_result")
