"""What calls have in common that are fixed together."""

from __future__ import annotations

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
