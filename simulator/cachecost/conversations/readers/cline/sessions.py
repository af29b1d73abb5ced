"""Sessions of Cline's SDK (its command line from 3, its extension from 4.1) as calls.

A session is a folder `sessions/ID` with `ID.messages.json` (the log: an answer and its usage in each assistant message)
and `ID.json` (folder and model). Sub-agents and teammates have their messages in `AGENT.messages.json` in the folder
of the session that started them. The messages of a session that was compacted begin with the summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import read_input
from cachecost.conversations.readers.cline.files import content_blocks, count_blocks, decode, read_json
from cachecost.conversations.readers.cline.records import (
    SdkManifest,
    SdkMessage,
    SdkMetrics,
    SdkOrigin,
    SdkSession,
    sdk_usage,
    to_seconds,
)
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.stored_calls import StoredCall
from cachecost.providers.hosts import parse_model_name

ENDING = ".messages.json"
MISSING = "of calls that are no longer stored"
SUMMARY = "compaction_summary"
RESULT, THINKING = b'"tool_result"', (b'"thinking"', b'"redacted_thinking"')


@dataclass(slots=True)
class SdkCalls:
    """The calls of the messages of one session or sub-agent; errors and notes on the way."""

    path: Path
    with_content: bool
    faults: list[Fault] = field(default_factory=list)
    notes: ReaderNotes = field(default_factory=ReaderNotes)
    missing: int = 0
    """Tokens of calls that the session no longer has."""
    _last: StoredCall | None = None
    _events: set[str] = field(default_factory=set)
    _waiting: list[dict[str, Any]] = field(default_factory=list)
    _chars: int = 0
    _new_blocks: int = 0
    _time: float | None = None

    def calls(self) -> list[StoredCall]:
        """The calls in their order. Raises InputError where the file cannot be read."""
        session = decode(read_input(self.path), SdkSession, self.path, self.faults)
        if session is None:
            return []
        folder, own = self.path.absolute().parent.name, self.path.name.removesuffix(ENDING)
        manifest = self._manifest(folder)
        version = (session.origin or SdkOrigin()).version
        is_agent = own not in (folder, session.session_id) or session.agent in ("subagent", "teammate")
        found = list(self._calls(session.messages, manifest, is_agent))
        if not is_agent:
            self._note_missing(found, manifest)
        for call in found:
            call.session, call.agent = folder, own if is_agent else ""
            call.project, call.version = manifest.cwd, version
            call.id = f"cline {folder} {call.id}"
        return found

    def _note_missing(self, found: list[StoredCall], manifest: SdkManifest) -> None:
        """What the session was billed by its own count, and no message of it was: a compaction removes messages."""
        told = manifest.metadata.usage if manifest.metadata and manifest.metadata.usage else SdkMetrics()
        stored = sum(call.usage.total_input + call.usage.output_tokens for call in found if call.usage)
        self.missing = max(0, int(told.input_tokens or 0) + int(told.output_tokens or 0) - stored)
        if self.missing:
            self.notes.add("token", MISSING, self.missing)

    def _manifest(self, folder: str) -> SdkManifest:
        return read_json(self.path.with_name(f"{folder}.json"), SdkManifest, self.faults) or SdkManifest()

    def _calls(self, messages: list[SdkMessage], manifest: SdkManifest, is_agent: bool) -> Iterator[StoredCall]:
        for number, message in enumerate(messages):
            if message.metadata and message.metadata.display_only:
                self._events.add("error")
            elif message.role == "user":
                self._take_user(message, number, is_agent)
            elif message.role == "assistant":
                call = self._call(message, number, manifest)
                if call is not None:
                    yield call
            self._time = to_seconds(message.ts) or self._time

    def _take_user(self, message: SdkMessage, number: int, is_agent: bool) -> None:
        content = bytes(message.content)
        if message.metadata and message.metadata.kind == SUMMARY:
            self._events.add("compaction")
        elif not is_agent and RESULT not in content:
            self._events.add("human")
        self._chars += len(content)
        self._new_blocks += count_blocks(message.content)
        if self.with_content:
            self._waiting.append({"role": "user", "content": self._blocks(message, number)})

    def _call(self, message: SdkMessage, number: int, manifest: SdkManifest) -> StoredCall | None:
        """The call of an assistant message. One without usage is part of the history of the next, and no call."""
        usage = None
        try:
            usage = sdk_usage(message.metrics) if message.metrics else None
        except ValueError as error:
            self.faults.append(Fault(str(self.path), f"messages[{number}].metrics.{error}"))
        if usage is None or not (usage.total_input or usage.output_tokens):
            self.notes.skip("answer", "no usage")
            if self.with_content:
                self._waiting.append({"role": "assistant", "content": self._blocks(message, number)})
            return None
        return self._new_call(message, number, manifest, StoredCall("", usage))

    def _new_call(self, message: SdkMessage, number: int, manifest: SdkManifest, call: StoredCall) -> StoredCall:
        told = message.model_info
        model, provider = (told.id, told.provider) if told and told.id else (manifest.model, manifest.provider)
        call.model, call.host = parse_model_name(model, provider)
        call.end = to_seconds(message.ts)
        call.start = self._time if self._time is not None else call.end
        call.before, call.is_cut = self._last, "compaction" in self._events
        if self._last is not None and (self._last.model, self._last.host) != (call.model, call.host):
            self._events.add("model")
        call.events, call.id = frozenset(self._events), message.id or str(number)
        call.blocks, call.new_chars = self._new_blocks, self._chars
        content = bytes(message.content)
        call.has_thinking = any(kind in content for kind in THINKING)
        if self.with_content:
            call.messages, call.answer = self._waiting, self._blocks(message, number)
        self._last, self._events, self._waiting = call, set(), []
        self._new_blocks, self._chars = count_blocks(message.content), len(content)
        return call

    def _blocks(self, message: SdkMessage, number: int) -> list[Any]:
        try:
            return content_blocks(message.content)
        except ValueError as error:
            self.faults.append(Fault(str(self.path), f"messages[{number}].content: {error}"))
            return []
