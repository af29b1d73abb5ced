"""The calls that a server has seen so far, each with the conversation that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock
from typing import Protocol

from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.live.viewer.call_signal import CallSignal
from cachecost.prompts.blocks import Thread

ID_BYTES = 6
LONGEST_READ = 2000
LONGEST_TITLE = 48


class CallFeed(Protocol):
    """Calls in the order they start; they are only added."""

    def since(self, count: int) -> Sequence[RecordedCall]:
        """The calls after the first `count`; from any thread."""
        ...


class CallList:
    """A feed that whoever records adds to, and that tells `signal`."""

    def __init__(self, signal: CallSignal) -> None:
        self._calls: list[RecordedCall] = []
        self._signal = signal
        self._lock = Lock()

    def add(self, call: RecordedCall) -> None:
        with self._lock:
            self._calls.append(call)
        self._signal.tell()

    def since(self, count: int) -> Sequence[RecordedCall]:
        with self._lock:
            return self._calls[count:]


def call_of_session(call: RecordedCall, number: int) -> RecordedCall:
    """The call with an id, and with a session: calls that begin with the same message are one conversation."""
    session = call.session or _conversation(call)
    made: RecordedCall = replace(call, session=session, id=call.id or f"call {number}")
    return made


def _conversation(call: RecordedCall) -> str:
    first = call.request.thread.beginning.message
    said = blake2b(call.workspace.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES)
    for block in first.blocks if first else ():
        said.update(block.digest)
    return said.hexdigest()


def conversation_title(first: Thread) -> str:
    """The title of the conversation that begins with a message: the beginning of the first text that a person wrote;
    "" without content.
    """
    blocks = first.message.blocks if first.message else ()
    texts = [str(block.content.get("text") or "") for block in blocks if block.content is not None]
    plain = [text for text in texts if text.strip() and not text.lstrip().startswith("<")]
    shown = "".join(letter if letter.isprintable() else " " for letter in (plain or texts or [""])[0][:LONGEST_READ])
    words = " ".join(shown.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 1].rstrip() + "…"
