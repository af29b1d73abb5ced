"""Conversations that the server keeps (`thread`): the client sends only what is new.

`{"type": "create"}` stores the call under the answer's id; `{"type": "continue", "previous_message_id": …}` continues
it, once. System and tools are those of the first call. Breakpoints on messages apply only to the call that sent them,
so they are not stored; those on tools and system are (field shapes: anthropic 2.12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.live.server.errors import INVALID, NOT_FOUND, DetailedError, invalid
from cachecost.live.server.model import ApiError
from cachecost.prompts.wire import BREAKPOINT

Body = Mapping[str, Any]
HELD = ("tools", "system")
MOST = 10_000
"""Threads that are kept; the oldest is dropped first."""


@dataclass(frozen=True, slots=True)
class HeldThread:
    """What is stored under a message id: tools and system, and the messages up to that answer."""

    head: Mapping[str, Any]
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A complete call. `keeps`: its answer can be continued; `continues` is the message id that it continues."""

    body: Body
    keeps: bool = False
    continues: str | None = None


class Threads:
    """The threads of all workspaces."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], HeldThread | None] = {}

    def resolve(self, workspace: str, body: Body) -> ResolvedCall | ApiError:
        """The complete call, without `thread`."""
        thread = body.get("thread")
        rest = {name: value for name, value in body.items() if name != "thread"}
        if thread is None:
            return ResolvedCall(rest if "thread" in body else body)
        kind = thread.get("type") if isinstance(thread, Mapping) else None
        if kind == "create":
            return ResolvedCall(rest, keeps=True)
        if kind != "continue":
            return invalid("thread.type: Input should be 'create' or 'continue'")
        return self._continue_thread(workspace, rest, thread.get("previous_message_id"))

    def _continue_thread(self, workspace: str, rest: dict[str, Any], previous: object) -> ResolvedCall | ApiError:
        if not isinstance(previous, str):
            return invalid("thread.previous_message_id: Field required")
        if told := [name for name in HELD if rest.get(name) is not None]:
            return _thread_error(
                "thread_fingerprint_mismatch", f"{told[0]}: is held by the thread and cannot be sent again"
            )
        held = self._held.get((workspace, previous), _NOTHING)
        if held is None:
            return _thread_error("thread_already_continued", f"thread: {previous} has already been continued")
        if held is _NOTHING:
            return _thread_error("thread_not_found", f"thread: no thread was found for {previous}", 404, NOT_FOUND)
        new = rest.get("messages")
        messages = [*held.messages, *(new if isinstance(new, list) else [])]
        return ResolvedCall({**held.head, **rest, "messages": messages}, keeps=True, continues=previous)

    def keep(self, workspace: str, resolved: ResolvedCall, message: Mapping[str, Any]) -> None:
        """Store an answered call under its answer's id."""
        if not resolved.keeps:
            return
        if resolved.continues is not None:
            self._held[workspace, resolved.continues] = None
        head = {name: resolved.body[name] for name in HELD if resolved.body.get(name) is not None}
        said = {"role": "assistant", "content": message["content"]}
        messages = [*map(without_breakpoints, resolved.body["messages"]), *([said] if message["content"] else [])]
        self._held[workspace, str(message["id"])] = HeldThread(head, messages)
        if len(self._held) > MOST:
            del self._held[next(iter(self._held))]


_NOTHING = HeldThread({}, ())
BLOCKS = ("content", "source")


def without_breakpoints(value: Any) -> Any:
    """A message without the breakpoints on its blocks, at any depth; tool inputs are unchanged."""
    if isinstance(value, list):
        return [without_breakpoints(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: without_breakpoints(one) if name in BLOCKS else one for name, one in value.items() if name != BREAKPOINT
    }


def _thread_error(code: str, message: str, status: int = 400, kind: str = INVALID) -> ApiError:
    return DetailedError(status, kind, message, details={"error_code": code})
