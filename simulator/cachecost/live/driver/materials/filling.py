"""A planned request -> the same request with content: blocks without any get filler of about the same token count.

This happens after planning, so it covers what a strategy adds to a conversation (summaries, reminders, questions), and
before pricing, so what is priced is what is sent. Equal blocks get equal content, so common prefixes remain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread
from cachecost.prompts.counting import CannotCount, TokenCounter
from cachecost.prompts.request import Breakpoint, Request
from cachecost.prompts.wire import block_of, text_block

LIST = (
    "air all arm art bag bar bed big bit boat body bone book box bread bus cake call camp card care case cat chair "
    "city clay clock cloud coal coat cold cook corn cow cup dark day deep desk dish dog door dream dry dust ear "
    "earth edge egg end eye face farm fast field fire fish floor flower food foot forest fork game garden gate girl "
    "glass gold grass green hair half hall hand hat head heart hill home horse house ice iron island key king "
    "kitchen lake lamp land leaf leg letter light line lion list long market milk mind moon morning mountain "
    "mouth music name neck nest new night nine nose ocean old orange page paint paper park party path pen pig pin "
    "pipe place"
)
WORDS = tuple(LIST.split())
"""128 of them, so a word encodes seven bits."""
BITS = 7
DIGEST_WORDS = 5
"""The first words encode 35 bits of the digest, so no text is shorter."""


def text(digest: bytes, words: int) -> str:
    """`words` words (at least DIGEST_WORDS), drawn from `digest`."""
    told = int.from_bytes(digest)
    first = [WORDS[told >> (BITS * number) & 127] for number in range(DIGEST_WORDS)]
    return " ".join(first + Random(told).choices(WORDS, k=max(0, words - DIGEST_WORDS)))


Content = dict[str, Any]
SAMPLE = 100
"""Words in the sample that measures tokens per word."""
BYTES_PER_TOKEN = 4
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
Open = tuple[str, ...]
"""Ids of the tool calls that wait for their results, in order."""
Filled = tuple[Thread, Open, dict[int, int]]
"""A thread with content, the calls open at its end, and where the blocks of its last message went."""

NO_THINKING = "Thinking blocks without a signature cannot be sent and are omitted."
AS_TEXT = "Blocks of kind {kind} without content are sent as text of about the same length."
UNMATCHED = "Tool results without a preceding tool call are sent as text."
FILLER = "Blocks without content are sent as filler text of about the same token count."


class FillerContent:
    """Adds content to the requests of one strategy. `counter` measures blocks; `notes` are sentences for the user."""

    def __init__(self, counter: TokenCounter) -> None:
        self.notes: dict[str, None] = {}
        self._counter = counter
        self._root = Thread()
        self._threads: dict[Thread, Filled] = {}
        self._parts: dict[Part, Part] = {NOTHING: NOTHING}
        self._blocks: dict[tuple[bytes, str], Block] = {}
        self._rates: dict[str, float] = {}

    def fill_request(self, request: Request) -> Request:
        """`request` with content in every block."""
        thread = self._thread(request.thread)[0]
        breakpoints = tuple(
            moved for breakpoint in request.breakpoints if (moved := self._move_breakpoint(breakpoint)) is not None
        )
        return replace(
            request,
            thread=thread,
            tools=self._part(request.tools),
            system=self._part(request.system),
            breakpoints=breakpoints,
        )

    def _move_breakpoint(self, breakpoint: Breakpoint) -> Breakpoint | None:
        if breakpoint.layer is not Layer.MESSAGES or breakpoint.node is None:
            return breakpoint
        node, _, places = self._thread(breakpoint.node)
        return replace(breakpoint, node=node, index=places[breakpoint.index]) if breakpoint.index in places else None

    def _part(self, part: Part) -> Part:
        if part not in self._parts:
            self._parts[part] = Part(tuple(self._block(block, "") for block in part.blocks), part.places)
        return self._parts[part]

    def _thread(self, thread: Thread) -> Filled:
        return thread.fold(self._threads, (self._root, (), {}), self._then)

    def _then(self, before: Filled, message: Message) -> Filled:
        """The filled thread with the message added, unless it is empty."""
        blocks: list[Block] = []
        places: dict[int, int] = {}
        opened = list(before[1])
        for number, block in enumerate(message.blocks):
            made = self._in_message(block, opened)
            if made is not None:
                places[number] = len(blocks)
                blocks.append(made)
        if not blocks:
            return before[0], before[1], {}
        is_theirs = message.role == "assistant"
        calls = [str((block.content or {}).get("id")) for block in blocks if block.kind == "tool_use"]
        return before[0].then(Message.of(message.role, tuple(blocks))), tuple(calls if is_theirs else ()), places

    def _in_message(self, block: Block, opened: list[str]) -> Block | None:
        """The block with content; None if it is omitted. A result closes the call that it answers."""
        if block.is_thinking and block.content is None:
            self.notes[NO_THINKING] = None
            return None
        if block.kind != "tool_result":
            return self._block(block, "")
        answers = self._find_call(block, opened)
        if answers:
            opened.remove(answers)
        else:
            self.notes[UNMATCHED] = None
        if block.content is None:
            return self._block(block, answers)
        return _result(block, block.content, answers)

    def _find_call(self, block: Block, opened: list[str]) -> str:
        """The open call that a result answers: the one it names, else the first; "" if none is open."""
        named = str((block.content or {}).get("tool_use_id"))
        return named if named in opened else next(iter(opened), "")

    def _block(self, block: Block, answers: str) -> Block:
        """A block with content; `answers` is the call that a result is for."""
        if block.content is not None:
            return block_of(block.role, block.content) if block.tokens is not None else block
        key = (block.digest, answers)
        if key not in self._blocks:
            self._blocks[key] = self._make_block(block, answers)
        return self._blocks[key]

    def _make_block(self, block: Block, answers: str) -> Block:
        self.notes[FILLER] = None
        kind, make = maker(block, answers)
        if kind == "text" and block.kind not in ("text", "tool_result"):
            self.notes[AS_TEXT.format(kind=block.kind)] = None
        shortest = block_of(block.role, make(text(block.digest, DIGEST_WORDS)))
        rest = self._tokens(block) - self._counter.block(shortest)
        words = DIGEST_WORDS + max(0, round(rest / self._rate(kind, block, make)))
        return block_of(block.role, make(text(block.digest, words)))

    def _tokens(self, block: Block) -> int:
        try:
            return self._counter.block(block)
        except CannotCount:
            return block.size // BYTES_PER_TOKEN

    def _rate(self, kind: str, block: Block, make: Callable[[str], Content]) -> float:
        """Tokens per word in a block of this kind."""
        if kind not in self._rates:
            short, long = (
                self._counter.block(block_of(block.role, make(text(block.digest, DIGEST_WORDS + words))))
                for words in (SAMPLE, 2 * SAMPLE)
            )
            self._rates[kind] = max(0.01, (long - short) / SAMPLE)
        return self._rates[kind]


def maker(block: Block, answers: str) -> tuple[str, Callable[[str], Content]]:
    """(kind, what makes the wire object of a filler text) for a block."""
    name = "_".join(_some_words(block.digest)) + "_" + block.digest.hex()[:6]
    if block.kind == "tool":
        return "tool", lambda words: {"name": name, "description": words, "input_schema": SCHEMA}
    if block.kind == "tool_use" and block.role == "assistant":
        return "tool_use", lambda words: {
            "type": "tool_use",
            "id": f"toolu_{block.digest.hex()[:24]}",
            "name": name,
            "input": {"what": words},
        }
    if block.kind == "tool_result" and answers:
        return "tool_result", lambda words: {"type": "tool_result", "tool_use_id": answers, "content": words}
    return "text", lambda words: {"type": "text", "text": words}


def _result(block: Block, content: Mapping[str, Any], answers: str) -> Block:
    """A result with content, for the call it `answers`; as text if it answers none."""
    if answers:
        return block if content.get("tool_use_id") == answers else block_of("user", {**content, "tool_use_id": answers})
    told = content.get("content")
    return text_block("user", told if isinstance(told, str) and told else json.dumps(told))


def _some_words(digest: bytes) -> Iterator[str]:
    yield from text(digest, DIGEST_WORDS).split()[:2]
