"""What answers the command of a scenario in place of a model."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.base.yaml_text import PlacedValue
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.answers.script import ScriptAnswerer
from cachecost.live.server.model import Answerer
from cachecost.scenario import Scenario
from cachecost.scenario.loading import placed_of

ANSWERS = ("conversation", "answers")
IN_FILES = ("script:", "recording:")


def scenario_answerer(scenario: Scenario, folder: Path) -> Answerer:
    """What answers; files are relative to `folder`. Raises InputError."""
    answers = scenario.conversation.answers
    if not isinstance(answers, str):
        return _written_script(scenario)
    kind = next((kind for kind in IN_FILES if answers.startswith(kind)), None)
    text = f"{kind}{folder / answers.removeprefix(kind)}" if kind else answers
    try:
        return answerer_from(text)
    except ValueError as error:
        raise InputError([scenario.fault(ANSWERS, str(error))]) from None


def _written_script(scenario: Scenario) -> Answerer:
    """The replies that the scenario itself lists."""
    replies = placed_of(scenario).at(ANSWERS)
    script = PlacedValue({"format": 1}, {(): replies.place(())}).put(("replies",), replies)
    try:
        return ScriptAnswerer.from_values(script)
    except InputError as error:
        raise InputError(
            [
                replace(fault, message=f"{'.'.join(ANSWERS)}{fault.message.removeprefix('replies')}")
                for fault in error.faults
            ]
        ) from None
