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
from dataclasses import dataclass
from typing import Any

from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Layer, Message, Thread
from cachecost.prompts.request import MessageThread, Request, sent_breakpoints

PARAMETER = "thread"


@dataclass(slots=True)
class RecordedThread:
    """A thread in a log: `last` is the start of its last request, in seconds."""

    id: str
    last: float


class MessageThreads:
    """The threads of one log. Of each answer, by its id, the API holds the whole request, the answer and the thread."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Request, tuple[Block, ...], RecordedThread]] = {}
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
        whole = request
        if sent.get("type") == "continue":
            turn = self._turns.get(str(sent.get("previous_message_id")))
            if turn is None:
                return request
            thread, whole = turn[2], _continue_thread(turn[0], turn[1], request)
        else:
            self._created += 1
            thread = RecordedThread(answer_id or f"thread {self._created}", start)
        refusable = () if is_billed else (len(sent_breakpoints(request).every), max(0.0, start - thread.last))
        params = {name: value for name, value in request.params.items() if name != PARAMETER}
        whole = replace(whole, params=params, message_thread=MessageThread(thread.id, *refusable))
        if answer_id and answer:
            self._turns[answer_id] = (whole, answer, thread)
            thread.last = start
        return whole


def why_not_whole(params: Mapping[str, Any]) -> str:
    """Why a request is not all that was sent; empty where it is."""
    thread = params.get(PARAMETER)
    if not isinstance(thread, Mapping) or thread.get("type") != "continue":
        return ""
    before = thread.get("previous_message_id")
    return f"message thread (thread: continue): the log has no answer {before} to continue from"


def _continue_thread(before: Request, answer: tuple[Block, ...], new: Request) -> Request:
    """`new`, put behind `before` and its answer; tools and system prompt are those of `before`, unless sent again."""
    thread = before.thread.then(Message.of("assistant", answer))
    places: dict[Thread, Thread] = {}
    for node in list(new.thread.back())[::-1]:
        assert node.message is not None
        thread = places[node] = thread.then(node.message)
    sent_again = {Layer.TOOLS: bool(new.tools.blocks), Layer.SYSTEM: bool(new.system.blocks)}
    kept = [breakpoint for breakpoint in before.breakpoints if not sent_again.get(breakpoint.layer, True)]
    own = [
        replace(breakpoint, node=places[breakpoint.node]) if breakpoint.node else breakpoint
        for breakpoint in new.breakpoints
    ]
    order = list(Layer)
    return replace(
        new,
        thread=thread,
        tools=new.tools if sent_again[Layer.TOOLS] else before.tools,
        system=new.system if sent_again[Layer.SYSTEM] else before.system,
        breakpoints=tuple(sorted([*kept, *own], key=lambda breakpoint: order.index(breakpoint.layer))),
        deferred={**before.deferred, **new.deferred},
    )
