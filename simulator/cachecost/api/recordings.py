"""Recordings: a conversation, or a log of calls with their bills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import input_path
from cachecost.conversations.model import Conversation
from cachecost.conversations.sessions import read_conversations
from cachecost.scenario import head_parts
from cachecost.scenario.conversation_models import Head


@dataclass(frozen=True, slots=True, repr=False)
class Recording:
    """A log of calls: the conversations found in it, and the calls with their bills."""

    name: str
    conversations: list[Conversation]
    calls: list[RecordedCall]

    @property
    def model(self) -> str | None:
        """None: each conversation has its own model."""
        return None

    def __repr__(self) -> str:
        words = f"{count_text(len(self.calls), 'call')} in {count_text(len(self.conversations), 'conversation')}"
        return f"<Recording {self.name}: {words}>"


Source = Conversation | Recording | str | Path
"""A result of `read`, or the path of a recording in any known format."""


def read(path: str | Path, *, tools_tokens: int = 0, system_tokens: int = 0) -> Conversation | Recording:
    """Read a recording in any known format: a conversation, or a log of calls.

    `tools_tokens` and `system_tokens` are the sizes of the tools and the system prompt of a conversation that was
    recorded without them. Raises InputError with every error in the file.
    """
    conversations, calls = read_conversations(_file(input_path(path)))
    if calls or len(conversations) != 1:
        return Recording(PurePath(path).stem, conversations, calls)
    return _with_head(conversations[0], tools_tokens, system_tokens)


def read_source(source: Source) -> Conversation | Recording:
    """The source, read if it is a path. Raises InputError for anything else."""
    if isinstance(source, Conversation | Recording):
        return source
    if isinstance(source, str | Path):
        return read(source)
    raise InputError([Fault("recording:", f"expected a path, or what read() gives; got {_kind(source)}")])


def conversations_in(source: Conversation | Recording) -> Sequence[Conversation]:
    """The conversations of a recording."""
    return source.conversations if isinstance(source, Recording) else [source]


def calls_in(source: Conversation | Recording) -> Sequence[RecordedCall]:
    """The recorded calls; a conversation has none."""
    return source.calls if isinstance(source, Recording) else []


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InputError([Fault(str(path), "expected a file; there is none")])
    return path


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _with_head(conversation: Conversation, tools_tokens: int, system_tokens: int) -> Conversation:
    head = Head.model_validate(
        {
            "tools": {"tokens": tools_tokens} if tools_tokens else None,
            "system": {"tokens": system_tokens} if system_tokens else None,
        }
    )
    tools, system = head_parts(head)
    return replace(
        conversation,
        tools=tools if tools_tokens else conversation.tools,
        system=system if system_tokens else conversation.system,
    )
