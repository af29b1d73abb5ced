"""Puts calls that end in any order into the order they started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")
PATIENCE_S = 60.0
"""How long an ended call waits for one that started earlier."""


@dataclass(slots=True)
class StartOrder(Generic[Item]):
    """Items by call number. `now` is in seconds, of any monotonic clock."""

    patience_s: float = PATIENCE_S
    _running: set[int] = field(default_factory=set)
    _ended: dict[int, tuple[float, Item | None]] = field(default_factory=dict)

    def begin(self, number: int) -> None:
        """A call has started. Numbers follow the order of starts."""
        self._running.add(number)

    def end(self, number: int, item: Item | None, now: float) -> None:
        """A call has ended; `item` is what to return for it (None: nothing)."""
        self._running.discard(number)
        self._ended[number] = (now, item)

    def ready(self, now: float) -> list[Item]:
        """The items that are ready, in order."""
        oldest = min(self._running, default=None)
        late = [number for number, (at, _) in self._ended.items() if now - at >= self.patience_s]
        last = max(late, default=0)
        told = sorted(number for number in self._ended if oldest is None or number < max(oldest, last + 1))
        return self._take(told)

    def rest(self) -> list[Item]:
        """All items of ended calls, in order."""
        return self._take(sorted(self._ended))

    @property
    def is_waiting(self) -> bool:
        return bool(self._ended)

    def _take(self, numbers: list[int]) -> list[Item]:
        items = (self._ended.pop(number)[1] for number in numbers)
        return [item for item in items if item is not None]
