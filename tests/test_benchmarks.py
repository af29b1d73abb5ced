"""The benchmarks' own parts: the log has the shape it promises, and a run is measured truly."""

import json
import subprocess
import sys
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import grid
from growing_log import PAUSE_S, STEP_S, Shape, lines, write_log
from growth import exponent
from log_shapes import Found, Peaks, describe_shape
from measure import in_turns, measured

SMALL = {"conversations": 3, "requests": 4}


def rows(**shape: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(Shape(**{**SMALL, **shape}))]


def contents(request: dict[str, Any]) -> list[Any]:
    """Every block, without its breakpoint, in prompt order."""
    messages = [block for message in request["messages"] for block in message["content"]]
    blocks = [*request["tools"], *request["system"], *messages]
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]


def test_same_shape_same_bytes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    size = write_log(log, Shape(**SMALL))
    text = log.read_bytes()
    assert size == len(text)
    assert sha256(text).hexdigest() == "5caaa209705fe1ed7f2402480eb9b9bd03fa2a798296216d4ab49a6e1d4ad643"
    assert text != b"".join(lines(Shape(**SMALL, seed=2)))


def test_the_usual_log_is_over_100_mb_in_2000_lines() -> None:
    sizes = [len(line) for line in lines(Shape())]
    assert len(sizes) == 2_000
    assert sum(sizes) > 100 * 1024 * 1024


def test_breakpoints_stand_on_last_tool_last_system_block_and_newest_user_block() -> None:
    for row in rows():
        request = row["request"]
        parts = [request["tools"], request["system"], [b for m in request["messages"] for b in m["content"]]]
        for part in parts:
            assert [index for index, block in enumerate(part) if "cache_control" in block] == [len(part) - 1]
        assert request["messages"][-1]["role"] == "user"
        assert len(request["tools"]) == 6


def test_conversations_share_a_head_and_grow_by_a_turn() -> None:
    log = [row["request"] for row in rows(conversations=1)]
    for before, after in pairwise(log):
        assert contents(after)[: len(contents(before))] == contents(before)
        assert len(after["messages"]) == len(before["messages"]) + 2
    first, second = (row["request"] for row in rows(requests=1, conversations=2))
    assert contents(first)[:8] == contents(second)[:8]
    assert contents(first)[8:] != contents(second)[8:]


@pytest.mark.parametrize(("interleaved", "lengths"), [(True, [1, 1, 1, 3, 3, 3]), (False, [1, 3, 1, 3, 1, 3])])
def test_conversations_take_turns_or_come_in_a_row(interleaved: bool, lengths: list[int]) -> None:
    log = rows(requests=2, interleaved=interleaved)
    assert [len(row["request"]["messages"]) for row in log] == lengths


@pytest.mark.parametrize(("interleaved", "pauses_after"), [(True, [50]), (False, [25, 50])])
def test_requests_are_3_s_apart_with_a_pause_every_25_rounds(interleaved: bool, pauses_after: list[int]) -> None:
    times = [
        datetime.fromisoformat(row["timestamp"]) for row in rows(conversations=2, requests=26, interleaved=interleaved)
    ]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert set(gaps) == {STEP_S, STEP_S + PAUSE_S}
    assert [number for number, gap in enumerate(gaps, 1) if gap > STEP_S] == pauses_after


def test_unique_blocks_never_come_back_and_keep_the_shape() -> None:
    texts = [json.dumps(block) for row in rows(unique=True) for block in contents(row["request"])]
    assert len(texts) == len(set(texts))
    assert len(texts) == sum(len(contents(row["request"])) for row in rows())


def test_messages_first_changes_the_order_of_keys_only() -> None:
    usual, other = rows(), rows(messages_first=True)
    assert usual == other
    assert list(usual[0]["request"]) == ["model", "max_tokens", "tools", "system", "messages"]
    assert list(other[0]["request"]) == ["model", "max_tokens", "messages", "tools", "system"]


def test_a_run_is_measured_with_its_own_memory() -> None:
    small = measured([sys.executable, "-c", "pass"])
    large = measured([sys.executable, "-c", "held = b'x' * (300 * 1024 * 1024)"])
    assert small.peak_mib < 300 < large.peak_mib < 1_000
    assert 0 < small.seconds < large.seconds
    assert 0 < small.processor_s < large.processor_s


def test_waiting_takes_no_processor_time() -> None:
    run = measured([sys.executable, "-S", "-c", "import select; select.select([], [], [], 0.4)"])
    assert run.processor_s < 0.4 <= run.seconds


def test_settings_reach_the_process() -> None:
    command = [sys.executable, "-S", "-c", "import os; raise SystemExit(os.environ.get('LANGUAGE') != 'la')"]
    assert measured(command, {"LANGUAGE": "la"})
    with pytest.raises(subprocess.CalledProcessError):
        measured(command, {"LANGUAGE": "grc"})


def test_two_commands_take_turns(tmp_path: Path) -> None:
    order = tmp_path / "order"
    first, second = (
        [sys.executable, "-S", "-c", f"open({str(order)!r}, 'a').write({letter!r})"] for letter in ("a", "b")
    )
    assert len(in_turns(first, second, 3)) == 3
    assert order.read_text() == "ababab"


def test_a_failed_run_is_no_measurement() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        measured([sys.executable, "-c", "raise SystemExit(3)"])
    assert failure.value.returncode == 3


@pytest.mark.parametrize(("median_ratio", "words"), [(0.7, "32"), (0.71, "32  over its limit of 0.7")])
def test_a_shape_is_held_to_the_median(median_ratio: float, words: str) -> None:
    one = Found("long", "orjson", (1.0, 1.0), (0.4, median_ratio), (0.4, median_ratio), 32.0, 0.4, 0.7)
    assert one.is_missed == (median_ratio > 0.7)
    assert describe_shape(one).endswith(words)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    sizes = [100, 200, 400, 800]
    assert exponent(sizes, [0.003 * size**power for size in sizes]) == pytest.approx(power)


def test_a_grid_counts_the_calls_that_its_cells_make() -> None:
    conversation = grid.conversation(2)
    cells = len(grid.STRATEGIES) * len(grid.MODELS) * len(grid.LIVES)
    assert grid.grid(conversation) == 10 * cells
    assert grid.plain(conversation) == 10 * len(grid.STRATEGIES)
    assert grid.together(conversation) == grid.apart(conversation) == 10 * len(grid.everyone())


@pytest.mark.parametrize(
    ("peak_mib", "is_missed", "words"),
    [
        (29.0, False, "memory 10 MiB, of 10 times the log 29 MiB: 2.90 × (goal 1.3)"),
        (29.1, True, "memory 10 MiB, of 10 times the log 29 MiB: 2.91 × (goal 1.3), over its limit of 2.9"),
    ],
)
def test_memory_is_told_with_its_goal_and_its_limit(peak_mib: float, is_missed: bool, words: str) -> None:
    found = Peaks(10.0, peak_mib)
    assert (found.is_missed, str(found)) == (is_missed, words)
