"""What is alike in all calls of a list, and which of them are special: worked out once for each rest of a list."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from cachecost.analysis.optimum.plan_evaluator import BareCall
from cachecost.analysis.optimum.tree import CallPass, Tail
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.sizes import Place, PrefixSizes


class _SameLengths(NamedTuple):
    """Calls that know the same lengths up to a place, by the `sizes` of one of them; then the other calls."""

    key: object
    place: Place
    sizes: PrefixSizes
    others: _SameLengths | None


class _Special(NamedTuple):
    """A special call, then the later ones."""

    event: CallPass
    later: _Special | None


class _Rest(NamedTuple):
    lengths: _SameLengths
    special: _Special | None


class RestOfCalls:
    """Lengths and special calls of lists, which share their ends. A list costs work for what is new in it."""

    def __init__(self, special: Container[BareCall]) -> None:
        self._is_special = special
        self._known: dict[Tail, _Rest] = {}

    def is_special(self, tail: Tail) -> bool:
        """Whether a bill says more of the blocks of this call than their lengths."""
        return tail.event.sent in self._is_special

    def special(self, tail: Tail) -> list[CallPass]:
        """The special calls of a list, in its order."""
        found, one = list[CallPass](), self._rest(tail).special
        while one is not None:
            found.append(one.event)
            one = one.later
        return found

    def tokens(self, tail: Tail, prefix: Prefix) -> int | None:
        """The tokens that a block adds to each call of a list; None where that is not known to be the same in all."""
        place, asked = (prefix.tokens, prefix.depth), set[object]()
        found: int | None = None
        lengths: _SameLengths | None = self._rest(tail).lengths
        while lengths is not None:
            if lengths.key not in asked:
                tokens = added_tokens(lengths.sizes, prefix)
                if found not in (None, tokens):
                    return None
                found = tokens
                asked.add(lengths.key)
            if place > lengths.place:
                return None
            lengths = lengths.others
        return found

    def _rest(self, tail: Tail) -> _Rest:
        new: list[Tail] = []
        one: Tail | None = tail
        while one is not None and one not in self._known:
            new.append(one)
            one = one.next
        rest = self._known[one] if one is not None else None
        for one in reversed(new):
            rest = self._known[one] = self._extend(one, rest)
        assert rest is not None
        return rest

    def _extend(self, tail: Tail, rest: _Rest | None) -> _Rest:
        """The rest of a list and the call before it. Neighbours that know the same lengths are one."""
        event = tail.event
        special = rest.special if rest else None
        if self.is_special(tail):
            special = _Special(event, special)
        sizes = event.sent.passes[event.index].sizes
        key, place = sizes.shared()
        others = rest.lengths if rest else None
        if others is not None and others.key == key:
            place, others = min(place, others.place), others.others
        return _Rest(_SameLengths(key, place, sizes, others), special)


def tokens_in(calls: Sequence[Tail], prefix: Prefix) -> list[int]:
    """The tokens that a block adds to each of the calls. Those that know the same lengths are asked once."""
    found: list[int] = []
    known: dict[object, int] = {}
    own = prefix.tokens, prefix.depth
    for call in calls:
        sizes = call.event.sent.passes[call.event.index].sizes
        key, place = sizes.shared()
        tokens = known.get(key) if own <= place else None
        if tokens is None:
            tokens = added_tokens(sizes, prefix)
            if own <= place:
                known[key] = tokens
        found.append(tokens)
    return found


def added_tokens(sizes: PrefixSizes, prefix: Prefix) -> int:
    """The tokens that a block adds to its prompt."""
    return sizes.of(prefix) - (sizes.of(prefix.parent) if prefix.parent is not None else 0)
