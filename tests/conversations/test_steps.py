"""The content-free form of a transcript's steps: what goes in comes out, faults are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.claude_code.content_free import BETWEEN, parse_steps
from cachecost.providers.usage import Usage, usage_of
from step_records import TranscriptStep, read_steps, steps_to_records

AT = 1767348000.0
FULL = TranscriptStep(
    2,
    0,
    "side 1",
    1,
    "claude-opus-4-6",
    Usage(3, 5000, 0, 70, 12),
    AT,
    AT + 3.25,
    AT + 4,
    4,
    True,
    ("human", "model"),
    ("fast",),
    True,
)
BARE = TranscriptStep(1, 0, "main", None, "claude-opus-4-6", Usage(1))


def written(path: Path, lines: list[object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_file_of_it_is_read_as_a_transcript_is(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", list(steps_to_records([BARE, FULL], "one")))
    assert read_steps(path) == [replace(BARE, line=2), replace(FULL, line=3)]


moments = some.integers(0, 4_000_000_000_000_000).map(lambda micros: micros / 10**6)
spans = some.integers(0, 10**12).map(lambda micros: micros / 10**6)
counts = some.integers(0, 10**9)


@some.composite
def chains(draw: some.DrawFn) -> list[TranscriptStep]:
    """Steps of one file, numbered in order."""
    made: list[TranscriptStep] = []
    for number in range(1, draw(some.integers(0, 4)) + 1):
        answered = draw(some.none() | moments)
        waited, took = draw(some.none() | spans), draw(spans)
        made.append(
            TranscriptStep(
                number,
                number + 1,
                draw(some.sampled_from(("main", "side 1"))),
                draw(some.none() | some.integers(1, number - 1)) if number > 1 else None,
                draw(some.text(min_size=1)),
                usage_of((draw(counts) for _ in range(5)), draw(some.sampled_from(((), (("web_search", 2),))))),
                None if answered is None or waited is None else round(answered - waited, 6),
                answered,
                None if answered is None else round(answered + took, 6),
                draw(counts),
                draw(some.booleans()),
                tuple(word for word in BETWEEN if draw(some.booleans())),
                tuple(word for word in ("batch", "fast", "in eu") if draw(some.booleans())),
                draw(some.booleans()),
            )
        )
    return made


@given(chains())
def test_what_goes_in_comes_out(steps: list[TranscriptStep]) -> None:
    faults: list[Fault] = []
    records = json.loads(json.dumps(list(steps_to_records(steps, "x"))))
    lines = [JsonObject(record, faults, "x", number) for number, record in enumerate(records, 1)]
    assert ([TranscriptStep.of(call) for call in parse_steps(lines)], faults) == (steps, [])


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    head = {"format": 1, "kind": "steps", "name": "x", "colour": "red"}
    good = {"step": 1, "chain": "main", "model": "m", "usage": [1, 0, 0, 0, 0]}
    lines: list[object] = [
        head,
        {**good, "usage": [1, 0, 0, 0]},
        {**good, "step": 3, "before": 2, "between": ["rain"]},
        {**good, "step": 3, "waited_s": -1, "answered": "noon", "thought": True},
    ]
    path = written(tmp_path / "x.jsonl", lines)
    with pytest.raises(InputError) as caught:
        read_steps(path)
    words = "human, compaction, edit, model, client, error, fork"
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [
        ":1 colour: unknown key",
        ":2 usage: expected five whole numbers from 0; got an array",
        ":3 step: expected 2; got 3",
        ":3 before: no line before this one has step 2",
        f":3 between: expected an array of {words}; got an array",
        ":4 answered: expected an ISO 8601 time; got 'noon'",
        ":4 waited_s: expected a number from 0; got -1",
        ":4 thought: unknown key",
    ]


@pytest.mark.parametrize(("format_", "got"), [(2, "2"), (True, "True"), (None, "nothing")])
def test_another_format_is_refused(tmp_path: Path, format_: object, got: str) -> None:
    path = written(tmp_path / "x.jsonl", [{"format": format_, "kind": "steps"}])
    with pytest.raises(InputError) as caught:
        read_steps(path)
    assert str(caught.value) == f"{path}:1 format: expected 1; got {got}, which this version cannot read"
