"""The generated sessions have the shape of real ones, and the script that times the bill measures what it says."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import bill_speed
from bill_speed import AGAIN, BARE, FIRST, Side, best, bill_sides, in_rounds, peer_sides, ratios, table
from measure import Run
from session_shapes import QUANTILES, RESULT_LINE, Draws, EscapedText
from sessions import Totals, write_sessions
from step_records import TranscriptStep, read_steps

SESSIONS, MEGABYTES = 40, 20.0
LARGEST_STATIC = 16_000 + 700 * 11


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Totals]:
    folder = tmp_path_factory.mktemp("sessions")
    return folder, write_sessions(folder, SESSIONS, MEGABYTES, seed=3)


def rows(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.rglob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from ((path, json.loads(line)) for line in lines)


def digest(folder: Path) -> str:
    return sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.jsonl")))).hexdigest()


def test_size_and_number_of_calls_are_those_asked_for(written: tuple[Path, Totals]) -> None:
    folder, totals = written
    assert totals.size == sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    assert MEGABYTES * 0.85 < totals.size / 10**6 < MEGABYTES * 1.15
    assert 45 * SESSIONS < totals.calls < 70 * SESSIONS
    assert len(list(folder.glob("*/*.jsonl"))) == SESSIONS
    assert totals.files == SESSIONS + totals.agents


def test_lines_are_shaped_like_those_of_real_sessions(written: tuple[Path, Totals]) -> None:
    _, totals = written
    assert 4.2 < totals.lines / totals.calls < 5.8
    assert 1.9 < totals.answer_lines / totals.calls < 2.3
    assert 0.90 < totals.read / (totals.read + totals.written + totals.input) < 0.98
    assert totals.agents and totals.copies and totals.compactions


def test_usage_is_that_of_the_calls_and_a_call_reads_no_more_than_was_cached(written: tuple[Path, Totals]) -> None:
    folder, totals = written
    last: dict[str, dict[str, int]] = {}
    cached: dict[Path, tuple[str, int]] = {}
    for path, row in rows(folder):
        if row["type"] == "assistant":
            usage, message = row["message"]["usage"], row["message"]["id"]
            read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            if cached.get(path, ("", 0))[0] != message:
                assert read <= max(cached.get(path, ("", 0))[1], LARGEST_STATIC)
                cached[path] = message, read + written
            before = last.get(message, usage)
            assert {**before, "output_tokens": 0} == {**usage, "output_tokens": 0}
            last[message] = max(before, usage, key=lambda one: one["output_tokens"])
    assert len(last) == totals.calls
    assert sum(usage["output_tokens"] for usage in last.values()) == totals.output
    assert sum(usage["cache_read_input_tokens"] for usage in last.values()) == totals.read
    assert sum(usage["cache_creation_input_tokens"] for usage in last.values()) == totals.written
    assert sum(usage["input_tokens"] for usage in last.values()) == totals.input


def test_the_reader_takes_every_file(written: tuple[Path, Totals]) -> None:
    folder, totals = written
    warnings: list[str] = []
    ids = 0
    for path in folder.rglob("*.jsonl"):
        ids += len(read_steps(path, lambda text, *_: warnings.append(str(text))))
    assert ids >= totals.calls
    assert not [words for words in warnings if "unknown" in words]


def test_what_is_not_read_had_expired_or_belongs_to_the_few_that_are_lost(written: tuple[Path, Totals]) -> None:
    """A reader takes the record before the answer for the start of the call: pauses have to lie before it."""
    folder, _ = written
    steps = [step for path in folder.glob("*/*.jsonl") for step in _pairs(read_steps(path))]
    lost = [age for age, read, cached, ttl in steps if read < cached and age < ttl]
    assert len(lost) < 0.02 * len(steps)
    assert all(read < cached for age, read, cached, ttl in steps if age > ttl + 60)


def _pairs(steps: list[TranscriptStep]) -> Iterator[tuple[float, int, int, float]]:
    """(seconds since the call before, tokens read, tokens cached before, TTL) of each call but those after a cut."""
    for before, step in pairwise(steps):
        if "compaction" not in step.between and step.before == before.number and step.after and before.after:
            usage = before.usage
            ttl = 3600.0 if usage.write_1h else 300.0
            yield step.after - before.after, step.usage.read, usage.read + usage.write, ttl


def test_same_options_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_sessions(tmp_path / name, 4, 1.0, seed)
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")


def test_draws_keep_the_quantiles_they_are_given() -> None:
    draws = Draws(1)
    values = sorted(draws.of(RESULT_LINE) for _ in range(20_000))
    for share, value in list(zip(QUANTILES, RESULT_LINE, strict=True))[1:-1]:
        assert values[int(share * len(values))] == pytest.approx(value, rel=0.15)


def test_filler_is_valid_inside_a_json_string_wherever_it_is_cut() -> None:
    text = EscapedText(Draws(5))
    for size in range(1, 4_000, 37):
        taken = text.take(size)
        assert json.loads(b'"%b"' % taken)
        assert abs(len(taken) - size) <= EscapedText.CELL


BILL = """
import os, pathlib, sys
assert sys.argv[1] == "bill" and sys.argv[3] == "--json" and pathlib.Path(sys.argv[2]).is_dir()
store = pathlib.Path(os.environ["CACHECOST_STORE"], "store.sqlite")
store.parent.mkdir(exist_ok=True)
with (pathlib.Path(__file__).parent / "log").open("a") as log:
    log.write("second\\n" if store.exists() else "first\\n")
store.write_text("remembered")
store.with_name(store.name + "-wal").write_text("")
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Stands in for cachecost: notes whether it found a store, and leaves one."""
    script = tmp_path / "bill.py"
    script.write_text(BILL, encoding="utf-8")
    return [sys.executable, str(script)]


def test_first_runs_find_no_store_and_second_runs_find_one(tmp_path: Path, command: list[str]) -> None:
    found = in_rounds(bill_sides(tmp_path, tmp_path / "store", command), 2)
    assert {name: len(runs) for name, runs in found.items()} == {FIRST: 2, AGAIN: 2}
    assert (tmp_path / "log").read_text().split() == ["first", "second"] * 2
    assert all(run.processor_s > 0 and run.peak_mib > 1 for runs in found.values() for run in runs)


def test_tools_that_are_not_installed_are_left_out(tmp_path: Path) -> None:
    assert peer_sides(tmp_path, tmp_path / "config", str(tmp_path)) == []
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("kvleak", "claude-cache-audit"):
        (programs / name).touch(0o755)
    audit, other = peer_sides(tmp_path, tmp_path / "config", str(programs))
    assert audit == Side("kvleak", (f"{programs}/kvleak", "audit", "--path", str(tmp_path), "--json"), {})
    assert other.command[-2:] == ("--config-dir", str(tmp_path / "config"))
    assert (tmp_path / "config" / "projects").resolve() == tmp_path.resolve()


def test_the_best_of_each_figure_counts_and_ratios_are_to_the_first_run() -> None:
    first = best([Run(2.0, 1.5, 30.0), Run(1.0, 1.8, 40.0)])
    assert first == Run(1.0, 1.5, 40.0)
    found = {FIRST: first, "kvleak": Run(2.0, 4.5, 20.0)}
    assert ratios(found)["kvleak"] == {"seconds": 2.0, "processor_s": 3.0, "peak_mib": 0.5}
    assert table(found)[1:] == [
        "first run                  1.50     1.00     40   1.00 · 1.00 · 1.00",
        "kvleak                     4.50     2.00     20   3.00 · 2.00 · 0.50",
    ]


def test_the_script_times_a_generated_folder(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--runs", "1", "--sessions", "3", "--megabytes", "0.3", "--json", "--cachecost", shlex.join(command)]
    monkeypatch.setattr("sys.argv", ["bill_speed.py", *words])
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    assert bill_speed.main() == 0
    parsed = json.loads(capsys.readouterr().out)
    assert list(parsed["figures"]) == list(parsed["ratios"]) == [FIRST, AGAIN, BARE]


def test_a_command_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path), "--runs", "1", "--cachecost", f"{sys.executable} -c 1/0"]
    monkeypatch.setattr("sys.argv", ["bill_speed.py", *words])
    assert bill_speed.main() == 1
    assert capsys.readouterr().err.startswith("nothing measured: ")


def test_the_variable_of_the_store_is_not_inherited_by_other_sides(tmp_path: Path) -> None:
    assert "CACHECOST_STORE" not in bill_speed.bare_side(tmp_path).settings


def test_sessions_can_be_written_from_the_command_line(tmp_path: Path) -> None:
    script = Path(bill_speed.__file__).with_name("sessions.py")
    words = [sys.executable, str(script), str(tmp_path / "out"), "--sessions", "3", "--megabytes", "0.5"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "calls per MB" in shown and "lines per call" in shown
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and "is not empty" in again.stderr
