"""The example of a package that adds strategies: installed into a folder, it is listed and replayed by its names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parent / "example_package"
PROJECT = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
POINTS: dict[str, str] = PROJECT["entry-points"]["cachecost.strategies"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install --target` leaves of the package. By hand: its build backend is not among what tests install."""
    target = tmp_path_factory.mktemp("site")
    for module in EXAMPLE.glob("*.py"):
        shutil.copy(module, target)
    info = target / f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n")
    points = ConfigParser()
    points["cachecost.strategies"] = POINTS
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)
    return target


def run(site: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(site) if site else "", os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "cachecost", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three calls of a conversation: the second 299 s after the first, the third 300 s after the second."""
    path = tmp_path_factory.mktemp("logs") / "log.jsonl"
    messages: list[dict[str, str]] = []
    rows = []
    for number, timestamp in enumerate(("10:00:00", "10:04:59", "10:09:59")):
        messages += [{"role": "user", "content": f"question {number}"}]
        system = [{"type": "text", "text": "x" * 5_000}]
        tools = [{"name": "look", "description": "y" * 500, "input_schema": {"type": "object"}}]
        request = {"model": "claude-opus-4-6", "system": system, "tools": tools, "messages": list(messages)}
        rows.append(json.dumps({"timestamp": f"2026-03-07T{timestamp}Z", "request": request}))
        messages += [{"role": "assistant", "content": "an answer"}]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_they_are_listed(installed: Path) -> None:
    done = run(installed, "strategies", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["name"]: row for row in json.loads(done.stdout)["strategies"]}
    assert POINTS.keys() < rows.keys()
    assert {rows[name]["date"] for name in POINTS} == {"2026-11-22"}
    assert rows["example-two-ttls"]["what"].startswith("tools and system for an hour")


def test_they_are_replayed(installed: Path, log: Path) -> None:
    named = [word for name in POINTS for word in ("--strategy", name)]
    done = run(installed, "replay", str(log), *named, "--tokens", "bytes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    used = {name: [_used(row["usage"]) for row in rows if row.get("strategy") == name] for name in POINTS}
    assert used == {
        "example-two-ttls": [(0, 5_590, 35, 0), (5_625, 0, 69, 0), (5_590, 0, 173, 0)],
        "example-hindsight": [(0, 0, 5_625, 0), (5_625, 0, 69, 0), (0, 0, 0, 5_763)],
    }


def _used(usage: dict[str, Any]) -> tuple[int, int, int, int]:
    """Tokens read, written for an hour and for five minutes, and the rest."""
    written = usage["cache_creation"]
    read, rest = usage["cache_read_input_tokens"], usage["input_tokens"]
    return read, written["ephemeral_1h_input_tokens"], written["ephemeral_5m_input_tokens"], rest


def test_without_the_package_nobody_knows_them(log: Path) -> None:
    done = run(None, "replay", str(log), "--strategy", "example-hindsight", "--tokens", "bytes")
    assert done.returncode == 2
    assert "got 'example-hindsight'" in done.stderr
