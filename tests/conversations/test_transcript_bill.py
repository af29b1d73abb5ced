"""The reader of bills takes transcripts as the reader of steps does, and in pieces as at once."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conversations.random_transcripts import DAMAGE, RandomTranscript

from cachecost.base.errors import InputError
from cachecost.base.limits import MOST_ERRORS
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.readers.claude_code.content_free import BETWEEN
from cachecost.conversations.readers.claude_code.steps import read_sessions
from cachecost.conversations.readers.claude_code.transcript import Transcript
from step_records import TranscriptStep, read_steps, steps_to_records

LOGS = settings(max_examples=int(os.environ.get("CACHECOST_LOGS", "80")))
Facts = tuple[Any, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transcripts")


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def step_facts(step: TranscriptStep) -> Facts:
    """What a step and a billed call both know."""
    start = step.after if step.after is not None else step.answered
    place = (step.number, step.line, step.before or 0, step.chain.startswith("side"), step.model, step.usage)
    return (*place, start, step.answered, step.ended, step.blocks, step.thinking, step.between, step.modes, step.summed)


def call_facts(call: BilledCall) -> Facts:
    place = (call.number, call.line, call.before, bool(call.agent), call.model, call.usage)
    between = tuple(event for event in BETWEEN if event in call.events)
    times = (call.start, call.answered, call.end)
    return (*place, *times, call.blocks, call.has_thinking, between, call.modes, call.is_summed)


def read(path: Path) -> SessionFile:
    return Transcript(path).read()


@LOGS
@given(st.randoms(use_true_random=False), st.booleans())
def test_calls_are_the_steps_with_content(folder: Path, random: Random, has_copies: bool) -> None:
    """Answers of another file are no calls, and take no number."""
    transcript = RandomTranscript(random, has_copies=has_copies).fill(14, damage=False)
    path = write(folder / "whole.jsonl", b"".join(line + b"\n" for line in transcript.lines))
    found, steps = read(path), read_steps(path)
    assert [call_facts(call) for call in found.calls] == [step_facts(step) for step in steps]
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert (found.damaged, found.notes) == ((), ())


@LOGS
@given(st.randoms(use_true_random=False))
def test_damaged_lines_are_noted_and_change_nothing_else(folder: Path, random: Random) -> None:
    transcript = RandomTranscript(random).fill(14, damage=True)
    path = write(folder / "damaged.jsonl", b"".join(line + b"\n" for line in transcript.lines))
    blank = [b"" if number in transcript.damaged else line for number, line in enumerate(transcript.lines, 1)]
    without = write(folder / "without.jsonl", b"".join(line + b"\n" for line in blank))
    found = read(path)
    assert [number for number, _ in found.damaged] == transcript.damaged
    assert [call_facts(call) for call in found.calls] == [step_facts(step) for step in read_steps(without)]
    if transcript.damaged:
        with pytest.raises(InputError) as caught:
            read_steps(path)
        assert sorted({fault.line for fault in caught.value.faults}) == transcript.damaged


@LOGS
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_file_that_grows_is_read_as_if_at_once(folder: Path, random: Random, pieces: int) -> None:
    transcript = RandomTranscript(random).fill(8, damage=True)
    data = b"\n".join(transcript.lines) + random.choice((b"", b"\n", b"\r\n", b'\n{"type": "assi'))
    cuts = sorted(random.randint(0, len(data)) for _ in range(pieces))
    path, state = folder / "growing.jsonl", b""
    for cut in (*cuts, len(data)):
        found, state = read_sessions(write(path, data[:cut]), state)
        assert (found, state) == read_sessions(path)
    at_once = read(path)
    assert found == ([at_once] if at_once.calls or at_once.damaged or at_once.notes else [])


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_last_line_is_cut_off_only_if_it_is_no_json(tmp_path: Path, damage: bytes, end: bytes) -> None:
    """Without its newline a line that does not parse is still being written; one that parses is as it is."""
    path = write(tmp_path / "s.jsonl", b'{"type": "user", "uuid": "a", "message": {"content": "x"}}\n' + damage + end)
    found = read(path)
    is_cut = not end and not _parses(damage)
    assert found.notes == ((":2 the last line is cut off (still being written?): skipped",) if is_cut else ())
    assert [number for number, _ in found.damaged] == ([] if is_cut else [2])


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a" 1}', "damaged JSON: Expecting ':' delimiter at character 6"),
        (b"5", "expected an object; got 5"),
        (b"[]", "expected an object; got an array"),
        (b'{"type": "user", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
        (b"[" * 100_000, "expected at most 128 levels of nesting; got more"),
        (b'{"a": NaN}', "damaged JSON: Out of range float values are not JSON compliant"),
        (b'{"uuid": "x"}', "type: expected a text; got nothing"),
        (b'{"type": {}, "uuid": "x"}', "type: expected `str | null`, got `object`"),
        (b'{"type": "user", "uuid": "x"}', "message: expected an object; got nothing"),
        (
            b'{"type": "assistant", "message": {"model": "m", "usage": {"input_tokens": "9"}}}',
            "message.usage.input_tokens: expected `int | null`, got `str`",
        ),
        (
            b'{"type": "assistant", "message": {"model": "m", "usage": {"input_tokens": -9}}}',
            "message.usage.input_tokens: expected `int` >= 0",
        ),
        (b'{"type": "user", "timestamp": "soon", "message": {}}', "Invalid isoformat string: 'soon'"),
    ],
)
def test_why_a_line_is_damaged(tmp_path: Path, line: bytes, reason: str) -> None:
    """How deep a part may nest that is not needed differs by Python; a number that is none is named by some."""
    (found,) = (why for _, why in read(write(tmp_path / "s.jsonl", line + b"\n")).damaged)
    deep = "expected at most 128 levels of nesting; got more", "message: expected an object; got nothing"
    assert found.removesuffix(": nan") == reason if reason else found in deep


def test_passes_and_tool_uses_are_those_of_the_line_with_the_bill(tmp_path: Path) -> None:
    """The last line of an answer has those that were made until then."""
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 100}
    extra = [{"type": "compaction", "input_tokens": 7, "output_tokens": 3}, {"type": "message"}]
    first = {"id": "m", "model": "claude-opus-4-5", "usage": {**usage, "output_tokens": 1}}
    searches = {"web_search_requests": 2}
    last = {**first, "usage": {**usage, "output_tokens": 9, "iterations": extra, "server_tool_use": searches}}
    lines = [{"type": "assistant", "uuid": str(at), "message": one} for at, one in enumerate((first, last))]
    (call,) = read(write(tmp_path / "s.jsonl", b"".join(json.dumps(one).encode() + b"\n" for one in lines))).calls
    assert (call.tokens, call.extra) == ((5, 0, 100, 0, 9), (("", (7, 0, 0, 0, 3)),))
    assert call.tool_uses == (("web_search", 2),)


def test_a_packed_transcript_is_read_and_continued(tmp_path: Path) -> None:
    lines = RandomTranscript(Random(1)).fill(60, damage=False).lines
    whole = b"".join(line + b"\n" for line in lines)
    path = write(tmp_path / "s.jsonl.gz", gzip.compress(whole[:900]))
    _, state = read_sessions(path)
    write(path, gzip.compress(whole[:900]) + gzip.compress(whole[900:]))
    plain = read(write(tmp_path / "s.jsonl", whole))
    assert read_sessions(path, state)[0][0].calls == read(path).calls == plain.calls
    assert len(plain.calls) > 3


@LOGS
@given(st.randoms(use_true_random=False))
def test_the_content_free_form_of_a_transcript_has_its_bill(folder: Path, random: Random) -> None:
    transcript = RandomTranscript(random, has_copies=True).fill(8, damage=False)
    steps = read_steps(write(folder / "whole.jsonl", b"".join(line + b"\n" for line in transcript.lines)))
    form = b"".join(json.dumps(one).encode() + b"\n" for one in steps_to_records(steps, "s"))
    (session,), state = read_sessions(write(folder / "steps.jsonl", form))
    without_line = [(*call_facts(call)[:1], *call_facts(call)[2:]) for call in session.calls]
    assert without_line == [(*step_facts(step)[:1], *step_facts(step)[2:]) for step in steps]
    assert state == b""


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_of_damage_is_no_transcript(tmp_path: Path, more: int) -> None:
    path = write(tmp_path / "s.jsonl", b"{\n" * (MOST_ERRORS + more))
    if not more:
        assert len(read(path).damaged) == MOST_ERRORS
        return
    with pytest.raises(InputError) as caught:
        read(path)
    assert [fault.line for fault in caught.value.faults] == list(range(1, MOST_ERRORS + 2))


def test_a_line_beyond_the_limit_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_MAX_LINE", "100")
    path = write(tmp_path / "s.jsonl", b'{"type": "user", "x": "' + b"y" * 200 + b'"}\n')
    with pytest.raises(InputError, match=r"s\.jsonl:1 expected at most 100 bytes in a line or body"):
        read(path)
