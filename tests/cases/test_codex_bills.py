"""Which lines of a Codex session are its bill: records where there are any, counters of older clients, no copies."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of, rows_of, run_in

from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.codex.reader import calls, session_files
from conversations.session_stores import (
    FIRST,
    SECOND,
    Row,
    agree,
    codex_bill,
    codex_context,
    codex_count,
    codex_line,
    codex_meta,
    codex_says,
    codex_sum,
    codex_usage,
    shape,
    write_lines,
)

INPUT, READ, WRITE, OUTPUT = (Decimal(price) / 10**6 for price in ("4", "0.4", "5", "20"))
"""gpt-5.6-sol."""
NAME = "rollout-2026-11-20T10-00-00-t-1.jsonl"
FORK = "rollout-2026-11-20T10-00-00-t-2.jsonl"
HEAD = [codex_meta(), codex_context(1)]
THIRD = codex_usage(960, 1100, 40, 100)


def price(*usages: tuple[int, int, int, int]) -> Decimal:
    """Of (input, read, written, output), the input with all."""
    costs = (
        (total - read - written) * INPUT + read * READ + written * WRITE + output * OUTPUT
        for total, read, written, output in usages
    )
    return sum(costs, Decimal())


def test_a_compaction_is_billed_once_and_no_counter_beside_the_records(run_case: Run) -> None:
    found = json_of(run_case("01-codex-compaction", "bill", "sessions", "--json"))
    expected = price(
        (180_000, 90_000, 90_000, 150),
        (210_000, 180_000, 30_000, 320),
        (212_000, 210_000, 2_000, 2_800),
        (28_000, 11_000, 17_000, 210),
    )
    assert (found["calls"], Decimal(found["billed_usd"])) == (4, expected)
    assert [cause["cause"] for cause in found["causes"]] == ["compaction"]


@pytest.mark.parametrize("order", [1, -1], ids=["parent first", "fork first"])
def test_a_fork_s_copies_are_billed_with_its_parent(run_case: Run, order: int) -> None:
    named = "sessions/rollout-2026-09-20T09-{}-00-019f3333-0000-7000-8000-0000000000{}.jsonl"
    files = [named.format("00", "01"), named.format("02", "10")]
    done = run_case("02-codex-fork", "bill", *files[::order], "--json")
    theirs = price((32_000, 12_000, 20_000, 150), (42_000, 32_000, 10_000, 310), (61_000, 42_000, 19_000, 480))
    own = price((62_000, 61_000, 1_000, 130), (63_500, 62_000, 1_500, 95))
    found = json_of(done)
    assert (found["calls"], Decimal(found["billed_usd"])) == (5, theirs + own)
    assert "unknown" not in done.stdout + done.stderr
    alone = json_of(run_case("02-codex-fork", "bill", files[1], "--json"))
    assert (alone["calls"], Decimal(alone["billed_usd"])) == (2, own)


def test_a_fork_s_first_request_has_the_history_that_it_copied(run_case: Run, tmp_path: Path) -> None:
    json_of(run_case("02-codex-fork", "bill", "sessions", "--json"))
    (fork,) = tmp_path.glob("02-codex-fork/sessions/*10.jsonl")
    first, _ = calls(fork)
    assert [role for role, _ in shape(first)] == ["user", "assistant"] * 3 + ["user"]


def test_a_replay_of_both_reads_in_the_fork_what_its_parent_wrote(run_case: Run) -> None:
    rows = rows_of(run_case("02-codex-fork", "replay", "sessions", "--json"))
    assert [row["usage"]["cache_read_input_tokens"] for row in rows] == [0, 32_000, 42_000, 61_000, 62_000]


def read(folder: Path, *rows: Row, name: str = NAME) -> SessionFile:
    return agree(write_lines(folder / name, rows), calls, session_files)[1]


def outputs(file: SessionFile) -> list[int]:
    return [call.usage.output_tokens for call in file.calls]


def counted(second: float, *usages: Row) -> Row:
    return codex_count(second, usages[-1], codex_sum(*usages))


def recorded(second: float, name: str, *usages: Row) -> Row:
    return codex_bill(second, name, usages[-1], codex_sum(*usages))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([recorded(4, "r1", FIRST), counted(4.1, FIRST), counted(9, FIRST, SECOND)], [30]),
        ([counted(4, FIRST), recorded(4.1, "r1", FIRST)], [30]),
        ([counted(4, FIRST), counted(6, FIRST, SECOND), recorded(8, "r3", FIRST, SECOND, THIRD)], [30, 20, 40]),
        ([counted(4, FIRST), codex_bill(8, "r2", SECOND, codex_sum(FIRST, THIRD, SECOND))], [30, 20]),
        ([recorded(4, "r1", FIRST), codex_count(5, None, codex_usage(0, 100, 1))], [30]),
        ([recorded(4, "r1", FIRST), recorded(5, "r1", FIRST)], [30]),
        ([recorded(4, "r1", FIRST), recorded(5, "r1", FIRST, SECOND)], [30, 20]),
    ],
    ids=[
        "a count after the last record",
        "a count before its record",
        "a client that was updated",
        "and had compacted before",
        "a total that fell",
        "a record twice",
        "two responses with one id",
    ],
)
def test_records_count_alone_from_the_first_on(tmp_path: Path, rows: list[Row], expected: list[int]) -> None:
    assert outputs(read(tmp_path, *HEAD, *rows)) == expected


def test_what_one_older_client_counted_is_not_billed_again_by_its_fork(tmp_path: Path) -> None:
    """The parent was counted, then recorded; the fork copied its counts and has own ones, then own records."""
    before = [codex_says(3, "user", "please"), counted(4, FIRST)]
    parent = read(tmp_path, *HEAD, *before, recorded(6, "r2", FIRST, SECOND))
    later = [counted(90, FIRST, SECOND), codex_bill(95, "r9", THIRD, codex_sum(SECOND, THIRD))]
    fork = read(tmp_path, codex_meta("t-2", forked_from_id="t-1"), *HEAD, *before, *later, name=FORK)
    assert (outputs(parent), outputs(fork)) == ([30, 20], [30, 20, 40])
    assert fork.calls[0].id == parent.calls[0].id


@pytest.mark.parametrize(
    ("version", "second", "expected"),
    [("0.154.0", 0.4, []), ("0.152.9", 0.4, [30]), ("0.154.0", 30, [30]), ("0.153.0-alpha.2", 0, []), ("", 0, [30])],
)
def test_a_fork_without_a_call_of_its_own(tmp_path: Path, version: str, second: float, expected: list[int]) -> None:
    """A client that keeps records has none yet; what stands there has the time of the copy."""
    head = codex_meta("t-2", forked_from_id="t-1", cli_version=version)
    assert outputs(read(tmp_path, head, counted(second, FIRST), name=FORK)) == expected


def test_a_parent_s_record_in_another_thread_is_history(tmp_path: Path) -> None:
    theirs = codex_line(4, "token_usage_record", thread_id="t-1", response_id="r1", usage=FIRST)
    own = codex_line(9, "token_usage_record", thread_id="t-2", response_id="r2", usage=SECOND)
    rows = [codex_meta("t-2", forked_from_id="t-1"), codex_context(1), codex_says(3, "assistant", "done"), theirs, own]
    file = read(tmp_path, *rows, name=FORK)
    assert [(call.id, call.blocks) for call in file.calls] == [("r2", 1)]


WINDOW: dict[str, Any] = {"model_context_window": 272_000}


def total(second: float, *usages: Row, **more: Any) -> Row:
    info = {"total_token_usage": codex_sum(*usages), **WINDOW, **more}
    return codex_line(second, "event_msg", type="token_count", info=info)


BIG, SMALL, GIANT = codex_usage(0, 200_000, 5), codex_usage(0, 28_000, 7), codex_usage(0, 922_001, 9)


@pytest.mark.parametrize(
    ("rows", "expected", "skipped"),
    [
        ([total(3, BIG), total(5, BIG, BIG, BIG)], [5], "272,000"),
        ([total(3, BIG), total(5, BIG, BIG)], [5, 5], ""),
        ([total(3, BIG, BIG), total(5, SMALL)], [7], "272,000"),
        ([total(3, BIG), total(5, SMALL)], [5, 7], ""),
        ([total(3, BIG), total(5, SMALL, last_token_usage={"input_tokens": 0, "total_tokens": 9})], [5], ""),
        ([total(3, GIANT, last_token_usage=GIANT)], [], "922,000"),
        ([total(3, BIG, last_token_usage=codex_usage(0, 272_001, 3))], [3], ""),
    ],
    ids=["a jump", "two calls", "a first total", "begun anew", "set back", "more than the model takes", "as billed"],
)
def test_no_call_is_larger_than_the_context_window(
    tmp_path: Path, rows: list[Row], expected: list[int], skipped: str
) -> None:
    file = read(tmp_path, *HEAD, *rows)
    assert outputs(file) == expected
    notes = [f"skipped 1 call: more than the context window of {skipped} tokens"] if skipped else []
    assert list(file.notes) == notes


def without_writes(usage: Row) -> Row:
    return {name: count for name, count in usage.items() if name != "cache_write_input_tokens"}


@pytest.mark.parametrize(
    ("model", "usage", "lacks"),
    [
        ("gpt-5.6-sol", without_writes(FIRST), True),
        ("gpt-5.6-sol", FIRST, False),
        ("gpt-5.5", without_writes(FIRST), False),
        ("claude-opus-5", without_writes(FIRST), True),
        ("own-model", without_writes(FIRST), False),
    ],
)
def test_a_missing_count_of_writes_is_not_none_written(tmp_path: Path, model: str, usage: Row, lacks: bool) -> None:
    file = read(tmp_path, codex_meta(), codex_context(1, model), codex_bill(4, "r1", usage))
    assert [note.partition(":")[0] for note in file.notes] == (
        ["1 call without a count of cache writes, which cost more than input"] if lacks else []
    )


def test_what_was_read_was_cached_without_a_count_of_writes(tmp_path: Path) -> None:
    """What the first call wrote is unknown, so that nothing is said of the second; the third lost what that read."""
    sizes = [(40_000, 0), (41_000, 0), (42_000, 40_500), (43_000, 0)]
    usages = [without_writes(codex_usage(read, size, 9)) for size, read in sizes]
    rows = [codex_bill(10.0 * n, f"r{n}", usage, codex_sum(*usages[:n])) for n, usage in enumerate(usages, 1)]
    write_lines(tmp_path / NAME, [codex_meta(), codex_context(1, "gpt-5.6-sol"), *rows])
    found = json_of(run_in(tmp_path, "bill", NAME, "--json"))
    losses = [(cause["tokens"], Decimal(cause["cost_usd"])) for cause in found["causes"]]
    assert losses == [(40_500, 40_500 * (INPUT - READ))]
