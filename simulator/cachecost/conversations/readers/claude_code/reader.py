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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.readers.claude_code.steps import (
    Step,
    read_steps_with_content,
    sniff_lines,
)
from cachecost.conversations.readers.common.session_calls import (
    Session,
    SessionCall,
    SessionRequests,
    on_blocks,
    on_last_block,
)
from cachecost.prompts.blocks import Message, Part, Thread
from cachecost.prompts.request import TTL, Breakpoint
from cachecost.providers.clients.settings import message_breakpoints
from cachecost.providers.prices import CallTerms

LACKS = "transcripts lack system prompt, tools and breakpoints: sized by the bill, breakpoints by client version"
sniff = sniff_lines


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls of a transcript in the order of their first lines; copies of one call in other files share its `id`.
    Raises InputError with every error, each with its line."""
    session = Session(calls=[*read_steps_with_content(path, warn, keep_content)])
    yield from _TranscriptRequests(path, "Claude Code", keep_content, [], looks_ahead=True).calls(session)


@dataclass
class _TranscriptRequests(SessionRequests):
    """Makes calls of the steps of a transcript."""

    _ttls: dict[str, TTL] = field(default_factory=dict)
    """The latest TTL of the main thread and of each sub-agent."""

    def _messages(self, pieces: Sequence[Any]) -> list[Message]:
        blocks = tuple([one.block for one in pieces])
        return [Message.of(blocks[0].role, blocks)] if blocks else []

    def _params(self, call: SessionCall) -> Mapping[str, Any]:
        return CallTerms.of_modes(call.bill.modes).params

    def _breakpoints(self, call: SessionCall, head: Part, thread: Thread) -> Iterator[Breakpoint]:
        bill, ttl = call.bill, self._ttls.get(call.thread, "5m")
        if bill.written:
            ttl = self._ttls[call.thread] = "1h" if bill.tokens[3] else "5m"
        recorded = call.breakpoints if isinstance(call, Step) else None
        on_head, in_messages = recorded or (ttl, (ttl,) * message_breakpoints(bill.version))
        if on_head:
            yield from on_blocks(len(head.blocks), on_head)
        found: list[Breakpoint] = []
        for node in thread.back() if in_messages else ():
            if breakpoint := on_last_block(node, in_messages[-1 - len(found)]):
                found.append(breakpoint)
                if len(found) == len(in_messages):
                    break
        yield from reversed(found)
