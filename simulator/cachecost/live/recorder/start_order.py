"""Calls that end in any order, told in the order in which they started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")
PATIENCE_S = 60.0
"""How long a call that has ended waits for one that started before it. After that it goes first."""


@dataclass(slots=True)
class StartOrder(Generic[Item]):
    """Items by the numbers of their calls. `now` is in seconds, of any clock that does not go back."""

    patience_s: float = PATIENCE_S
    _running: set[int] = field(default_factory=set)
    _ended: dict[int, tuple[float, Item | None]] = field(default_factory=dict)

    def begin(self, number: int) -> None:
        """A call has started. Calls start in the order of their numbers."""
        self._running.add(number)

    def end(self, number: int, item: Item | None, now: float) -> None:
        """A call has ended, and `item` is what is to be told of it; None: nothing is."""
        self._running.discard(number)
        self._ended[number] = (now, item)

    def ready(self, now: float) -> list[Item]:
        """What can be told now, in order."""
        oldest = min(self._running, default=None)
        late = [number for number, (at, _) in self._ended.items() if now - at >= self.patience_s]
        last = max(late, default=0)
        told = sorted(number for number in self._ended if oldest is None or number < max(oldest, last + 1))
        return self._take(told)

    def rest(self) -> list[Item]:
        """Everything that has ended, whatever it waited for."""
        return self._take(sorted(self._ended))

    @property
    def is_waiting(self) -> bool:
        return bool(self._ended)

    def _take(self, numbers: list[int]) -> list[Item]:
        items = (self._ended.pop(number)[1] for number in numbers)
        return [item for item in items if item is not None]
