"""OpenAI's caching from GPT-5.6 on, written as plainly as its guide tells it, to hold the engine to.

A prompt is a list of blocks; a place is how many of them come before it. Nothing is shared with the engine: no tree,
no breakpoints of the Messages API, no translation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MINIMUM = 1_024
LIVES_S = 1_800.0
WRITES = 4
EARLIER_ENDS = 20


@dataclass(frozen=True)
class Turn:
    """A message: who says it, and its blocks as (name, tokens)."""

    role: str
    blocks: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Asked:
    """A request: developer blocks, messages, marked places, and whether it is in implicit mode."""

    developer: tuple[tuple[str, int], ...]
    turns: tuple[Turn, ...]
    breakpoints: tuple[int, ...]
    is_implicit: bool

    @property
    def blocks(self) -> list[tuple[str, str, int]]:
        blocks = [("developer", name, tokens) for name, tokens in self.developer]
        return blocks + [(turn.role, name, tokens) for turn in self.turns for name, tokens in turn.blocks]

    @property
    def user_ends(self) -> list[int]:
        """The places where user messages end, in the order of the prompt."""
        place, found = len(self.developer), []
        for turn in self.turns:
            place += len(turn.blocks)
            if turn.role == "user":
                found.append(place)
        return found


@dataclass
class NaiveOpenAI:
    """Entries by all that comes before them; each with the time it was last written or read."""

    entries: dict[tuple[tuple[str, str, int], ...], float] = field(default_factory=dict)

    def call(self, asked: Asked, now: float) -> tuple[int, int, int]:
        """(read, written, neither) of a request at `now` seconds."""
        blocks = asked.blocks
        developer = [len(asked.developer)] if asked.developer else []
        own = [asked.user_ends[-1], *developer] if asked.is_implicit else []
        explicit = [breakpoint for breakpoint in asked.breakpoints if breakpoint not in own[:1]]
        written = {*own, *explicit[-(WRITES - asked.is_implicit) :]}
        looked_at = {*explicit[:2], *explicit[2:][-50:], *own}
        looked_at |= set(asked.user_ends[-1 - EARLIER_ENDS :]) if asked.is_implicit else set()
        hit = max((place for place in looked_at if self._is_found(blocks, place, now)), default=0)
        for place in {hit, *written} - {0}:
            self.entries[tuple(blocks[:place])] = now
        last = max((place for place in {hit, *written} if _tokens(blocks, place) >= MINIMUM), default=0)
        total, read = _tokens(blocks, len(blocks)), _tokens(blocks, hit)
        through = max(read, _tokens(blocks, last))
        return read, through - read, total - through

    def _is_found(self, blocks: list[tuple[str, str, int]], place: int, now: float) -> bool:
        touched = self.entries.get(tuple(blocks[:place]))
        return touched is not None and touched < now < touched + LIVES_S and _tokens(blocks, place) >= MINIMUM


def _tokens(blocks: list[tuple[str, str, int]], place: int) -> int:
    return sum(tokens for _, _, tokens in blocks[:place])
