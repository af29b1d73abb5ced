"""Message threads: requests that send only what is new, because the API holds what came before.

Beta `message-threads-2026-08-12` (platform.claude.com, Message threads, November 2026): a request with
`thread: {"type": "create"}` is an ordinary one; `{"type": "continue", "previous_message_id": ID}` goes on from the
answer with that id: its prompt is the messages, tools and system prompt of that request, the answer, and the messages
of its own. Where request and answer are in the log, the call is made whole, and its parameters no longer have
`thread`: what the API may refuse is in `Request.message_thread`. Where they are not, `thread` stays there, and the
call cannot be evaluated (`why_not_whole`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cachecost.prompts.blocks import Block, Layer, Message, Thread
from cachecost.prompts.request import Breakpoint, MessageThread, Request, sent_breakpoints

PARAMETER = "thread"


@dataclass(slots=True)
class RecordedThread:
    """A thread in a log: `last` is the start of its last request, in seconds."""

    id: str
    last: float


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What the API holds after a call: the whole request and its answer."""

    request: Request
    answer: tuple[Block, ...]
    thread: RecordedThread


class MessageThreads:
    """The threads of one log, by the ids of their answers."""

    def __init__(self) -> None:
        self._turns: dict[str, RecordedTurn] = {}
        self._created = 0

    def complete(
        self, request: Request, start: float, answer_id: str, answer: tuple[Block, ...], is_billed: bool
    ) -> Request:
        """A request with what its thread holds. It and its answer are kept for the calls that go on from them.

        `is_billed`: the log shows that the call was not refused.
        """
        sent = request.params.get(PARAMETER)
        if not isinstance(sent, Mapping):
            return request
        before = self._turns.get(str(sent.get("previous_message_id"))) if sent.get("type") == "continue" else None
        if before is None and sent.get("type") == "continue":
            return request
        thread = before.thread if before else self._create(answer_id, start)
        use = _use(request, thread, start, is_billed)
        whole = _continue_thread(before.request, before.answer, request) if before else request
        whole = replace(
            whole,
            params={name: value for name, value in request.params.items() if name != PARAMETER},
            message_thread=use,
        )
        if answer_id and answer:
            self._turns[answer_id] = RecordedTurn(whole, answer, thread)
            thread.last = start
        return whole

    def _create(self, answer_id: str, start: float) -> RecordedThread:
        self._created += 1
        return RecordedThread(answer_id or f"thread {self._created}", start)


def why_not_whole(params: Mapping[str, Any]) -> str:
    """Why a request is not all that was sent; empty where it is."""
    thread = params.get(PARAMETER)
    if not isinstance(thread, Mapping) or thread.get("type") != "continue":
        return ""
    before = thread.get("previous_message_id")
    return f"message thread (thread: continue): the log has no answer {before} to continue from"


def _use(request: Request, thread: RecordedThread, start: float, is_billed: bool) -> MessageThread:
    if is_billed:
        return MessageThread(thread.id)
    return MessageThread(thread.id, len(sent_breakpoints(request).every), max(0.0, start - thread.last))


def _continue_thread(before: Request, answer: tuple[Block, ...], new: Request) -> Request:
    """`new`, put behind `before` and its answer; tools and system prompt are those of `before`, unless sent again."""
    thread = before.thread.then(Message.of("assistant", answer))
    places: dict[Thread, Thread] = {}
    for node in list(new.thread.back())[::-1]:
        assert node.message is not None
        thread = places[node] = thread.then(node.message)
    parts = {Layer.TOOLS: new.tools if new.tools.blocks else before.tools}
    parts[Layer.SYSTEM] = new.system if new.system.blocks else before.system
    kept = [
        breakpoint
        for breakpoint in before.breakpoints
        if breakpoint.layer in parts and not _part(new, breakpoint.layer)
    ]
    own = [
        replace(breakpoint, node=places[breakpoint.node]) if breakpoint.node else breakpoint
        for breakpoint in new.breakpoints
    ]
    return replace(
        new,
        thread=thread,
        tools=parts[Layer.TOOLS],
        system=parts[Layer.SYSTEM],
        breakpoints=tuple(sorted([*kept, *own], key=_layer)),
        deferred={**before.deferred, **new.deferred},
    )


def _part(request: Request, layer: Layer) -> tuple[Block, ...]:
    return (request.tools if layer is Layer.TOOLS else request.system).blocks


def _layer(breakpoint: Breakpoint) -> int:
    return list(Layer).index(breakpoint.layer)
