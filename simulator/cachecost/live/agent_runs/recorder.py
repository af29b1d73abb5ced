"""Scenarios whose conversation is what a command sends, made ready for everything that takes a scenario."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from cachecost.base.atomic_files import InUse, lock_file
from cachecost.base.extras import require
from cachecost.live.clock import Say, ignore
from cachecost.scenario import Scenario
from cachecost.scenario.loading import RecordedScenario

PREFIX, LOCK = "cachecost-run-", "lock"


class AgentRecorder(ExitStack):
    """Records what the commands of scenarios send. The recordings exist until the recorder is closed.

    `say` prints diagnostics. Without `compares`, each command runs once, whatever its scenario says. Nothing of a
    server is imported before the first command.
    """

    def __init__(self, say: Say = ignore, compares: bool = False) -> None:
        super().__init__()
        self._say = say
        self._compares = compares

    def record(self, path: Path, scenario: Scenario) -> RecordedScenario:
        """The scenario at `path`, with a recording in the place of its command, if it has one.

        Raises NotInstalled, CommandFailed, InputError.
        """
        if scenario.conversation.command is None:
            return RecordedScenario(scenario)
        require("a scenario with a command", "starlette", "uvicorn")
        from cachecost.live.agent_runs.recording import record_agent

        place = self.enter_context(work_folder())
        runs = scenario.conversation.runs if self._compares else 1
        return record_agent(path, scenario, place, runs, self._say)


@contextmanager
def work_folder() -> Iterator[Path]:
    """A temporary folder for recordings. Those of this user that killed processes left behind are removed before."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, InUse):
            found = left.lstat()
            if not stat.S_ISDIR(found.st_mode) or sys.platform == "win32" or found.st_uid != os.getuid():
                continue
            lock = left / LOCK
            if lock.exists():
                with lock.open("r+") as held:
                    lock_file(held.fileno())
                    shutil.rmtree(left)
            # a folder without a lock is taken for one that is being made for so long
            elif time.time() - found.st_mtime > 3600:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, (Path(name) / LOCK).open("w") as own:
        lock_file(own.fileno())
        yield Path(name)
