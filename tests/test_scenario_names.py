"""What a scenario must not pass in silence: unknown names, breakpoints that are cut, strategies that do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachecost.base import yaml_text
from cachecost.base.errors import CannotEvaluate, InputError, NamesNotKnown
from cachecost.cli import exit_code
from cachecost.scenario import load
from cachecost.strategies.spec import StrategySpec

HEAD = "format: 1\nname: mine\n"
CONVERSATION = "conversation: {synthetic: {turns: 2}}\n"


def faults(folder: Path, text: str) -> list[str]:
    path = folder / "mine.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        load(path)
    return [str(fault).removeprefix(f"{path}:") for fault in raised.value.faults]


def test_models_are_told_with_every_other_error(tmp_path: Path) -> None:
    assert faults(
        tmp_path,
        "model: claude-opus-4-7x\n"
        "conversation: {synthetic: {turns: 2, callss: 2}}\n"
        "strategies:\n"
        "  - {preset: progressive, model: claude-sonet-4-5}\n"
        '  - {preset: "answer tool, auto", inquiry: {model: claude-haiku-45}}\n'
        "variants: [{name: v, model: claude-haiku-45}]\n",
    ) == [
        "3:1 model: unknown model 'claude-opus-4-7x' on host anthropic (did you mean 'claude-opus-4-7'?)",
        "4:38 conversation.synthetic.callss: unknown key (did you mean 'calls'?)",
        "6:27 strategies[0].model: unknown model 'claude-sonet-4-5' on host anthropic "
        "(did you mean 'claude-sonnet-4-5'?)",
        "7:45 strategies[1].inquiry.model: unknown model 'claude-haiku-45' on host anthropic "
        "(did you mean 'claude-haiku-4-5'?)",
        "8:22 variants[0].model: unknown model 'claude-haiku-45' on host anthropic (did you mean 'claude-haiku-4-5'?)",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("model: claude-opus-47\n", "3:1 model: unknown model 'claude-opus-47' on host anthropic (did you mean 'cla"),
        ("host: anthropc\nmodel: x\n", "3:1 host: expected one of anthropic, azure, bedrock, "),
        (
            "model: claude-opus-4-7\nsweep: {model: [claude-opus-4-7, claude-opus-4-77]}\n",
            "4:34 sweep.model[1]: model: unknown model 'claude-opus-4-77' on host anthropic",
        ),
    ],
)
def test_only_a_name_that_is_not_known_is_not_evaluated(
    tmp_path: Path, text: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (fault_text,) = faults(tmp_path, f"{text}{CONVERSATION}strategies: [progressive]\n")
    assert fault_text.startswith(fault)
    with pytest.raises(NamesNotKnown) as raised:
        load(tmp_path / "mine.yaml")
    assert isinstance(raised.value, CannotEvaluate)
    assert exit_code(lambda: load(tmp_path / "mine.yaml")) == 3
    assert capsys.readouterr().err.endswith("1 error; nothing was run.\n")


def test_with_another_error_it_is_not_valid(tmp_path: Path) -> None:
    faults(tmp_path, f"model: claude-opus-47\n{CONVERSATION}strategies: [progressiv]\n")
    assert exit_code(lambda: load(tmp_path / "mine.yaml")) == 2


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            "{name: mine}",
            "expected preset or breakpoints in addition to the name, or `breakpoints: []` for no caching; got neither",
        ),
        (
            "{name: progresive}",
            "expected preset or breakpoints in addition to the name, or `breakpoints: []` for no caching; got neither "
            "(did you mean 'progressive'?)",
        ),
        (
            "{name: a, breakpoints: [last_tool, each_system, last_system, previous_human, last_message]}",
            "breakpoints: expected at most 4, the limit of a request; got 5 "
            "(or add `trim: priority` to send the first 4 that apply, or `trim: oldest_message`)",
        ),
        (
            '{preset: "answer tool, auto", slots: 4, inquiry: {breakpoints: [last_tool, hint]}, '
            "name: b, breakpoints: [oops]}",
            "expected one of",
        ),
        (
            '{preset: "answer tool, auto", inquiry: {breakpoints: [last_tool, each_system, '
            "last_system, hint, automatic]}}",
            "inquiry.breakpoints: expected at most 4, the limit of a request; got 5 ",
        ),
    ],
)
def test_what_would_be_cut_or_do_nothing_is_an_error(tmp_path: Path, entry: str, words: str) -> None:
    (fault_text,) = faults(tmp_path, f"model: claude-opus-4-7\n{CONVERSATION}strategies:\n  - {entry}\n")
    place, _, message = fault_text.partition(": ")
    assert place.startswith("6:")
    assert message.startswith(words)


FIVE = "breakpoints: [last_tool, each_system, last_system, previous_human, last_message]"


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ("{name: a, breakpoints: []}", "It sends no breakpoints: where caching needs them, nothing is cached."),
        ("{name: a, thinking: off}", "It sends no breakpoints: where caching needs them, nothing is cached."),
        (
            f"{{name: a, {FIVE}, trim: priority}}",
            "Its list can choose 5 breakpoints and a request takes 4: the last of its list are left out.",
        ),
        (
            "{name: a, breakpoints: [{last_n: {n: 8}}]}",
            "Its list can choose 8 breakpoints and a request takes 4: the last of its list are left out.",
        ),
        (
            "{name: a, breakpoints: [{last_n: {n: 8}}], trim: oldest_message}",
            "Its list can choose 8 breakpoints and a request takes 4: the oldest in messages are left out.",
        ),
        (f"{{name: a, {FIVE}, slots: 5}}", ""),
        ("{name: a, breakpoints: [last_tool, last_message]}", ""),
        ("progressive", ""),
        ("none", ""),
    ],
)
def test_what_is_left_out_is_a_note(tmp_path: Path, entry: str, note: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HEAD}model: claude-opus-4-7\n{CONVERSATION}strategies: [progressive]\n", encoding="utf-8")
    from cachecost.scenario import load_conversations

    (conversation,) = load_conversations(load(path), tmp_path).conversations
    spec = StrategySpec.model_validate(yaml_text.parse(entry, "s.yaml").value)
    assert spec.resolve().notes(conversation) == ([note] if note else [])
