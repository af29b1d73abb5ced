"""Faults that the server injects, by a call's number or by seeded chance.

`429`, `500` and `529` replace the answer: such a call costs nothing and writes nothing. `cut` (the connection drops
in the middle of the answer), `timeout` (no answer until the client leaves), `slow` (the first token is late) and
`garbage` (neither JSON nor events) affect an answer that is billed as usual. In-process, a cut is `ConnectionCut`,
raised by the app.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cachecost.base.errors import nearest

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
    _by_call: dict[int, InjectedFault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self.faults:
            if fault.call is not None:
                self._by_call.setdefault(fault.call, fault)

    def of(self, call: int) -> InjectedFault | None:
        """The fault of the `call`-th call (each retry counts as a call); None: it is answered."""
        return self._by_call.get(call) or next((one for one in self.faults if self._strikes(one, call)), None)

    def _strikes(self, fault: InjectedFault, call: int) -> bool:
        dice = random.Random(f"{self.seed}:{call}:{fault.kind}")
        return fault.call is None and dice.random() < fault.chance


def faults_from(texts: Iterable[str], seed: int = 0) -> FaultSchedule:
    """`3:529`, `cut:0.1`, `4:slow=5` (seconds) … Raises ValueError."""
    return FaultSchedule(tuple(map(_fault, texts)), seed)


def _fault(text: str) -> InjectedFault:
    if found := BY_NUMBER.fullmatch(text):
        return _validate(text, found[2], found[3], call=int(found[1]))
    if (found := BY_CHANCE.fullmatch(text)) and float(found[3]) <= 1:
        return _validate(text, found[1], found[2], chance=float(found[3]))
    raise ValueError(f"expected {FORM}; got '{text}'")


def _validate(text: str, kind: str, told: str | None, call: int | None = None, chance: float = 0.0) -> InjectedFault:
    if kind not in KINDS or call == 0 or (told and kind not in SECONDS):
        raise ValueError(f"expected {FORM}; got '{text}'{'' if kind in KINDS else nearest(kind, KINDS)}")
    return InjectedFault(kind, call, chance, float(told) if told else SECONDS.get(kind, 0.0))
