"""What calls have in common that are fixed together."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Thread

Conversation = tuple[Thread, bool]
"""The first message of a conversation, and whether it is in a batch."""
Kind = tuple[str, str, bytes, bool]
"""Host, model and tools of a conversation, and whether it is in a batch: what is known when it begins."""

StaticPrefix = tuple[str, str, str, bytes, bytes]
"""Host, workspace, model, tools and system prompt."""


def conversation_of(call: Call) -> Conversation:
    """The conversation of a call, whatever its host, workspace and model."""
    return call.request.thread.up_to(1), call.is_batch


def static_prefix_of(call: Call) -> StaticPrefix:
    """The static prefix that a call sends."""
    return call.host or "", call.workspace, call.request.model, call.request.tools.digest, call.request.system.digest


def kind_of(call: Call) -> Kind:
    """The kind of conversation that a call is of."""
    return call.host or "", call.request.model, call.request.tools.digest, call.is_batch


class Conversations:
    """The conversations of calls. Where a change of the first message made two of one, they are joined."""

    def __init__(self) -> None:
        self._joined: dict[Conversation, Conversation] = {}

    def of(self, call: Call) -> Conversation:
        found = conversation_of(call)
        while found in self._joined:
            found = self._joined[found]
        return found

    def join(self, call: Call, earlier: Call) -> None:
        """Both calls are of one conversation."""
        one, other = self.of(call), self.of(earlier)
        if one != other:
            self._joined[one] = other


ScopeOf = Callable[[Conversations, Call], Hashable]
"""What the calls have in common that a fix is made for."""


def in_conversation(conversations: Conversations, call: Call) -> Hashable:
    return conversations.of(call)


def in_kind(conversations: Conversations, call: Call) -> Hashable:
    return kind_of(call)


def in_static_prefix(conversations: Conversations, call: Call) -> Hashable:
    return static_prefix_of(call)
