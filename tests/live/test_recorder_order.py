"""Calls end in any order; they are told, and at the end stand in the file, in the order in which they started."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

from cachecost.live.recorder.helper_loop import StartOrder
from cachecost.live.recorder.writing import free_place, put_in_order


def test_whoever_ends_first_waits_for_those_before() -> None:
    for ends in permutations((1, 2, 3)):
        order: StartOrder[int] = StartOrder()
        for number in (1, 2, 3):
            order.begin(number)
        told: list[int] = []
        for number in ends:
            order.end(number, number, 0.0)
            told += order.ready(0.0)
            done = ends[: ends.index(number) + 1]
            assert told == [one for one in (1, 2, 3) if all(before in done for before in range(1, one + 1))]
        assert not order.is_waiting


def test_patience_has_an_end() -> None:
    order: StartOrder[str] = StartOrder(patience_s=60.0)
    for number in (1, 2, 3, 4):
        order.begin(number)
    order.end(3, "third", 10.0)
    order.end(2, "second", 20.0)
    order.end(4, "fourth", 30.0)
    assert order.ready(69.9) == []
    assert order.ready(70.0) == ["second", "third"]
    assert order.ready(89.9) == []
    order.end(1, "first, late", 89.9)
    assert order.ready(89.9) == ["first, late", "fourth"]


def test_what_is_not_recorded_holds_nobody_up() -> None:
    order: StartOrder[str] = StartOrder()
    order.begin(1)
    order.begin(2)
    order.end(2, "second", 0.0)
    order.end(1, None, 0.0)
    assert order.ready(0.0) == ["second"]


def test_at_the_end_everything_is_told_in_order() -> None:
    order: StartOrder[int] = StartOrder()
    for number in (1, 2, 3):
        order.begin(number)
    order.end(3, 3, 0.0)
    order.end(2, 2, 0.0)
    assert order.ready(float("inf")) == [2, 3]


def written(path: Path, *times: str | None, end: str = "\n") -> list[str]:
    lines = [json.dumps({"timestamp": time, "request": {"n": number}}) for number, time in enumerate(times)]
    path.write_text("\n".join(lines) + end)
    path.chmod(0o600)
    return lines


def test_a_file_is_put_in_order_and_stays_as_private_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    one, two, three, four = written(
        path,
        "2026-03-07T10:00:02+00:00",
        "2026-03-07T11:00:01+01:00",
        "2026-03-07T10:00:02.000000Z",
        "2026-03-07T09:59:59Z",
        end="",
    )
    assert put_in_order(path)
    assert path.read_text() == "".join(f"{line}\n" for line in (four, two, one, three))
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert not put_in_order(path)


def test_a_file_in_order_or_without_times_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for times in (["2026-03-07T10:00:02Z"] * 2, ["2026-03-07T10:00:02Z", None, "2026-03-07T10:00:01Z"], []):
        written(path, *times)
        before = path.stat().st_mtime_ns, path.read_bytes()
        assert not put_in_order(path)
        assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_a_place_beside(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    assert free_place(path) == path
    path.touch()
    assert free_place(path) == tmp_path / "r-2.jsonl"
    (tmp_path / "r-2.jsonl").touch()
    assert free_place(path) == tmp_path / "r-3.jsonl"
