"""Rebuilds calls and conversations with other blocks. What they shared they still share, in one tree of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cachecost.base.structs import replace as replace_struct
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.model import Conversation, ConversationState, Event, Inquiry
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread
from cachecost.prompts.request import Request

BlockChange = Callable[[Block], Block]


def keep_block(block: Block) -> Block:
    """No change: for threads that only need a common root."""
    return block


class BlockRewriter:
    """Replaces blocks. `change` must return equal blocks for equal ones."""

    def __init__(self, change: BlockChange = keep_block) -> None:
        self._change = change
        self._messages: dict[Message, Message] = {}
        self._parts: dict[Part, Part] = {NOTHING: NOTHING}
        self._threads: dict[Thread, Thread] = {}
        self.root = Thread()

    def call(self, call: RecordedCall) -> RecordedCall:
        """The call with its request and its response rebuilt."""
        return replace_struct(call, request=self.request(call.request), response=self.blocks(call.response))

    def conversation(self, conversation: Conversation) -> Conversation:
        """The conversation with its head and its events rebuilt. Raises ValueError for one found in calls."""
        events = tuple(self._event(event) for event in conversation.events)
        tools, system = self.part(conversation.tools), self.part(conversation.system)
        return replace(conversation, events=events, tools=tools, system=system)

    def request(self, request: Request) -> Request:
        """The request with its parts, its thread and the places of its breakpoints rebuilt."""
        breakpoints = tuple(
            replace_struct(breakpoint, node=breakpoint.node and self.thread(breakpoint.node))
            for breakpoint in request.breakpoints
        )
        return replace_struct(
            request,
            thread=self.thread(request.thread),
            tools=self.part(request.tools),
            system=self.part(request.system),
            breakpoints=breakpoints,
        )

    def part(self, part: Part) -> Part:
        """The same object for the same part."""
        if part not in self._parts:
            self._parts[part] = Part(self.blocks(part.blocks), part.places)
        return self._parts[part]

    def thread(self, thread: Thread) -> Thread:
        """The node of the new tree; costs work only for messages that are new."""
        return thread.fold(self._threads, self.root, lambda made, message: made.then(self._message(message)))

    def blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """The blocks, changed."""
        return tuple(map(self._change, blocks))

    def _message(self, message: Message) -> Message:
        if self._change is keep_block:
            return message
        if message not in self._messages:
            self._messages[message] = Message.of(message.role, self.blocks(message.blocks))
        return self._messages[message]

    def _event(self, event: Event) -> Event:
        if isinstance(event, Inquiry):
            return replace(event, question=self._change(event.question), answer=self._change(event.answer))
        if not isinstance(event, ConversationState):
            raise ValueError("a conversation built from calls: rewrite its calls")
        return replace(event, blocks=self.blocks(event.blocks))
