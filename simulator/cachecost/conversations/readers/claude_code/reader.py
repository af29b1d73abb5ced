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
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, Warn, quiet
from cachecost.conversations.readers.claude_code.steps import (
    BYTES_PER_TOKEN,
    RecordedBreakpoints,
    Step,
    TranscriptBlock,
    read_steps_with_content,
    sniff_lines,
)
from cachecost.prompts.blocks import NOTHING, THINKING, Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.clients.settings import message_breakpoints
from cachecost.providers.prices import CallTerms

LACKS = "transcripts lack system prompt, tools and breakpoints: sized by the bill, breakpoints by client version"
sniff = sniff_lines


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
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

    steps: list[Step]
    _threads: dict[Step, Thread] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)
    _answers: dict[Step, tuple[Block, ...]] = field(default_factory=dict)
    _chains: dict[str, _ChainState] = field(default_factory=dict)
    _heads: dict[tuple[str, int, int], Part] = field(default_factory=dict)

    def calls(self) -> Iterator[Call]:
        root = Thread()
        for step in self.steps:
            thread = self._threads[step] = self._thread(step, root)
            if step.call is not None:
                self._lines[step.call.number] = step.call.line
                yield self._call(step, step.call, thread)

    def _thread(self, step: Step, root: Thread) -> Thread:
        before = step.before
        thread = root
        if before is not None and not step.is_cut:
            thread = _then(self._threads[before], "assistant", self._answer(before))
        return _then(thread, "user", _blocks(step.request_blocks))

    def _answer(self, step: Step) -> tuple[Block, ...]:
        """The blocks of an answer, made once: the requests after it contain them again."""
        blocks = self._answers.get(step)
        if blocks is None:
            blocks = self._answers[step] = _blocks(step.answer)
        return blocks

    def _call(self, step: Step, call: BilledCall, thread: Thread) -> Call:
        start, answered = call.start, call.answered
        return Call(
            self._request(step, call, thread),
            start or 0.0,
            timestamp=None if start is None else iso(start),
            host=call.host or None,
            first_token_s=0.0 if start is None or answered is None else max(0.0, answered - start),
            billed=call.usage,
            is_batch="batch" in call.modes,
            response=self._answer(step),
            session=call.session,
            id=call.id,
            project=step.project,
            agent=step.agent,
            line=call.line,
            before=self._lines.get(call.before, 0),
        )

    def _request(self, step: Step, call: BilledCall, thread: Thread) -> Request:
        chain = self._chains.get(step.chain)
        if chain is None:
            chain = self._chains[step.chain] = _ChainState(self._head(step, call, thread))
        chain.ttl = _ttl(call) or chain.ttl
        head, in_messages = step.breakpoints or _by_version(step.client, chain.ttl)
        found: list[Breakpoint] = []
        if in_messages:
            for node in thread.back():
                if (index := _last_place(node)) is not None:
                    found.append(Breakpoint(Layer.MESSAGES, index, in_messages[-1 - len(found)], node))
                    if len(found) == len(in_messages):
                        break
        breakpoints = (*(_on_system(len(chain.head.blocks), head) if head else ()), *found[::-1])
        params = CallTerms.of_modes(call.modes).params
        return Request(call.model, thread, system=chain.head, breakpoints=breakpoints, params=params)

    def _head(self, step: Step, call: BilledCall, thread: Thread) -> Part:
        """The unknown static prefix of a chain that begins with this step: what other chains share, and the rest."""
        messages = sum(block.size for message in thread.messages() for block in message.blocks) // BYTES_PER_TOKEN
        whole = max(0, call.total_input - messages)
        shared = min(whole, call.read or self._read_later(step))
        key = (step.client, shared, whole - shared)
        if key not in self._heads:
            parts = ((f"{step.client} {shared}", shared), (f"{step.client} {whole}", whole - shared))
            self._heads[key] = Part(tuple(_unknown(name, tokens) for name, tokens in parts if tokens))
        return self._heads[key]

    def _read_later(self, step: Step) -> int:
        """The tokens that the next chain of the same client read in its first call; 0 if there is none."""
        calls = (one.call for one in self.steps[step.place + 1 :] if one.before is None and one.client == step.client)
        return next((call.read for call in calls if call is not None and call.read), 0)


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


def _ttl(call: BilledCall) -> TTL | None:
    return "1h" if call.tokens[3] else "5m" if call.tokens[2] else None
