"""Projects whose scenario runs the fake agent."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from command_runs import run_here

AGENT = Path(__file__).parent / "agents" / "fake_agent.py"
TURNS = ("What is in README.md?", "And in the tests?")


def agent_project(place: Path, mode: str = "plain", turns: tuple[str, ...] = TURNS, **options: Any) -> Path:
    """A project in the folder `place`, with a scenario that runs the agent; `options` are keys of its conversation."""
    shutil.copy(AGENT, place / "agent.py")
    (place / "pyproject.toml").touch()
    (place / "scenarios").mkdir(exist_ok=True)
    conversation = {
        "command": [sys.executable, "agent.py"],
        "turns": list(turns),
        **options,
        "env": {"MODE": mode, **options.get("env", {})},
    }
    text = "\n".join(
        [
            "format: 1",
            "name: mine",
            f"conversation: {json.dumps(conversation)}",
            "budget: {max_cost_usd: 1, max_regression: 1%}",
        ]
    )
    path = place / "scenarios" / "mine.yaml"
    path.write_text(f"{text}\n", encoding="utf-8")
    return path


def check(folder: Path, *options: str, **environment: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of `cachecost check` in the folder."""
    done = run_here("check", *options, cwd=folder, **environment)
    return done.returncode, done.stdout, done.stderr


def accepted(folder: Path) -> bytes:
    """The accepted recording of the project."""
    return (folder / "reports" / "mine" / "recording.jsonl").read_bytes()
