"""Work in threads that keep nobody waiting."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Made = TypeVar("Made")


async def run_in_thread(work: Callable[[], Made]) -> Made:
    """What `work` returns. Its thread does not keep the process from ending: Ctrl-C waits for no replay."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Made] = loop.create_future()
    context = contextvars.copy_context()

    def finish(outcome: Callable[[], None]) -> None:
        if not made.done():
            outcome()

    def run() -> None:
        try:
            found = context.run(work)
        except BaseException as error:
            failed = error
            _tell(loop, lambda: finish(lambda: made.set_exception(failed)))
        else:
            _tell(loop, lambda: finish(lambda: made.set_result(found)))

    Thread(target=run, daemon=True).start()
    return await made


def _tell(loop: asyncio.AbstractEventLoop, outcome: Callable[[], None]) -> None:
    """Hand the outcome to the loop, unless that has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(outcome)
