"""Hostile model ids, tools, sessions, files, scenarios × every command and format: nothing of it acts anywhere."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cachecost.base.formatting import IN_TEXT, inert_cell, without_commands
from command_runs import run_here
from hostile.attempts import LOG_COMMANDS
from hostile.seeds import BILL, SCENARIO, TIME, request_body
from hostile.test_inert import HOSTILE

TEXTS = [text for name, text in HOSTILE.items() if name != "lone surrogate"]
ALL = "\n".join(TEXTS)
FILE = "x\n::error::y##[error]\x1b[31m\x9b\u202e\u2066=1<script>alert(1)|`[b]"
"""A name that a file may have, with something of each kind in it."""
MORE_COMMANDS = (
    "lint LOG --json",
    "lint LOG --gitlab OUT/l.json --sarif OUT/l.sarif",
    "bill LOG --all-calls",
    "bill LOG --by model",
    "bill LOG --by project --json",
    "explain LOG --html OUT/e.html --csv OUT/e.csv --tokens bytes",
    "optimize LOG --html OUT/o.html --csv OUT/o.csv --tokens bytes",
    "whatif LOG --html OUT/w.html --csv OUT/w.csv --tokens bytes --full",
    "validate LOG --html OUT/v.html --csv OUT/v.csv --out OUT/v",
    "replay LOG --strategy none --strategy progressive --html OUT/s.html --csv OUT/s.csv --tokens bytes",
    "next LOG",
    "replay LOG LOG.missing",
    "replay LOG --format LOG",
    "replay LOG --strategy LOG",
)
SCENARIO_COMMANDS = (
    "run LOG --out OUT/report",
    "run LOG --json --no-report",
    "explain LOG --html OUT/e.html --csv OUT/e.csv",
    "optimize LOG --html OUT/o.html --emit OUT/plan",
    "check LOG --reports OUT --update",
    "check LOG --reports OUT --github --junit OUT/j.xml --sarif OUT/s.json --gitlab OUT/g.json --markdown OUT/c.md"
    " --badge OUT/b.svg --badge-shows both --history OUT/h.svg",
    "sweep LOG --grid conversation.recording=REC --jobs 1 --out OUT/rows.csv",
    "live LOG --dry-run --max-usd 1",
)
DATA = frozenset((".jsonl", ".json", ".sarif"))
"""Files for programs, in which a text is what it is; JSON escapes it where it must."""


def rows(texts: list[str]) -> str:
    """A request log in which each text is a session, a workspace, a tool with its words, and a model."""
    calls: list[dict[str, object]] = []
    for text in texts:
        tool = {"name": text, "description": text, "input_schema": {"type": "object", text: text}}
        words = {"session": text, "workspace": text, "source": text, "cwd": text}
        calls += [{"request": {**request_body(), "tools": [tool]}, **words}]
        calls += [{"request": {**request_body(), "model": text}, **words}]
    stamped = ({"timestamp": TIME.format(number), "usage": BILL, **call} for number, call in enumerate(calls))
    return "".join(f"{json.dumps(row)}\n" for row in stamped)


def complaints(command: str, name: str, folder: Path) -> Iterator[str]:
    """Run the command on the file `name` of `folder`; what acts in what it prints and writes."""
    out = folder / "out"
    places = {"LOG": name, "GOOD": "good.jsonl", "LOG.missing": f"{name}.missing"}
    words = [places.get(word, word.replace("OUT", "out").replace("REC", "talk.jsonl")) for word in command.split()]
    done = run_here(*words, cwd=folder)
    lines = (done.stdout + done.stderr).splitlines()
    if done.returncode not in (0, 1, 2, 3):
        yield f"exit code {done.returncode}: {done.stderr[-300:]}"
    allowed = ("::error file=", "::warning ", "::notice ") if "--github" in words else ()
    yield from (f"printed: {line}" for line in lines if acts(line) and not line.startswith(allowed or "\0"))
    for path in out.rglob("*") if out.exists() else ():
        if path.is_file():
            yield from (f"{path.name}: {why}" for why in written_complaints(path))


def acts(line: str) -> bool:
    return IN_TEXT.search(line) is not None or without_commands(line) != line


def written_complaints(path: Path) -> Iterator[str]:
    if path.suffix == ".json" or path.suffix == ".sarif":
        json.loads(path.read_bytes())
        return
    if path.suffix in DATA or path.suffix in (".png", ".parquet"):
        return
    text = path.read_text(encoding="utf-8")
    if found := IN_TEXT.search(text):
        yield f"{found[0]!r} in {text[max(0, found.start() - 60) : found.end() + 60]!r}"
    if path.suffix in (".html", ".svg", ".xml") and re.search(r"<script>alert|<img src=x|<i>tag", text):
        yield "markup"
    if path.suffix in (".svg", ".xml"):
        ET.fromstring(text)
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            yield from (f"cell {cell!r}" for row in csv.reader(file) for cell in row if inert_cell(cell) != cell)


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "good.jsonl").write_text(rows(["fine"]))
    return folder


@pytest.mark.parametrize("command", [*LOG_COMMANDS, *MORE_COMMANDS])
def test_all_hostile_texts_in_one_log(command: str, tmp_path: Path) -> None:
    name = f"{FILE}.jsonl" if os.name == "posix" else "log.jsonl"
    folder = fresh(tmp_path / "project")
    (folder / name).write_text(rows(TEXTS))
    assert not list(complaints(command, name, folder))


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_each_hostile_text_in_a_log_of_its_own(text: str, tmp_path: Path) -> None:
    for command in (*LOG_COMMANDS, *MORE_COMMANDS):
        folder = fresh(tmp_path / "project")
        (folder / "log.jsonl").write_text(rows([text]))
        assert not list(complaints(command, "log.jsonl", folder)), command


def scenario(text: str) -> str:
    words = json.dumps(text)
    content = SCENARIO.replace("What does it cost?", words).replace("source: a page", f"source: {words}")
    return content.replace('"$0.59"', words).replace("max_cost_usd: 40", "max_cost_usd: 0.01").replace("sweep:", "#")


@pytest.mark.parametrize("command", SCENARIO_COMMANDS)
@pytest.mark.parametrize("text", [ALL, "</title><script>alert(1)</script>"], ids=["all", "a script"])
def test_scenarios_with_hostile_texts_and_names(command: str, text: str, tmp_path: Path) -> None:
    name = f"{FILE}.yaml" if os.name == "posix" else "s.yaml"
    folder = fresh(tmp_path / "project")
    (folder / name).write_text(scenario(text))
    shutil.copy(Path(__file__).parents[2] / "scenarios/recordings/jp-17653152345.jsonl", folder / "talk.jsonl")
    if "--history" in command:
        assert run_here("check", name, "--reports", "out", "--update", cwd=folder).returncode in (0, 1, 3)
    assert not list(complaints(command, name, folder))


@pytest.mark.parametrize("where", ["name: own", "strategy: own", "model: claude-opus-4-6", "- progressive", "own,"])
@pytest.mark.parametrize("command", ["run LOG --no-report", "check LOG --github", "sweep LOG --seeds 2 --jobs 1"])
def test_hostile_names_in_a_scenario_before_annotations(where: str, command: str, tmp_path: Path) -> None:
    folder = fresh(tmp_path / "project")
    text = SCENARIO.replace(where, where.replace(where.strip("-, ").split()[-1].strip(","), json.dumps(ALL), 1))
    (folder / "s.yaml").write_text(text)
    assert not list(complaints(command, "s.yaml", folder))


def test_a_command_to_a_runner_is_seen_anywhere_in_a_line(tmp_path: Path) -> None:
    """A runner takes `##[` in the middle of a line too, as `message.IndexOf` finds it."""
    folder = fresh(tmp_path / "project")
    (folder / "log.jsonl").write_text(rows(["a ##[error]b", "c ##vso[task.complete]d"]))
    done = run_here("validate", "log.jsonl", cwd=folder)
    assert "##[" not in done.stdout and "##vso[" not in done.stdout and "\\u0023#[error]b" in done.stdout
    stdout = run_here("replay", "log.jsonl", "--json", "--tokens", "bytes", cwd=folder).stdout
    assert "##[" not in stdout and {json.loads(line)["session"] for line in stdout.splitlines()} == {
        "a ##[error]b",
        "c ##vso[task.complete]d",
    }
