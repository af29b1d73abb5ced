"""The parts of a server, and its state between calls."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from cachecost.live.callbacks import Say, ignore
from cachecost.live.clock import Clock
from cachecost.live.log import CallLog
from cachecost.live.server.faults import FaultSchedule
from cachecost.live.server.model import Answerer, Meters
from cachecost.live.server.openai.stored_responses import StoredResponses
from cachecost.live.server.threads import Threads

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
LENGTH = 22


class Ids:
    """Ids derived from the request and how often it was sent, so the order of parallel calls does not matter."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._seen: Counter[bytes] = Counter()

    def next(self, *parts: bytes) -> str:
        """The part of a call's ids after `req_` and `msg_`."""
        said = blake2b(b"\0".join(parts), digest_size=16, person=b"call").digest()
        self._seen[said] += 1
        key = b"%d:%d:" % (self._seed, self._seen[said]) + said
        return "01" + _encode_id(int.from_bytes(blake2b(key, digest_size=16, person=b"id").digest()))


def _encode_id(number: int) -> str:
    letters = []
    for _ in range(LENGTH):
        number, letter = divmod(number, len(LETTERS))
        letters.append(LETTERS[letter])
    return "".join(letters)


class AnswerDelays:
    """Waits that end early when the server stops, so that running answers complete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def count(self) -> int:
        """How many answers are waiting."""
        return len(self._waiting)

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds of the server's clock."""
        if seconds > 0:
            await self.until(self._clock.sleep(seconds))

    async def until(self, happens: Coroutine[Any, Any, None]) -> None:
        """Wait until it `happens`, or until the server stops."""
        task = asyncio.ensure_future(happens)
        self._waiting.add(task)
        try:
            if self._stopped:
                task.cancel()
            await asyncio.wait({task})
        finally:
            self._waiting.discard(task)
            task.cancel()

    def stop(self) -> None:
        self._stopped = True
        for task in self._waiting:
            task.cancel()


@dataclass(slots=True)
class ServerState:
    """What answers and bills calls, by which clock, and the faults to inject.

    `log` records every call (None: nothing is recorded). `models` are the wire objects of /v1/models. Answers without
    a time of their own take `first_token_s` seconds until the first token. `say` prints diagnostics.
    """

    answerer: Answerer
    meters: Meters
    clock: Clock
    log: CallLog | None = None
    faults: FaultSchedule = FaultSchedule()
    models: Sequence[Mapping[str, Any]] = ()
    first_token_s: float = 0.0
    seed: int = 0
    say: Say = ignore
    ids: Ids = field(init=False)
    threads: Threads = field(init=False)
    responses: StoredResponses = field(init=False)
    pauses: AnswerDelays = field(init=False)
    lock: threading.Lock = field(init=False)
    """Calls are billed one at a time, in the order they start."""
    calls: int = field(init=False, default=0)
    unreadable: int = field(init=False, default=0)
    """Refused bodies that are no valid requests, which a request log cannot hold."""

    def __post_init__(self) -> None:
        self.ids = Ids(self.seed)
        self.threads = Threads()
        self.responses = StoredResponses()
        self.pauses = AnswerDelays(self.clock)
        self.lock = threading.Lock()
