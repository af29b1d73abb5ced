"""Reads Claude Code transcripts as calls: each step with its request, as far as the transcript contains it.

Messages, answers, times and usage are the transcript's own (see transcript.py). Missing parts are filled in:

- **Static prefix**: tools and system prompt become blocks of the system layer. Their size is that of the first call's
  input tokens minus its messages. What it read was there before the session, so chains that begin with
  the same read share that much. A chain that read nothing shares it if a later chain of the same client did.
- **Breakpoints**: as recorded (2.1.282 and later), else as the client of that version places them: on the static
  prefix and on the last block of the last message, or of the last two (providers/clients/claude_code.toml), with the
  TTL in the usage (or the latest TTL, where a call writes nothing).
- Parameters of the request (thinking, effort, tool choice) are not there and not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import TranscriptStep
from cachecost.conversations.readers.claude_code.transcript import (
    BYTES_PER_TOKEN,
    PartialStep,
    RecordedBreakpoints,
    TranscriptBlock,
    read_steps_with_content,
    sniff_lines,
)
from cachecost.prompts.blocks import (
    NOTHING,
    THINKING,
    Block,
    Layer,
    Message,
    Part,
    Thread,
    given_block,
)
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.clients.settings import message_breakpoints
from cachecost.providers.hosts import host_of_message
from cachecost.providers.prices import CallTerms

LACKS = "transcripts lack system prompt, tools and breakpoints: sized by the bill, breakpoints by client version"
sniff = sniff_lines


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls of a transcript in the order of their first lines; copies of one call in other files share its `id`.

    Raises InputError with every error, each with its line.
    """
    yield from _TranscriptCalls(read_steps_with_content(path, warn, keep_content)).calls()


@dataclass(slots=True)
class _ChainState:
    """The static prefix and the TTL of a main thread or a sub-agent."""

    head: Part = NOTHING
    ttl: TTL = "5m"


@dataclass(slots=True)
class _TranscriptCalls:
    """Makes calls of the steps of a transcript."""

    steps: list[PartialStep]
    _threads: dict[int, Thread] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)
    _answers: dict[PartialStep, tuple[Block, ...]] = field(default_factory=dict)
    _chains: dict[str, _ChainState] = field(default_factory=dict)
    _heads: dict[tuple[str, int, int], Part] = field(default_factory=dict)

    def calls(self) -> Iterator[RecordedCall]:
        root = Thread()
        for partial in self.steps:
            thread = self._threads[partial.step.number] = self._thread(partial, root)
            if not partial.is_copy:
                self._lines[partial.step.number] = partial.step.line
                yield self._call(partial, thread)

    def _thread(self, partial: PartialStep, root: Thread) -> Thread:
        before = partial.before
        thread = root
        if before is not None and not partial.is_cut:
            thread = _then(self._threads[before.step.number], "assistant", self._answer(before))
        return _then(thread, "user", _blocks(partial.request_blocks))

    def _answer(self, partial: PartialStep) -> tuple[Block, ...]:
        """The blocks of an answer, made once: the requests after it contain them again."""
        blocks = self._answers.get(partial)
        if blocks is None:
            blocks = self._answers[partial] = _blocks(partial.answer)
        return blocks

    def _call(self, partial: PartialStep, thread: Thread) -> RecordedCall:
        step = partial.step
        start = step.after if step.after is not None else step.answered
        return RecordedCall(
            self._request(partial, thread),
            start or 0.0,
            timestamp=None if start is None else iso(start),
            host=host_of_message(step.id),
            first_token_s=0.0 if step.after is None or step.answered is None else max(0.0, step.answered - step.after),
            billed=step.usage,
            is_batch="batch" in step.modes,
            response=self._answer(partial),
            session=step.session,
            id=step.id,
            project=step.project,
            agent=step.agent,
            line=step.line,
            before=self._lines.get(step.before or 0, 0),
        )

    def _request(self, partial: PartialStep, thread: Thread) -> Request:
        step = partial.step
        chain = self._chains.get(step.chain)
        if chain is None:
            chain = self._chains[step.chain] = _ChainState(self._head(partial, thread))
        chain.ttl = _ttl(step) or chain.ttl
        head, in_messages = partial.breakpoints or _by_version(partial.client, chain.ttl)
        found: list[Breakpoint] = []
        if in_messages:
            for node in thread.back():
                if (index := _last_place(node)) is not None:
                    found.append(Breakpoint(Layer.MESSAGES, index, in_messages[-1 - len(found)], node))
                    if len(found) == len(in_messages):
                        break
        breakpoints = (*(_on_system(len(chain.head.blocks), head) if head else ()), *found[::-1])
        params = CallTerms.of_modes(step.modes).params
        return Request(step.model, thread, system=chain.head, breakpoints=breakpoints, params=params)

    def _head(self, partial: PartialStep, thread: Thread) -> Part:
        """The unknown static prefix of a chain that begins with this step: what other chains share, and the rest."""
        messages = sum(block.size for message in thread.messages() for block in message.blocks) // BYTES_PER_TOKEN
        whole = max(0, partial.step.usage.total_input - messages)
        shared = min(whole, partial.step.usage.read or self._read_later(partial))
        key = (partial.client, shared, whole - shared)
        if key not in self._heads:
            parts = ((f"{partial.client} {shared}", shared), (f"{partial.client} {whole}", whole - shared))
            self._heads[key] = Part(tuple(_unknown(name, tokens) for name, tokens in parts if tokens))
        return self._heads[key]

    def _read_later(self, partial: PartialStep) -> int:
        """The tokens that the next chain of the same client read in its first call; 0 if there is none."""
        begins = (one for one in self.steps[partial.step.number :] if one.before is None)
        return next((one.step.usage.read for one in begins if one.client == partial.client and one.step.usage.read), 0)


def _unknown(name: str, tokens: int) -> Block:
    return given_block("text", "system", f"unknown head of Claude Code {name}", tokens)


def _then(thread: Thread, role: str, blocks: tuple[Block, ...]) -> Thread:
    return thread.then(Message.of(role, blocks)) if blocks else thread


def _blocks(blocks: list[TranscriptBlock]) -> tuple[Block, ...]:
    return tuple([one.block for one in blocks])


@cache
def _by_version(client: str, ttl: TTL) -> RecordedBreakpoints:
    return RecordedBreakpoints(ttl, (ttl,) * message_breakpoints(client))


@cache
def _on_system(blocks: int, ttl: TTL) -> tuple[Breakpoint, ...]:
    """Breakpoints on all blocks of a static prefix."""
    return tuple(Breakpoint(Layer.SYSTEM, index, ttl) for index in range(blocks))


def _last_place(node: Thread) -> int | None:
    """The last block of a message that can have a breakpoint; None if no block can."""
    blocks = node.message_blocks
    for index in range(len(blocks) - 1, -1, -1):
        if not (blocks[index].kind in THINKING or blocks[index].is_empty_text):
            return index
    return None


def _ttl(step: TranscriptStep) -> TTL | None:
    return "1h" if step.usage.write_1h else "5m" if step.usage.write_5m else None
