"""A conversation as it happened, before any strategy decides what to send and where to place breakpoints.

Times are seconds since the epoch (UTC). Blocks carry their role, so an event is a message to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cachecost.base.formatting import count_text
from cachecost.base.inert import inert
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread
from cachecost.prompts.request import Request


@dataclass(frozen=True, slots=True)
class Human:
    """A person's message."""

    at: float
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The assistant's answer to everything before it: one call of the main thread.

    `at` is when the call started, `first_token_s` how long its first token took (None: unknown),
    `output_tokens` what was billed (None: unknown, then the blocks are counted).
    """

    at: float
    blocks: tuple[Block, ...]
    first_token_s: float | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What the tools of the last reply returned; may hold text next to the tool results."""

    at: float
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A tool asks the assistant something while it runs: a side question between reply and results.

    `tool_use` is the id of the asking call, `batch` numbers inquiries that were asked at once:
    equal numbers could have been asked in parallel. `question` and `answer` are text blocks.
    """

    at: float
    question: Block
    answer: Block
    answer_type: str = "boolean"
    tool_use: str = ""
    batch: int = 0


@dataclass(frozen=True, slots=True)
class ThreadRewrite:
    """The thread was rewritten: its first `keep` messages stay, then come `messages`, without a call.

    `why` is "start" (said before the recording begins), "fork", "compaction", "edit" or "insertion".
    """

    at: float
    keep: int
    messages: tuple[Message, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Switch:
    """From here on the main thread is sent with this model, head and these parameters.

    With `is_chosen` a strategy chose the model: it wins over one that all are to run on.
    """

    at: float
    model: str
    tools: Part
    system: Part
    params: Mapping[str, Any]
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """A side call that leaves nothing in the main thread. The breakpoints of `request` are as recorded."""

    at: float
    request: Request
    reply: Reply


ConversationState = Human | Reply | Results | Inquiry
"""The events of recorded conversations."""
Event = ConversationState | ThreadRewrite | Switch | Aside
"""Conversations that are built from calls also have the other events."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Events in time order, and the head (tools and system) if the recording knows it."""

    name: str
    events: tuple[Event, ...]
    model: str | None = None
    tools: Part = NOTHING
    system: Part = NOTHING
    source: str = ""
    licence: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters of the main thread (thinking, output_config …), as far as known."""
    host: str | None = None
    workspace: str = ""
    is_batch: bool = False
    is_chosen: bool = False
    """Whether a strategy chose `model`: then it wins over one that all are to run on."""
    root: Thread = field(default_factory=Thread, compare=False)
    """What threads grow from: those of a log, so that prompts planned anew share what was recorded."""
    session: str = ""
    project: str = ""
    agent: str = ""
    """These three are as those of a recorded call."""

    def __repr__(self) -> str:
        """What it is in a line: the events are thousands of blocks."""
        asked = f", {count_text(len(self.inquiries), 'side question')}" if self.inquiries else ""
        return f"<Conversation {inert(self.name)}: {count_text(len(self.replies), 'call')}{asked}>"

    @property
    def replies(self) -> list[Reply]:
        return [event for event in self.events if isinstance(event, Reply)]

    @property
    def inquiries(self) -> list[Inquiry]:
        return [event for event in self.events if isinstance(event, Inquiry)]
