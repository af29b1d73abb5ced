"""Copies of a call's bytes while they are forwarded, within limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_BYTES = 64 << 20
"""The longest body that is recorded, encoded or decoded; the API accepts 32 MB. A longer one is only
forwarded.
"""
ROOM = 512 << 20
"""Bytes of all calls that are kept at once; beyond that, bytes are forwarded and not kept."""
PER_CHUNK = 128
"""Overhead of a chunk in bytes."""


@dataclass(slots=True)
class CaptureMemory:
    """How many more bytes may be kept."""

    left: int = ROOM

    def take(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(slots=True)
class BodyCopy:
    """The chunks of a body, each with its time of arrival. Not `is_whole`: it was too long and is dropped."""

    room: CaptureMemory
    most: int = MOST_BYTES
    is_whole: bool = True
    size: int = 0
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    _taken: int = 0

    def add(self, at: float, data: bytes) -> None:
        """Keep a chunk, if there is memory left."""
        self.size += len(data)
        if not self.is_whole:
            return
        if self.size > self.most or not self.room.take(len(data) + PER_CHUNK):
            self.is_whole = False
            self.drop()
        else:
            self._taken += len(data) + PER_CHUNK
            self.chunks.append((at, data))

    def drop(self) -> None:
        """Release the memory."""
        self.room.left += self._taken
        self._taken = 0
        self.chunks = []

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.chunks)


@dataclass(slots=True)
class Capture:
    """One call to the Messages API. Times are seconds since the epoch; `number` counts calls by their start, from 1.

    `asked` and `answered` are headers by lower-case name, which are never stored, and `secrets` their secrets, longest
    first. `is_cut`: the answer's end was not forwarded (yet), because the upstream broke off or the client left.
    """

    number: int
    start: float
    asked: Mapping[str, str]
    request: BodyCopy
    answer: BodyCopy
    answered: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    end: float = 0.0
    is_cut: bool = True
    secrets: Sequence[str] = ()

    def drop(self) -> None:
        """Forget the bodies."""
        self.request.drop()
        self.answer.drop()
