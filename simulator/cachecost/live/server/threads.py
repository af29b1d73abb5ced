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
from cachecost.prompts.intake import Intake
from cachecost.prompts.refusals import THREAD_NOT_FOUND, sent_breakpoints
from cachecost.prompts.request import MessageThread
from cachecost.prompts.wire import BREAKPOINT, NotAMessage

Body = Mapping[str, Any]
HELD = ("tools", "system")
MOST = 10_000
"""Threads that are kept; the oldest is dropped first."""


@dataclass(frozen=True, slots=True)
class HeldThread:
    """What is stored under a message id: tools and system, and the messages up to that answer.

    `last` is when the thread was last used, in seconds since the epoch.
    """

    head: Mapping[str, Any]
    messages: Sequence[Any]
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A complete call. `thread`: its answer can be continued; `continues` is the message id that it continues.

    `start` is when the call began, in seconds since the epoch. `host` is whose cache and prices count (None: that of
    the server's setup).
    """

    body: Body
    thread: MessageThread | None = None
    continues: str | None = None
    start: float = 0.0
    host: str | None = None


class Threads:
    """The threads of all workspaces."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], HeldThread | None] = {}

    def resolve(self, workspace: str, body: Body, now: float = 0.0) -> ResolvedCall | ApiError:
        """The complete call, without `thread`."""
        thread = body.get("thread")
        rest = {name: value for name, value in body.items() if name != "thread"}
        if thread is None:
            return ResolvedCall(rest if "thread" in body else body)
        kind = thread.get("type") if isinstance(thread, Mapping) else None
        if kind == "create":
            return ResolvedCall(rest, MessageThread("", _breakpoints(rest)), start=now)
        if kind != "continue":
            return invalid("thread.type: Input should be 'create' or 'continue'")
        return self._continue_thread(workspace, rest, thread.get("previous_message_id"), now)

    def _continue_thread(
        self, workspace: str, rest: dict[str, Any], previous: object, now: float
    ) -> ResolvedCall | ApiError:
        if not isinstance(previous, str):
            return invalid("thread.previous_message_id: Field required")
        if told := [name for name in HELD if rest.get(name) is not None]:
            return thread_error(
                "thread_fingerprint_mismatch", f"{told[0]}: is held by the thread and cannot be sent again"
            )
        held = self._held.get((workspace, previous), _NOTHING)
        if held is None:
            return thread_error("thread_already_continued", f"thread: {previous} has already been continued")
        if held is _NOTHING:
            return thread_error("thread_not_found", THREAD_NOT_FOUND, 404, NOT_FOUND)
        new = rest.get("messages")
        messages = [*held.messages, *(new if isinstance(new, list) else [])]
        use = MessageThread("", _breakpoints(rest), now - held.last)
        return ResolvedCall({**held.head, **rest, "messages": messages}, use, previous, now)

    def keep(self, workspace: str, resolved: ResolvedCall, message: Mapping[str, Any]) -> None:
        """Store an answered call under its answer's id."""
        if resolved.thread is None:
            return
        if resolved.continues is not None:
            self._held[workspace, resolved.continues] = None
        head = {name: resolved.body[name] for name in HELD if resolved.body.get(name) is not None}
        said = {"role": "assistant", "content": message["content"]}
        messages = [*map(without_breakpoints, resolved.body["messages"]), *([said] if message["content"] else [])]
        self._held[workspace, str(message["id"])] = HeldThread(head, messages, resolved.start)
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


def _breakpoints(body: Body) -> int:
    """How many breakpoints a body has; 0 where it is no Messages request."""
    try:
        return len(sent_breakpoints(Intake().body({"model": "", "messages": [], **body})).every)
    except NotAMessage:
        return 0


def thread_error(code: str, message: str, status: int = 400, kind: str = INVALID) -> ApiError:
    return DetailedError(status, kind, message, details={"error_code": code})
