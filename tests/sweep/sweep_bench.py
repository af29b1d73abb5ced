"""A small scenario to sweep over, and `cachecost sweep` as a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SCENARIO = """\
format: 1
name: small
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {turns: 3, calls: 3, pauses: {turn: {mean: 300, sd: 300}}}
  head: {system: {tokens: 6_000}}
strategies:
  - automatic
  - name: an hour
    marks: [last_system, last_message]
    ttl: 1h
"""
LAUNCHER = """
import sys
from cachecost.cli import exit_code
from cachecost.commands.sweep import sweep
sys.exit(exit_code(lambda: sweep.main(args=sys.argv[1:], prog_name="cachecost sweep", standalone_mode=False)))
"""
COMMAND = [sys.executable, "-c", LAUNCHER]
ENVIRONMENT = {**os.environ, "CACHECOST_CACHE": "off"}


def scenario_at(folder: Path, text: str = SCENARIO) -> Path:
    path = folder / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path
