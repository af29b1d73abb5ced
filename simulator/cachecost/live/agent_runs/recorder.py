"""Scenarios whose conversation is what a command sends, made ready for everything that takes a scenario."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from cachecost.base.extras import require
from cachecost.live.callbacks import Say, ignore
from cachecost.scenario import Scenario
from cachecost.scenario.recorded import RecordedScenario


class AgentRecorder:
    """Records what the commands of scenarios send. The recordings exist until the recorder is closed.

    `say` prints diagnostics. Without `compares`, each command runs once, whatever its scenario says. Nothing of a
    server is imported before the first command.
    """

    def __init__(self, say: Say = ignore, compares: bool = False) -> None:
        self._say = say
        self._compares = compares
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the recordings."""
        self._open.close()

    def record(self, path: Path, scenario: Scenario) -> RecordedScenario:
        """The scenario at `path`, with a recording in the place of its command, if it has one.

        Raises NotInstalled, CommandFailed, InputError.
        """
        if scenario.conversation.command is None:
            return RecordedScenario(scenario)
        require("a scenario with a command", "starlette", "uvicorn")
        from cachecost.live.agent_runs.recording import record_agent

        place = self._open.enter_context(tempfile.TemporaryDirectory(prefix="cachecost-"))
        runs = scenario.conversation.runs if self._compares else 1
        return record_agent(path, scenario, Path(place), runs, self._say)
