"""What a page shows: whoever serves one has a source of its answers, made in threads that keep nobody waiting.

Work ends when its client has left, or after some time. Calls seen so far, and who waits for more, are here too.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from threading import Event, Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from starlette.types import Receive

from cachecost.base.atomic_files import WorkStopped, checked_by, current_work_check
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.live.loopback import client_left
from cachecost.prompts.blocks import Thread
from cachecost.views.viewer.sessions import Report, run_page_object, start_object

if TYPE_CHECKING:
    from cachecost.live.viewer.sessions_source import SessionsSource


Made = TypeVar("Made")


class TooLong(WorkStopped):
    """The work takes longer than a page waits; the text says what to do instead."""


class WorkLimit:
    """Ends the work for an answer when its client has left, or after `seconds` (None: never)."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = monotonic) -> None:
        self._now, self._seconds = now, seconds
        self._end = float("inf") if seconds is None else now() + seconds
        self._has_left = Event()

    def stop(self) -> None:
        self._has_left.set()

    def check(self) -> None:
        """Raises WorkStopped where the work is to end."""
        if self._has_left.is_set():
            raise WorkStopped("the client has left")
        if self._now() >= self._end:
            raise TooLong(f"a replay of this takes longer than the {self._seconds:g} s that a page waits")


@contextmanager
def held(lock: Lock | RLock) -> Iterator[None]:
    """The lock, unless the work is to end before it is free."""
    check = current_work_check()
    # how soon who waits for a lock sees that nobody waits for the answer
    while not lock.acquire(timeout=0.25 if check else -1):
        if check:
            check()
    try:
        yield
    finally:
        lock.release()


async def run_for_client(work: Callable[[], Made], receive: Receive, limit: WorkLimit) -> Made:
    """As `run_in_thread`, within the limit and for as long as the client is there."""

    def limited() -> Made:
        with checked_by(limit.check):
            return work()

    leaving = asyncio.ensure_future(client_left(receive))
    leaving.add_done_callback(lambda _: limit.stop())
    try:
        return await run_in_thread(limited)
    finally:
        leaving.cancel()


async def run_in_thread(work: Callable[[], Made]) -> Made:
    """What `work` returns. Its thread does not keep the process from ending: Ctrl-C waits for no replay."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Made] = loop.create_future()
    context = contextvars.copy_context()

    def finish(settle: Callable[[Any], None], outcome: object) -> None:
        if not made.done():
            settle(outcome)

    def run() -> None:
        settle: Callable[[Any], None] = made.set_result
        try:
            outcome: object = context.run(work)
        except BaseException as error:
            settle, outcome = made.set_exception, error
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, settle, outcome)

    threading.Thread(target=run, daemon=True).start()
    return await made


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
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

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


ID_BYTES, LONGEST_READ, LONGEST_TITLE = 6, 2000, 48


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
        raise NotHere("no report is shown here")

    def compare(self) -> Answer:
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
