"""What a page shows: whoever serves one has a source of its answers. Calls seen so far, and who waits for more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Thread
from cachecost.views.viewer.sessions import Report, run_page_object, start_object

if TYPE_CHECKING:
    from cachecost.live.viewer.sessions_source import SessionsSource


class CallWaiter:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changed, self._stopped = asyncio.Event(), asyncio.Event()

    async def changed(self, most_s: float) -> bool:
        """Whether calls were added, or all has stopped, within so many seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), most_s)
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until all has stopped."""
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except TimeoutError:
            return

    def tell(self, is_over: bool) -> None:
        """From any thread."""

        def wake() -> None:
            self._changed.set()
            if is_over:
                self._stopped.set()

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(wake)


class CallSignal:
    """Whoever adds calls tells it; whoever shows them waits."""

    def __init__(self) -> None:
        self.has_stopped = False
        self._waiters: set[CallWaiter] = set()
        self._lock = Lock()

    @contextmanager
    def waiter(self) -> Iterator[CallWaiter]:
        """A waiter on the running event loop."""
        one = CallWaiter(asyncio.get_running_loop())
        with self._lock:
            self._waiters.add(one)
        try:
            yield one
        finally:
            with self._lock:
                self._waiters.discard(one)

    def tell(self) -> None:
        with self._lock:
            waiting = list(self._waiters)
        for one in waiting:
            one.tell(self.has_stopped)

    def stop(self) -> None:
        """Nothing more comes: who waits ends, so that the server can."""
        self.has_stopped = True
        self.tell()


ID_BYTES = 6
LONGEST_READ = 2000
LONGEST_TITLE = 48


class CallFeed(Protocol):
    """Calls in the order they start; they are only added."""

    def since(self, count: int) -> Sequence[Call]:
        """The calls after the first `count`; from any thread."""


class CallList:
    """A feed that whoever records adds to, and that tells `signal`."""

    def __init__(self, signal: CallSignal) -> None:
        self._calls: list[Call] = []
        self._signal = signal
        self._lock = Lock()

    def add(self, call: Call) -> None:
        with self._lock:
            self._calls.append(call)
        self._signal.tell()

    def since(self, count: int) -> Sequence[Call]:
        with self._lock:
            return self._calls[count:]


def call_of_session(call: Call, number: int) -> Call:
    """The call with an id, and with a session: calls that begin with the same message are one conversation."""
    session = call.session
    if not session:
        first = call.request.thread.beginning.message
        digest = blake2b(call.workspace.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES)
        for block in first.blocks if first else ():
            digest.update(block.digest)
        session = digest.hexdigest()
    made: Call = replace(call, session=session, id=call.id or f"call {number}")
    return made


def conversation_title(first: Thread) -> str:
    """The title of a conversation: the beginning of the first text that a person wrote; "" without content."""
    blocks = first.message.blocks if first.message else ()
    texts = [str(block.content.get("text") or "") for block in blocks if block.content is not None]
    plain = [text for text in texts if text.strip() and not text.lstrip().startswith("<")]
    shown = "".join(letter if letter.isprintable() else " " for letter in (plain or texts or [""])[0][:LONGEST_READ])
    words = " ".join(shown.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 1].rstrip() + "…"


Answer = Mapping[str, Any]


class NotHere(LookupError):
    """There is nothing of this name or number; the text says of what kind."""


class LiveEvents(Protocol):
    """What is new since a page last looked; `signal` tells when to look. The methods are called in threads."""

    @property
    def signal(self) -> CallSignal: ...

    def seen(self) -> dict[str, tuple[int, float | None]]:
        """How many calls of each session there are, and when the last of them started."""

    def changes(self, seen: dict[str, tuple[int, float | None]]) -> Sequence[tuple[str, Answer]]:
        """Names and data of the events that make what was seen what there is; then it is in `seen`."""


class PageSource:
    """The answers of a page, as JSON objects (docs/reference/output-formats.md, `view`): only what a page shows.

    Methods may take seconds and are called in threads, several at once. They raise NotHere (404), WrongChoice (400),
    and CannotEvaluate, InputError or WorkStopped (422).
    """

    __slots__ = ()

    def start(self) -> Answer:
        """What the page begins with: its kind, title, command and colours."""
        raise NotImplementedError

    def current(self) -> SessionsSource:
        """What answers of sessions, as of now."""
        raise NotHere("no such session")

    def sessions(self) -> Answer:
        raise NotHere("no sessions are shown here")

    def run(self) -> Answer:
        """The strategies of a scenario's report."""
        raise NotHere("no report is shown here")

    def compare(self) -> Answer:
        """Two recordings beside each other."""
        raise NotHere("no recordings are compared here")

    def live(self) -> LiveEvents | None:
        """What tells a page of calls that come; None where none do."""
        return None


@dataclass(slots=True)
class ReportSource(PageSource):
    """The page of a run. `other` is the report of the revision `other_title`."""

    report: Report
    command: str = "cachecost view"
    other: Report | None = None
    other_title: str = ""

    def start(self) -> Answer:
        return start_object("run", str(self.report.result["scenario"]), self.command)

    def run(self) -> Answer:
        return run_page_object(self.report, self.other, self.other_title)
