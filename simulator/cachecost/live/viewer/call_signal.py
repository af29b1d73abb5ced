"""Tells those who wait that calls were added, from any thread to any event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class CallWaiter:
    """Waits on one event loop."""

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
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set, is_over)

    def _set(self, is_over: bool) -> None:
        self._changed.set()
        if is_over:
            self._stopped.set()


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
        """Calls were added."""
        with self._lock:
            waiting = list(self._waiters)
        for one in waiting:
            one.tell(self.has_stopped)

    def stop(self) -> None:
        """Nothing more comes: who waits ends, so that the server can."""
        self.has_stopped = True
        self.tell()
