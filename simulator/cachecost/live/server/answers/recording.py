"""Answers from a recording: the model's answers to the same messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.server.answers.blocks import stop_reason, text
from cachecost.live.server.model import ClientCall, ModelAnswer
from cachecost.prompts.blocks import DIGEST_BYTES, Message, Thread
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage

NOT_RECORDED = "nothing recorded for this call"


@dataclass(frozen=True, slots=True)
class RecordedAnswer(ModelAnswer):
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _ThreadKey:
    """Identifies a thread without breakpoints: digests of all messages and of the first, and the number of turns."""

    digest: bytes
    first: bytes
    turn: int

    def then(self, message: Message) -> _ThreadKey:
        digest = blake2b(self.digest + message.digest, digest_size=DIGEST_BYTES).digest()
        return _ThreadKey(digest, self.first or digest, self.turn + (message.role == "assistant"))


class RecordingAnswerer:
    """Answers a call as in the recording.

    It prefers the call with the same tools, system and messages, then one with the same messages, then the one at the
    same turn of a conversation with the same first message. `missed` counts calls without a match, which get a
    placeholder.
    """

    def __init__(self, calls: Iterable[Call]) -> None:
        self._intake = Intake()
        self._threads: dict[Thread, _ThreadKey] = {}
        self._whole: dict[tuple[bytes, bytes, bytes], RecordedAnswer] = {}
        self._messages: dict[bytes, RecordedAnswer] = {}
        self._turns: dict[tuple[bytes, int], RecordedAnswer] = {}
        self.missed = 0
        for call in calls:  # of several answers to the same call, the first counts
            if call.has_failed or not call.response or any(block.content is None for block in call.response):
                continue
            content = [block.content for block in call.response if block.content is not None]
            output_tokens = call.billed.output_tokens if call.billed else None
            answer = RecordedAnswer(content, stop_reason(content), call.first_token_s, output_tokens=output_tokens)
            request, key = call.request, self._key_of(call.request.thread)
            self._whole.setdefault((request.tools.digest, request.system.digest, key.digest), answer)
            self._messages.setdefault(key.digest, answer)
            self._turns.setdefault((key.first, key.turn), answer)

    @classmethod
    def load(cls, path: Path) -> RecordingAnswerer:
        """The recording at `path`, in any known format. Raises InputError, also if it has no answers."""
        found = cls(read_calls(path, says_format=False))
        if not found._messages:
            raise InputError([Fault(str(path), "expected a recording with answers; got none whose words were kept")])
        return found

    def answer(self, asked: ClientCall) -> ModelAnswer:
        try:
            request = self._intake.body(asked.body)
        except NotAMessage:
            return ModelAnswer([text(NOT_RECORDED)])
        key = self._key_of(request.thread)
        found = (
            self._whole.get((request.tools.digest, request.system.digest, key.digest))
            or self._messages.get(key.digest)
            or self._turns.get((key.first, asked.turn))
        )
        self.missed += found is None
        return found or ModelAnswer([text(NOT_RECORDED)])

    def _key_of(self, thread: Thread) -> _ThreadKey:
        """The key of a thread. The work is proportional to the new messages."""
        return thread.fold(self._threads, _ThreadKey(b"", b"", 0), _ThreadKey.then)
