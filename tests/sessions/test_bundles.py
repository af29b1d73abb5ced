"""Sessions read by several processes, or a cluster that loses one: the bill is that of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from bill_sessions import SessionWriter
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.sessions.bundles import MOST_FILES, join_bundles, read_bundle, split_files, without_twins
from cachecost.sessions.reading import SessionReading
from command_runs import run_here
from fleet import cluster
from sessions import write_sessions
from slow_cases import mostly_slow

COMMAND = [sys.executable, "-m", "cachecost", "bill"]
ENVIRONMENT = {**os.environ, "CACHECOST_STORE": "off"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions with a sub-agent's, a damaged line, an empty file, no log at all, and a file with two names."""
    place = tmp_path / "projects"
    for number in range(9):
        session = SessionWriter(f"{number}000-0000", f"/work/{number % 2}")
        session.write_message("Please do.")
        session.answer(0, 9_000 + number)
        text = "".join(json.dumps(line) + "\n" for line in session.lines)
        path = place / str(number % 3) / f"{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if number != 4 else f"{text}{{damaged\n{text}", encoding="utf-8")
    (place / "empty.jsonl").touch()
    (place / "notes.json").write_text('{"neither": "nor"}', encoding="utf-8")
    os.link(place / "0/0.jsonl", place / "9.jsonl")
    return place


def bill(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *words, "--json"], capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("jobs", mostly_slow(["2", "1"], 1))
def test_several_processes_bill_what_one_does(folder: Path, jobs: str) -> None:
    here = run_here("bill", folder, "--json")
    alone = (here.returncode, here.stdout, here.stderr)
    assert bill(str(folder), "--jobs", jobs) == alone
    assert json.loads(alone[1])["calls"] == 9
    assert "damaged" in alone[2] or "line" in alone[2]


def test_bundles_in_any_order_are_what_one_reading_gives(folder: Path) -> None:
    paths = sorted(path for path in folder.rglob("*.json*") if path.is_file())
    whole = SessionReading(None, folders=[folder]).read_all(paths)
    files = list(without_twins(paths))
    bundles = list(split_files(files, "auto", [folder], 1))
    assert len(bundles) > 3
    joined = join_bundles(read_bundle(bundle) for bundle in reversed(bundles))
    assert joined == whole


@pytest.mark.parametrize(("files", "workers", "most"), [(0, 2, 0), (1, 2, 1), (16, 2, 2), (10_000, 3, MOST_FILES)])
def test_a_bundle_is_bounded(files: int, workers: int, most: int) -> None:
    paths = [Path(str(number)) for number in range(files)]
    bundles = list(split_files(paths, "auto", [], workers))
    assert [path for bundle in bundles for path in bundle.paths] == paths
    assert max((len(bundle.paths) for bundle in bundles), default=0) == most


def test_a_cluster_needs_names_that_hold_everywhere(folder: Path) -> None:
    for paths in ([], [os.path.relpath(folder)]):
        done = run_here("bill", *paths, "--backend", "dask", "--scheduler", "tcp://127.0.0.1:1")
        assert done.returncode == 2
        assert "--backend dask: name absolute paths or URLs, which all its workers can read" in done.stderr
    assert run_here("bill", folder, "--scheduler", "tcp://127.0.0.1:1").returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="dask is an extra")
def test_a_cluster_that_loses_a_worker_bills_every_session_once(tmp_path: Path) -> None:
    """The worker is killed while it has bundles to read."""
    sessions, place = tmp_path / "sessions", tmp_path / "cluster"
    place.mkdir()
    write_sessions(sessions, 300, 20)
    alone = bill(str(sessions))
    with cluster(place, 3) as (address, workers):
        words = [*COMMAND, str(sessions), "--json", "--backend", "dask", "--scheduler", address]
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        while not _has_read(workers[0].pid):
            assert running.poll() is None, "it ended before a worker could be killed"
            time.sleep(0.002)
        workers[0].kill()
        out, said = running.communicate(timeout=120)
    assert (running.returncode, out, said) == alone


def _has_read(process: int) -> bool:
    """Whether a worker has a session file open, as far as Linux says."""
    try:
        return any(one.readlink().suffix == ".jsonl" for one in Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:
        return False


def test_a_file_that_only_a_worker_lacks_is_an_error_and_no_smaller_bill(folder: Path, tmp_path: Path) -> None:
    """A bundle as a machine without the folder answers it; a file that is gone here, too, is a skipped one."""
    [bundle] = split_files([folder / "0/0.jsonl"], "auto", [folder], 1)
    answered = read_bundle(bundle)
    with pytest.raises(CannotEvaluate, match=r"0\.jsonl: a worker does not see this file; all need the same folders"):
        join_bundles([replace(answered, unseen=folder / "0/0.jsonl")])
    [gone] = split_files([tmp_path / "gone.jsonl"], "auto", [], 1)
    found = join_bundles([read_bundle(gone)])
    reasons = [str(fault) for fault in found.skipped]
    assert reasons == [f"{tmp_path / 'gone.jsonl'} cannot be read: No such file or directory"]
