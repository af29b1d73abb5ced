"""Scenarios whose conversation is what a command sends: what may stand in them, and that every fault is at its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cachecost.base import yaml_text
from cachecost.base.errors import InputError
from cachecost.scenario import load, load_conversations, schema
from cachecost.testing.scenarios import guards

SMALL = """\
format: 1
name: small
conversation:
  command: python agent.py 'two words' {turn}
  turns: ["What is in README.md?"]
"""


def scenario(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(scenario(folder, text))
    return [str(fault).removeprefix(f"{folder}/") for fault in raised.value.faults]


def is_valid(text: str) -> bool:
    values: Any = yaml_text.parse(text, "mine.yaml").value
    return jsonschema.Draft202012Validator(schema()).is_valid(values)


def test_a_minimal_scenario(tmp_path: Path) -> None:
    found = load(scenario(tmp_path, SMALL))
    assert found.conversation.command == ("python", "agent.py", "two words", "{turn}")
    assert (found.model, found.strategies, found.first) == ("", [], "as recorded")
    assert (found.conversation.timeout, found.conversation.runs, found.conversation.answers) == (60, 2, "agent")
    assert is_valid(SMALL)


def test_words_are_taken_as_they_are(tmp_path: Path) -> None:
    found = load(scenario(tmp_path, SMALL.replace("python agent.py 'two words' {turn}", '[python, "it is", "{turn}"]')))
    assert found.conversation.command == ("python", "it is", "{turn}")


EXPECTED = "expected a command, as text or as a list of words"
IN_SCHEMA = True


@pytest.mark.parametrize(
    ("old", "new", "fault", "seen"),
    [
        ("python agent.py 'two words' {turn}", "''", f"4:3 conversation.command: {EXPECTED}; got ''", not IN_SCHEMA),
        (
            "python agent.py 'two words' {turn}",
            "[]",
            f"4:3 conversation.command: {EXPECTED}; got a list of 0",
            IN_SCHEMA,
        ),
        ("python agent.py 'two words' {turn}", "7", f"4:3 conversation.command: {EXPECTED}; got 7", IN_SCHEMA),
        (
            "'two words' {turn}",
            "it's",
            '4:3 conversation.command: expected a command as a shell splits it; got "python agent.py it\'s": '
            "No closing quotation",
            not IN_SCHEMA,
        ),
        (
            '  turns: ["What is in README.md?"]\n',
            "",
            "4:3 conversation.command: expected turns for {turn}: what a person says, a text per turn",
            not IN_SCHEMA,
        ),
        (
            '["What is in README.md?"]',
            "3",
            "5:3 conversation.turns: expected a list of what a person says; got 3",
            not IN_SCHEMA,
        ),
        ('"What is in README.md?"', "5", "5:11 conversation.turns[0]: expected text; got 5", IN_SCHEMA),
        ("  turns", "  runs: 3\n  turns", "5:3 conversation.runs: expected one of 1, 2; got 3", IN_SCHEMA),
        ("  turns", "  timeout: 0\n  turns", "5:3 conversation.timeout: expected more than 0.0; got 0", IN_SCHEMA),
        ("  turns", "  env: {A: 1}\n  turns", "5:9 conversation.env.A: expected text; got 1", IN_SCHEMA),
        (
            "  turns",
            "  content: digests\n  turns",
            "5:3 conversation.content: expected one of digest, keep; got 'digests' (did you mean 'digest'?)",
            IN_SCHEMA,
        ),
        (
            "  turns",
            "  tmeout: 5\n  turns",
            "5:3 conversation.tmeout: unknown key (did you mean 'timeout'?)",
            IN_SCHEMA,
        ),
        (
            "  turns",
            "  synthetic: {}\n  turns",
            "3:1 conversation: expected recording, synthetic or command; got synthetic and command",
            not IN_SCHEMA,
        ),
    ],
)
def test_one_fault(tmp_path: Path, old: str, new: str, fault: str, seen: bool) -> None:
    text = SMALL.replace(old, new)
    assert faults(tmp_path, text) == [f"mine.yaml:{fault}"]
    assert is_valid(text) is not seen


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (found,) = faults(tmp_path, SMALL.replace("  turns", "  cwd: ./agents\n  turns"))
    where = f"there is no {tmp_path / 'agents'}"
    assert found == f"mine.yaml:5:3 conversation.cwd: expected a folder; got './agents', and {where}"


def test_what_only_a_command_has(tmp_path: Path) -> None:
    keys = "answers: agent, cwd: ., env: {}, timeout: 5, runs: 1, content: keep"
    text = f"format: 1\nname: small\nconversation: {{synthetic: {{}}, turns: [a], {keys}}}\n"
    assert faults(tmp_path, text) == [
        "mine.yaml:1:1 model: expected text; got nothing",
        "mine.yaml:1:1 strategies: expected a list; got nothing",
        "mine.yaml:3:31 conversation.turns: expected a whole number without a command; got a list of 1",
        "mine.yaml:3:43 conversation.answers: expected only with a command",
        "mine.yaml:3:59 conversation.cwd: expected only with a command",
        "mine.yaml:3:67 conversation.env: expected only with a command",
        "mine.yaml:3:76 conversation.timeout: expected only with a command",
        "mine.yaml:3:88 conversation.runs: expected only with a command",
        "mine.yaml:3:97 conversation.content: expected only with a command",
    ]
    assert not is_valid(text)


def test_a_budget_names_the_calls_as_recorded_or_a_strategy(tmp_path: Path) -> None:
    text = f"{SMALL}budget: {{strategy: as recorded, max_regression: 1%}}\n"
    assert [guard.name for guard in guards(load(scenario(tmp_path, text)))] == [
        "as recorded: max_regression",
        "as recorded: deterministic",
    ]
    once = text.replace("  turns", "  runs: 1\n  turns")
    assert [guard.name for guard in guards(load(scenario(tmp_path, once)))] == ["as recorded: max_regression"]
    unknown = text.replace("as recorded", "as recoded")
    assert faults(tmp_path, unknown) == [
        "mine.yaml:6:10 budget.strategy: expected as recorded; got 'as recoded' (did you mean 'as recorded'?)"
    ]


def test_a_command_that_did_not_run_has_no_conversation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml:4:3 conversation\.command: expected a recording or a synthetic"):
        load_conversations(load(scenario(tmp_path, SMALL)), tmp_path)
