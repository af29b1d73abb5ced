"""Importing request logs and recordings of calls: what becomes of them, what is told, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.atomic_files import CannotWrite
from cachecost.conversations.importing import ImportOptions, import_files
from cachecost.conversations.readers import call_recording as calls
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook

ROW: dict[str, Any] = {
    "timestamp": "2026-03-07T10:00:00Z",
    "source": "secret place",
    "request": {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "secret"}]},
    "usage": {"input_tokens": 1_000, "cache_creation_input_tokens": 100, "output_tokens": 10},
}
PRICES = PriceBook.load()


def log_file(folder: Path, *rows: Any, name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def count(block: Block) -> tuple[dict[str, int], str]:
    return {"cl100k": block.size}, "text"


def test_a_log_becomes_a_recording_with_its_bill(tmp_path: Path) -> None:
    log, out = log_file(tmp_path, ROW, ROW, {**ROW, "status": 529}), tmp_path / "out.jsonl"
    report = import_files([log], out, ImportOptions("digest", count=count, licence="MIT", prices=PRICES))
    (one,) = report.imported
    assert (one.format, one.reason) == ("request-log", 'its first line has a "request"')
    assert (one.file, one.recording, one.name, one.calls, one.inquiries) == (str(log), str(out), "mine", 3, 0)
    assert report.billed_usd == 2 * (1_000 * 5 + 100 * Decimal("6.25") + 10 * 25) / 10**6
    assert report.json() == {
        "format": 1,
        "files": 1,
        "conversations": 1,
        "calls": 3,
        "billed": {
            "input_tokens": 2_000,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 200,
            "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 20,
        },
        "refused": [],
        "skipped": [],
    }
    assert len(list(calls.calls(out))) == 3
    assert calls.title(out) == calls.Title("mine", "", "MIT")
    assert "secret" not in out.read_text()


def test_a_recording_of_calls_can_lose_its_words_later(tmp_path: Path) -> None:
    log, kept, bare = log_file(tmp_path, ROW, ROW), tmp_path / "kept.jsonl", tmp_path / "bare.jsonl"
    import_files([log], kept, ImportOptions(source="here"))
    report = import_files([kept], bare, ImportOptions("digest", count=count, licence="MIT", prices=PRICES))
    (one,) = report.imported
    assert (one.format, one.name, one.calls) == ("calls", "mine", 2)
    assert "secret" in kept.read_text() and "secret" not in bare.read_text()
    assert calls.title(bare) == calls.Title("mine", "here", "MIT")
    assert report.billed_usd == Decimal("0.01175")


def test_a_block_in_several_files_is_counted_once(tmp_path: Path) -> None:
    counted: list[Block] = []

    def counting(block: Block) -> tuple[dict[str, int], str]:
        counted.append(block)
        return count(block)

    logs = [log_file(tmp_path, ROW, name="a.jsonl"), log_file(tmp_path, ROW, ROW, name="b.jsonl")]
    import_files(logs, tmp_path / "out", ImportOptions("digest", count=counting))
    assert [block.size for block in counted] == [31]


def test_a_damaged_log_is_refused_whole_and_leaves_nothing(tmp_path: Path) -> None:
    bad = log_file(tmp_path, ROW, '{"request":', {"request": {"model": 1, "messages": []}}, name="bad.jsonl")
    good = log_file(tmp_path, ROW, name="good.jsonl")
    report = import_files([bad, good], tmp_path / "out")
    assert [str(fault) for fault in report.refused] == [
        f"{bad}:2 expected one JSON object; got a damaged line (cut off)",
        f"{bad}:3 model: expected a model id; got 1",
    ]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.jsonl"]
    assert (report.calls, report.billed_usage.output_tokens) == (1, 10)


def test_a_log_that_is_still_being_written_is_imported_and_it_is_said(tmp_path: Path) -> None:
    log = tmp_path / "mine.jsonl"
    log.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW)[:99])
    said: list[str] = []
    assert import_files([log], tmp_path / "out.jsonl", ImportOptions(warn=said.append)).calls == 1
    assert said == [f"{log}:2 the last line is still being written: skipped"]


def test_a_file_is_never_written_over_itself(tmp_path: Path) -> None:
    log = log_file(tmp_path, ROW)
    before = log.read_bytes()
    for out in (tmp_path, log):
        report = import_files([log], out)
        assert [str(fault) for fault in report.refused] == [
            f"{log} its recording would overwrite it: choose another place"
        ]
    assert log.read_bytes() == before


def test_a_name_is_never_a_way_out_of_the_folder(tmp_path: Path) -> None:
    header = '{"format":1,"kind":"calls","content":"keep","name":"../../away"}\n'
    log = tmp_path / "mine.jsonl"
    log.write_text(header)
    report = import_files([log], tmp_path / "out")
    assert [Path(one.recording).name for one in report.imported] == ["__.._away.jsonl"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["__.._away.jsonl"]


def test_a_place_that_takes_nothing_ends_it(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot be written: No such file or directory"):
        import_files([log_file(tmp_path, ROW)], tmp_path / "no" / "out.jsonl")


def test_a_recording_is_as_private_as_its_sources(tmp_path: Path) -> None:
    """Also where only one of several is closed to others; a recording that is there keeps its own permissions."""
    log, out = log_file(tmp_path, ROW), tmp_path / "out.jsonl"
    other = tmp_path / "other.jsonl"
    other.write_bytes(log.read_bytes())
    modes = []
    for closed in ([], [log], [other], [log, other]):
        log.chmod(0o644)
        other.chmod(0o644)
        for path in closed:
            path.chmod(0o600)
        out.unlink(missing_ok=True)
        import_files([log, other], out)
        modes.append(out.stat().st_mode & 0o077 != 0)
    assert modes == [True, False, False, False]
    log.chmod(0o644)
    other.chmod(0o644)
    out.chmod(0o640)
    import_files([log, other], out)
    assert out.stat().st_mode & 0o777 == 0o640


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """Not what a running process writes, nor what is somebody else's."""
    log, out = log_file(tmp_path, ROW), tmp_path / "out.jsonl"
    killed = subprocess.Popen(["true"])
    killed.wait()
    parts = [tmp_path / f".out.jsonl.{name}.part" for name in (killed.pid, os.getppid(), "word")]
    for part in parts:
        part.touch()
    import_files([log], out)
    assert [part.exists() for part in parts] == [False, True, True]
