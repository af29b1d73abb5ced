"""The parts of a server and its state between calls, and the faults that it injects, by number or by seeded chance."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any

from cachecost.base.errors import nearest
from cachecost.live.clock import Clock, Say, ignore
from cachecost.live.request_log import CallLog
from cachecost.live.server.meter import Meter
from cachecost.live.server.model import Answerer, StoredResponses, Threads

ERRORS = {"429": 429, "500": 500, "529": 529}
SECONDS = {"429": 1.0, "slow": 30.0}
"""Kinds with a number of seconds, and its default: `retry-after`, and the delay of the first token."""
KINDS = (*ERRORS, "cut", "timeout", "slow", "garbage")
FORM = "NUMBER:KIND or KIND:CHANCE, where KIND is one of 429, 500, 529, cut, timeout, slow, garbage"
BY_NUMBER = re.compile(r"(\d+):([a-z]\w*|\d{3})(?:=(\d+(?:\.\d+)?))?")
BY_CHANCE = re.compile(r"([a-z]\w*|\d{3})(?:=(\d+(?:\.\d+)?))?:(\d*\.?\d+)")
GARBAGE = b"\x00\xff{not json\xfe\n\n"


class ConnectionCut(ConnectionResetError):
    """The server drops the connection in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """One kind of fault: at the `call`-th Messages call (from 1), or at each with this `chance`."""

    kind: str
    call: int | None = None
    chance: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """Which call gets which fault: the first that matches. The same seed and calls give the same faults."""

    faults: tuple[InjectedFault, ...] = ()
    seed: int = 0

    def for_call(self, call: int) -> InjectedFault | None:
        """The fault of the `call`-th call (each retry counts as a call); None: it is answered."""
        by_chance = [fault for fault in self.faults if fault.call is None]
        drawn = ((fault, random.Random(f"{self.seed}:{call}:{fault.kind}").random()) for fault in by_chance)
        struck = (fault for fault, number in drawn if number < fault.chance)
        return next(chain((fault for fault in self.faults if fault.call == call), struck), None)


def faults_from(texts: Iterable[str], seed: int = 0) -> FaultSchedule:
    """`3:529`, `cut:0.1`, `4:slow=5` (seconds) … Raises ValueError."""
    faults = []
    for text in texts:
        if found := BY_NUMBER.fullmatch(text):
            faults.append(_validate(text, found[2], found[3], call=int(found[1])))
        elif (found := BY_CHANCE.fullmatch(text)) and float(found[3]) <= 1:
            faults.append(_validate(text, found[1], found[2], chance=float(found[3])))
        else:
            raise ValueError(f"expected {FORM}; got '{text}'")
    return FaultSchedule(tuple(faults), seed)


def _validate(text: str, kind: str, seconds: str | None, call: int | None = None, chance: float = 0.0) -> InjectedFault:
    if kind not in KINDS or call == 0 or (seconds and kind not in SECONDS):
        raise ValueError(f"expected {FORM}; got '{text}'{'' if kind in KINDS else nearest(kind, KINDS)}")
    return InjectedFault(kind, call, chance, float(seconds) if seconds else SECONDS.get(kind, 0.0))


LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Ids:
    """Ids derived from the request and how often it was sent, so the order of parallel calls does not matter."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._seen: Counter[bytes] = Counter()

    def next(self, *parts: bytes) -> str:
        """The part of a call's ids after `req_` and `msg_`."""
        call = blake2b(b"\0".join(parts), digest_size=16, person=b"call").digest()
        self._seen[call] += 1
        key = b"%d:%d:" % (self._seed, self._seen[call]) + call
        number = int.from_bytes(blake2b(key, digest_size=16, person=b"id").digest())
        text = "01"
        for _ in range(22):
            number, letter = divmod(number, len(LETTERS))
            text += LETTERS[letter]
        return text


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
    meters: Meter
    clock: Clock
    log: CallLog | None = None
    faults: FaultSchedule = FaultSchedule()
    models: Sequence[Mapping[str, Any]] = ()
    first_token_s: float = 0.0
    seed: int = 0
    say: Say = ignore
    ids: Ids = field(init=False)
    threads: Threads = field(init=False, default_factory=Threads)
    responses: StoredResponses = field(init=False, default_factory=StoredResponses)
    pauses: AnswerDelays = field(init=False)
    lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Calls are billed one at a time, in the order they start."""
    calls: int = field(init=False, default=0)
    unreadable: int = field(init=False, default=0)
    """Refused bodies that are no valid requests, which a request log cannot hold."""

    def __post_init__(self) -> None:
        self.ids = Ids(self.seed)
        self.pauses = AnswerDelays(self.clock)
