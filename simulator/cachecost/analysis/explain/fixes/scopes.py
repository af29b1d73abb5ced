"""What calls have in common that are fixed together."""

from __future__ import annotations

from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Thread

Conversation = tuple[Thread, bool]
"""The first message of a conversation, and whether it is in a batch."""
Kind = tuple[str, str, bytes, bool]
"""Host, model and tools of a conversation, and whether it is in a batch: what is known when it begins."""


def conversation_of(call: Call) -> Conversation:
    """The conversation of a call, whatever its host, workspace and model."""
    return call.request.thread.up_to(1), call.is_batch


def kind_of(call: Call) -> Kind:
    """The kind of conversation that a call is of."""
    return call.host or "", call.request.model, call.request.tools.digest, call.is_batch
