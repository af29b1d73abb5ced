"""JSON is the same bytes in every environment, and no command breaks in an encoding that lacks its signs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cachecost.base.formatting import AS_ASCII, IN_TEXT
from command_runs import run_here
from hostile.attempts import LOG_COMMANDS
from hostile.seeds import SCENARIO
from hostile.test_foreign_text import rows
from slow_cases import mostly_slow

LOG, SIGNED = "é–日本.jsonl", "s.yaml"
JSON_COMMANDS = (
    f"replay {LOG} --json --tokens bytes",
    "validate log.jsonl --json",
    "explain log.jsonl --json --tokens bytes",
    "whatif log.jsonl --json --tokens bytes",
    "optimize log.jsonl --json --tokens bytes",
    "lint log.jsonl --json",
    "bill log.jsonl --json --timezone UTC",
    "next log.jsonl --json --counter bytes --at 2026-03-07T12:00:00Z",
    f"run {SIGNED} --json --no-report",
    f"explain {SIGNED} --json",
    f"check {SIGNED} --json --reports reports",
    f"sweep {SIGNED} --json --jobs 1 --grid conversation.synthetic.turns=2,3",
    "models --json",
    "strategies --json",
    "rules --json",
)
ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "LANG=C": {"LANG": "C", "LC_ALL": "C"},
    "LANG=POSIX": {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
    "LANG=de": {"LANG": "de_DE.ISO-8859-1", "LC_ALL": "de_DE.ISO-8859-1"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "UTF-8 off": {"PYTHONUTF8": "0"},
    "UTF-8 on": {"PYTHONUTF8": "1"},
    "a zone": {"TZ": "Pacific/Kiritimati"},
    "hash seed": {"PYTHONHASHSEED": "4711"},
    "narrow": {"COLUMNS": "20", "LINES": "5"},
    "no colour": {"NO_COLOR": "1"},
    "colour": {"FORCE_COLOR": "1", "COLORTERM": "truecolor"},
    "dumb": {"TERM": "dumb"},
    "no home": {"HOME": None, "XDG_CACHE_HOME": None},
}
WORST: dict[str, str | None] = {}
for one in ("LANG=POSIX", "ascii", "a zone", "hash seed", "narrow", "colour"):
    WORST |= ENVIRONMENTS[one]
SCRIPT = """\
import sys
from cachecost.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split("|"))
    except SystemExit as ended:
        sys.stdout.write(f"exit code {int(ended.code or 0)}\\n")
        sys.stdout.flush()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "log.jsonl").write_text(rows(["naïve → 日本 ✗"]))
    shutil.copy(folder / "log.jsonl", folder / LOG)
    text = SCENARIO.replace("What does it cost?", "“Was kostet es?” – 日本 ✗")
    (folder / SIGNED).write_text(text.replace("sweep:", "#"), encoding="utf-8")
    return folder


def printed_in(folder: Path, environment: dict[str, str | None], commands: Sequence[str] = JSON_COMMANDS) -> bytes:
    """What the JSON commands print to stdout in one process of that environment, and their exit codes."""
    merged = {**os.environ, "PYTHONUTF8": "0", **environment}
    values = {name: value for name, value in merged.items() if value is not None}
    lines = [command.replace(" ", "|") for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *lines], cwd=folder, env=values, capture_output=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def usual(project: Path) -> bytes:
    found = printed_in(project, {})
    codes = [line for line in found.decode().splitlines() if line.startswith("exit code")]
    assert len(codes) == len(JSON_COMMANDS) and set(codes) <= {"exit code 0", "exit code 1", "exit code 3"}, codes
    assert "naïve → 日本 ✗" in found.decode() and "“Was kostet es?” – 日本 ✗" in found.decode()
    return found


def test_json_is_the_same_where_all_is_unusual(project: Path) -> None:
    some = JSON_COMMANDS[::4]
    assert printed_in(project, WORST, some) == printed_in(project, {}, some)


@pytest.mark.slow
def test_json_of_every_command_is_the_same_where_all_is_unusual(project: Path, usual: bytes) -> None:
    assert printed_in(project, WORST) == usual


@pytest.mark.long
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_json_is_the_same_in_every_environment(environment: str, project: Path, usual: bytes) -> None:
    assert printed_in(project, ENVIRONMENTS[environment]) == usual


@pytest.mark.parametrize("encoding", mostly_slow(["ascii", "latin-1", "cp1252"], 1))
def test_every_command_writes_what_the_encoding_has(encoding: str, project: Path, tmp_path: Path) -> None:
    scenario = (f"{name} {SIGNED}" for name in ("run --no-report", "explain", "optimize", "check --github"))
    logs = (command.replace("OUT", str(tmp_path)).replace("GOOD", "log.jsonl") for command in LOG_COMMANDS)
    for command in (*logs, *scenario, "models", "rules", "strategies", "bill LOG --all-calls"):
        if "--json" in command:  # that is UTF-8
            continue
        words = [LOG if word == "LOG" else word for word in command.split()]
        done = run_here(*words, cwd=project, PYTHONIOENCODING=encoding)
        assert done.returncode in (0, 1, 2, 3), (command, done.stderr)
        assert not IN_TEXT.search(done.stdout + done.stderr), command


def test_ascii_has_ascii_in_the_place_of_signs(project: Path) -> None:
    """stderr too, where click would write UTF-8 past the stream that makes text inert."""
    odd = project / "a\u202eb→✗.jsonl"
    odd.write_text("[]")
    done = run_here("replay", odd.name, cwd=project, PYTHONIOENCODING="ascii")
    assert done.returncode == 2 and done.stderr.isascii() and "a\\u202eb->x.jsonl" in done.stderr
    shown = run_here("run", SIGNED, "--no-report", cwd=project, PYTHONIOENCODING="ascii").stdout
    assert shown.isascii() and not set(AS_ASCII) & set(shown)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text there")
@pytest.mark.parametrize("command", LOG_COMMANDS)
def test_a_name_that_is_not_utf_8(command: str, project: Path, tmp_path: Path) -> None:
    log = tmp_path / os.fsdecode(b"q\xff\xe9.jsonl")
    shutil.copy(project / "log.jsonl", log)
    words = [{"LOG": str(log), "GOOD": "log.jsonl"}.get(one, one.replace("OUT", "out")) for one in command.split()]
    done = run_here(*words, cwd=project)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    if command == "replay LOG --json --tokens bytes":
        assert json.loads(done.stdout.splitlines()[0])["file"].endswith("/q\\xff\\xe9.jsonl")
