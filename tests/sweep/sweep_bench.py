"""A small scenario to sweep over, and `cachecost sweep` as a process, or in this one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cachecost.sweep.rows import SweepRow, open_store, temporary_store
from cachecost.sweep.runs import Sweep, run_sweep
from cachecost.sweep.workers import Workers

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
    breakpoints: [last_system, last_message]
    ttl: 1h
"""
ALONE = Workers("loky", 1)
LAUNCHER = """
import sys
from cachecost.cli import exit_code
from cachecost.commands.sweep import sweep
sys.exit(exit_code(lambda: sweep.main(args=sys.argv[1:], prog_name="cachecost sweep", standalone_mode=False)))
"""
COMMAND = [sys.executable, "-c", LAUNCHER]
ENVIRONMENT = {**os.environ, "CACHECOST_STORE": "off"}


def scenario_at(folder: Path, text: str = SCENARIO) -> Path:
    path = folder / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(sweep: Sweep) -> list[SweepRow]:
    """The rows of a sweep of which nothing is kept."""
    with temporary_store(sweep.axes) as store:
        run_sweep(sweep, ALONE, store, lambda done: None)
        return list(store.rows(sweep.job.axes))


def table(sweep: Sweep, out: Path, workers: Workers = ALONE) -> bytes:
    """The table of a sweep, which goes on with what is there."""
    run_sweep(sweep, workers, open_store(out, sweep.axes, sweep.about(), True), lambda done: None)
    return out.read_bytes()
