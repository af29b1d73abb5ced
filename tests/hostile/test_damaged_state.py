"""Damaged files that cachecost wrote itself, and small damaged files of others: 2 or 3 with the reason, never 70."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from cachecost.sweep.rows import open_store
from cachecost.sweep.runs import load_sweep
from cachecost.sweep.workers import keep_bundle
from command_runs import printed, run_here
from conversations.session_stores import write_lines
from hostile.attempts import LOG_COMMANDS, attempt
from hostile.damage import damaged
from hostile.seeds import BILL, SCENARIO, TIME, request_body

GRID = "conversation.synthetic.turns=2,3"
REPLAYED = "format: 1\nname: replayed\nmodel: claude-opus-4-6\ntokens: bytes\nstrategies: [progressive]\nconversation: "
SWEEP = ("sweep", "s.yaml", "--jobs", 1, "--grid", GRID, "--out", "o.csv", "--resume")
LIVE = ("live", "s.yaml", "--dry-run", "--max-usd", 5, "--resume", "journal.jsonl")
COMMANDS = {
    "reports/fuzzed/baseline.json": [("check", "s.yaml")],
    "reports/history.jsonl": [("check", "s.yaml", "--history", "h.svg"), ("check", "s.yaml", "--update")],
    "o.csv.parts/sweep.json": [SWEEP],
    "o.csv.parts/PART": [SWEEP],
    "journal.jsonl": [LIVE],
    "cachecost.toml": [("config",), ("check", "s.yaml")],
    "plan.yaml": [("replay", "log.jsonl", "--tokens", "bytes", "--strategy", "plan.yaml")],
    "calls.jsonl": [("run", "r.yaml", "--no-report"), ("sweep", "r.yaml", "--seeds", 2, "--jobs", 1)],
    "talk.jsonl": [
        (*words, "t.yaml")
        for words in (
            ["run", "--no-report"],
            ["explain"],
            ["optimize"],
            ["check"],
            ["live", "--dry-run", "--max-usd", 1],
        )
    ],
}
"""The commands that read each file."""
TINY = {
    "empty": b"",
    "a line end": b"\n",
    "an object": b"{}",
    "a list": b"[]",
    "null": b"null",
    "a number": b"3",
    "not text": b"\xff\xfe\x00",
    "half an object": b'{"format": 1, "kind"',
    "a deep list": b"[" * 100_000,
}
JOURNAL = [
    {
        "kind": "run",
        "id": "cafe",
        "format": 1,
        "scenario": "fuzzed",
        "digest": "x",
        "planned_at": 1_790_000_000,
        "options": {},
    },
    {"kind": "reserved", "call": "progressive/1", "retry": 0, "usd": "0.1"},
    {"kind": "released", "call": "progressive/1", "retry": 0, "status": 500, "message": "no"},
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one whole file of each kind."""
    folder = tmp_path_factory.mktemp("project")
    rows = [{"timestamp": TIME.format(n), "request": request_body(n), "usage": BILL} for n in (1, 2)]
    write_lines(folder / "log.jsonl", rows)
    (folder / "s.yaml").write_text(SCENARIO.replace("sweep:", "#"))
    (folder / "r.yaml").write_text(f"{REPLAYED}{{recording: calls.jsonl}}\n")
    (folder / "t.yaml").write_text(f"{REPLAYED}{{recording: talk.jsonl}}\n")
    (folder / "plan.yaml").write_text("name: own\nbreakpoints: [last_tool, last_system, automatic]\nttl: 1h\n")
    (folder / "cachecost.toml").write_text('reports = "reports"\n[bill]\nskip = true\n')
    write_lines(folder / "journal.jsonl", JOURNAL)
    talk = Path(__file__).parents[2] / "scenarios" / "recordings" / "jp-17653152345.jsonl"
    (folder / "talk.jsonl").write_bytes(talk.read_bytes())
    printed("import", folder / "log.jsonl", "-o", folder / "calls.jsonl")
    assert run_here("check", "s.yaml", "--update", cwd=folder).returncode == 0
    _add_parts(folder)
    return folder


def _add_parts(folder: Path) -> None:
    """What is left of a sweep that was interrupted after one of its parts."""
    sweep = load_sweep(folder / "s.yaml", [GRID])
    store = open_store(folder / "o.csv", sweep.axes, sweep.about(), False)
    keep_bundle(sweep.job, store, list(sweep.tasks())[:1])


def place_of(name: str, folder: Path) -> Path:
    return next((folder / "o.csv.parts").glob("part-*")) if name.endswith("PART") else folder / name


def copies(project: Path, folder: Path) -> Iterator[Path]:
    """The project again and again."""
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        yield Path(shutil.copytree(project, folder))


def test_every_file_is_valid_before(project: Path, tmp_path: Path) -> None:
    fresh = copies(project, tmp_path / "project")
    for commands in COMMANDS.values():
        for words in commands:
            done = run_here(*words, cwd=next(fresh))
            assert done.returncode in (0, 1, 3), (words, done.stderr)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_file_is_named(name: str, project: Path, tmp_path: Path) -> None:
    whole, random = place_of(name, project).read_bytes(), Random(name)
    first = whole.splitlines(keepends=True)[0]
    contents = {**TINY, "its first line": first, "its half": whole[: len(whole) // 2]}
    contents |= {f"damage {number}": damaged(whole, random) for number in range(3)}
    fresh = copies(project, tmp_path / "project")
    for what, content in contents.items():
        for words in COMMANDS[name]:
            folder = next(fresh)
            place_of(name, folder).write_bytes(content)
            done = run_here(*words, cwd=folder)
            assert done.returncode in (0, 1, 2, 3) and "Traceback" not in done.stderr, (what, words, done.stderr)
            assert done.returncode in (0, 1) or done.stderr or done.stdout, (what, words)


@pytest.mark.parametrize("content", ["{}", "", '{"format": 2}', '{"format": 2, "strategies": {"own": {}}}'])
def test_a_baseline_without_its_fields_is_an_input_error(content: str, project: Path, tmp_path: Path) -> None:
    folder = next(copies(project, tmp_path / "project"))
    place_of("reports/fuzzed/baseline.json", folder).write_text(content)
    done = run_here("check", "s.yaml", cwd=folder)
    assert done.returncode == 2 and "reports/fuzzed/baseline.json:1:1" in done.stderr


@pytest.mark.parametrize("command", ["run", "explain", "optimize", "check", "sweep --seeds 2 --jobs 1"])
@pytest.mark.parametrize("scenario", ["r.yaml", "t.yaml"])
def test_a_recording_of_only_a_header_has_no_calls(command: str, scenario: str, project: Path, tmp_path: Path) -> None:
    folder = next(copies(project, tmp_path / "project"))
    for name in ("calls.jsonl", "talk.jsonl"):
        (folder / name).write_bytes((folder / name).read_bytes().splitlines(keepends=True)[0])
    done = run_here(*command.split(), scenario, cwd=folder)
    assert done.returncode == (3 if command.startswith("sweep") else 2)
    assert "conversation.recording: expected a recording with calls; it has none" in done.stdout + done.stderr


@pytest.mark.parametrize("json_", [(), ("--json",)])
@pytest.mark.parametrize("seeds", [(), ("--seeds", "2")])
def test_a_sweep_without_an_evaluable_cell_says_why(
    json_: tuple[str, ...], seeds: tuple[str, ...], project: Path, tmp_path: Path
) -> None:
    words = ["--jobs", "1", "--grid", "as_of=2020-01-01,2020-02-02", *seeds, *json_]
    done = run_here("sweep", project / "s.yaml", *words, cwd=tmp_path)
    assert done.returncode == 3 and "has no rules on 2020-01-01" in done.stdout
    if not json_:
        assert "\n\n2 errors; no cell could be evaluated:\n" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "got no file: remove its folder"),
        (b"", "got a damaged file: remove its folder"),
        (b"{}", "got another axes"),
    ],
)
def test_a_sweep_does_not_go_on_from_parts_of_an_unknown_one(
    content: bytes | None, message: str, project: Path, tmp_path: Path
) -> None:
    folder = next(copies(project, tmp_path / "project"))
    note = place_of("o.csv.parts/sweep.json", folder)
    note.unlink() if content is None else note.write_bytes(content)
    done = run_here(*SWEEP, cwd=folder)
    assert done.returncode == 2 and message in done.stderr and not (folder / "o.csv").exists()


@pytest.mark.parametrize("change", [lambda part: b"", lambda part: part.splitlines(True)[0], lambda part: part[:-9]])
def test_a_damaged_part_is_not_taken_for_its_cells(change, project: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = next(copies(project, tmp_path / "project"))
    part = place_of("o.csv.parts/PART", folder)
    part.write_bytes(change(part.read_bytes()))
    done = run_here(*SWEEP, cwd=folder)
    assert (
        done.returncode == 2 and f"{part.name} is damaged: remove it, and its cells are computed again" in done.stderr
    )
    part.unlink()
    assert run_here(*SWEEP, cwd=folder).returncode == 0


@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_small_damaged_logs(command: str, project: Path, tmp_path: Path) -> None:
    header = place_of("talk.jsonl", project).read_bytes().splitlines(keepends=True)[0]
    for number, content in enumerate((b"", b"{}", b"null", b"\xff\xfe\x00", header)):
        log = tmp_path / f"{number}.jsonl"
        log.write_bytes(content)
        ended = attempt(command, log, tmp_path / f"out-{number}", project / "log.jsonl")
        assert not ended.complaint, (content, ended.complaint)
