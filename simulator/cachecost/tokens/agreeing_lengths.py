"""The billed lengths along a prompt, and which of them agree: a longer prefix never has fewer tokens.

Bills contradict one another where a client removed content that its log still has, where a server added some, or
where one bill is damaged. A prompt's own bill comes first; of the others count as many as agree with it and with one
another. The rest are estimated, as if they had not been billed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from cachecost.base.structs import identity_struct, value

Place = tuple[int, int]
"""Where a prefix ends: its estimated tokens and its depth in blocks. Neither ever falls along a prompt."""
Point = tuple[int, int, int]
"""A place, and the billed tokens up to it."""
START: Point = (0, 0, 0)


@value
class OwnBill:
    """The bill of a prompt: its tokens, and the place up to which it was cached (None: none was)."""

    total: int
    cached: Place | None = None


@identity_struct
class _Link:
    """A point, and the one before it in the longest row of agreeing lengths that ends here."""

    point: Point
    before: _Link | None

    @property
    def length(self) -> int:
        return self.point[2]

    def row(self) -> list[Point]:
        found, link = [self.point], self.before
        while link is not None:
            found.append(link.point)
            link = link.before
        return found[::-1]


by_length = attrgetter("length")


@value
class Points:
    """The first `count` of these points, which prompts that go on from one another share."""

    shared: list[Point]
    count: int

    def __iter__(self) -> Iterator[Point]:
        return islice(self.shared, self.count)


class BilledPath:
    """The billed points from the start of a prompt, in order. Going on costs work for what is new.

    The longest path shares its points with those that it goes on from: each of them ends where its `_count` says.
    """

    __slots__ = ("_count", "_links", "_points", "_rows")

    def __init__(self, points: list[Point], count: int, links: list[_Link], rows: list[_Link]) -> None:
        self._points = points
        self._count = count
        self._links = links
        """One for each point; empty as long as all agree."""
        self._rows = rows
        """Of the rows of 1, 2, 3 … agreeing points, those whose last length is the least."""

    @classmethod
    def start(cls) -> BilledPath:
        return cls([START], 1, [], [])

    @property
    def last(self) -> Point:
        return self._points[self._count - 1]

    def then(self, new: Iterable[Point]) -> BilledPath:
        """The path continued by these points."""
        count = self._count
        is_longest = count == len(self._points)
        points = self._points if is_longest else self._points[:count]
        links = self._links if is_longest else self._links[:count]
        path = BilledPath(points, count, links, self._rows.copy())
        for point in new:
            path._add(point)
        return path

    def _add(self, point: Point) -> None:
        last = self._points[self._count - 1]
        if point[:2] == last[:2]:
            return
        if not self._links and point[2] < last[2]:
            self._link_all()
        self._points.append(point)
        self._count += 1
        if self._links:
            self._link(point)

    def _link_all(self) -> None:
        self._links = []
        for point in islice(self._points, self._count):
            self._link(point)

    def _link(self, point: Point) -> None:
        place = bisect_right(self._rows, point[2], key=by_length)
        link = _Link(point, self._rows[place - 1] if place else None)
        self._links.append(link)
        self._rows[place : place + 1] = [link]

    def shares(self, points: Points) -> bool:
        """Whether these are the points of the path itself, so that keeping them takes little memory."""
        return points.shared is self._points

    def agreeing(self, own: OwnBill | None) -> Points:
        """The points that count: those of the prompt's own bill, and the most that agree with it and one another."""
        *_, last = self._points[self._count - 1]
        most = last if own is None else min(last, own.total)
        if not self._links and most == last:
            return Points(self._points, self._count)
        path = self if self._links else self._linked()
        row = path._rising_to(most, None if own is None else own.cached)
        return Points(row, len(row))

    def _linked(self) -> BilledPath:
        path = BilledPath(self._points, self._count, [], [])
        path._link_all()
        return path

    def _rising_to(self, most: int, cached: Place | None) -> list[Point]:
        """A row of agreeing points with the place `cached`, if that is billed, and `most` tokens at the end."""
        count = self._count
        at = count if cached is None else bisect_left(self._points, cached, 0, count)
        if at < count - 1 and self._points[at][:2] == cached and self._points[at][2] <= most:
            row = self._links[at].row()
            for point in self._points[at + 1 : count - 1]:
                if row[-1][2] <= point[2] <= most:
                    row.append(point)
        else:
            row = self._rows[bisect_right(self._rows, most, key=by_length) - 1].row()
        tokens, depth, _ = self._points[count - 1]
        return row if row[-1][:2] == (tokens, depth) else [*row, (tokens, depth, most)]
