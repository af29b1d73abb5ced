"""Lengths that a request log states without a bill: they size prompts as the bill did, and nothing counts as billed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bodies import assistant, body, marked, text, user
from cachecost.base.errors import InputError
from cachecost.conversations.calls import KnownLengths, billed_lengths, parse_lengths
from cachecost.conversations.logs import Logs, read_logs
from cachecost.prompts.request import NotAMessage
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import read_workload

FIRST, SECOND = text(5_000, "a"), text(5_000, "b")
REQUESTS = [
    body(user(marked(FIRST, ttl="1h"), marked(SECOND))),
    body(user(FIRST, SECOND), assistant(text(100, "c")), user(marked(text(100, "d")))),
]
USAGES = [
    {
        "input_tokens": 3,
        "cache_creation_input_tokens": 3_300,
        "cache_creation": {"ephemeral_1h_input_tokens": 1_700, "ephemeral_5m_input_tokens": 1_600},
        "output_tokens": 40,
    },
    {"input_tokens": 3, "cache_read_input_tokens": 3_300, "cache_creation_input_tokens": 70, "output_tokens": 9},
]
SETUP = ReplaySetup(RuleBook(), PriceBook.load(None, None))


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    stamps = [{"timestamp": f"2026-10-01T08:00:{10 * number:02}Z"} for number in range(len(lines))]
    path.write_text("".join(json.dumps({**stamp, **line}) + "\n" for stamp, line in zip(stamps, lines, strict=True)))
    return path


@pytest.fixture
def billed(tmp_path: Path) -> Path:
    return written(
        tmp_path / "billed.jsonl",
        [{"request": one, "usage": usage} for one, usage in zip(REQUESTS, USAGES, strict=True)],
    )


def test_a_bill_shows_the_lengths_of_prompt_answer_and_prefixes(billed: Path) -> None:
    first, second = (billed_lengths(call).wire() for call in read_logs(Logs([billed])))
    hour, five = {"at": ["messages", 0, 0], "tokens": 1_700}, {"at": ["messages", 0, 1], "tokens": 3_300}
    assert first == {"prompt": 3_303, "output": 40, "prefixes": [hour, five]}
    assert second == {"prompt": 3_373, "output": 9, "prefixes": [{"at": ["messages", 2, 0], "tokens": 3_370}]}


def test_known_lengths_size_a_replay_as_the_bill_does(billed: Path, tmp_path: Path) -> None:
    lengths = [billed_lengths(call).wire() for call in read_logs(Logs([billed]))]
    lines = [{"request": one, "lengths": known} for one, known in zip(REQUESTS, lengths, strict=True)]
    with_bills, with_lengths = (
        read_workload(path, SETUP) for path in (billed, written(tmp_path / "known.jsonl", lines))
    )
    assert [row.usage for row in with_lengths.simulation().rows(with_lengths.calls)] == [
        row.usage for row in with_bills.simulation().rows(with_bills.calls)
    ]
    assert all(call.billed is None for call in read_logs(Logs([tmp_path / "known.jsonl"])))


def test_most_read_limits_what_a_call_reads(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"request": one} for one in REQUESTS]
    lines[1]["most_read"] = 0
    log = read_workload(written(tmp_path / "log.jsonl", lines), SETUP, "bytes")
    assert [row.usage.read for row in log.simulation().rows(log.calls)] == [0, 0]


@pytest.mark.parametrize(
    "wire",
    [{}, {"prompt": 7}, {"output": 0}, {"prompt": 9, "prefixes": [{"at": ["tools", 0], "tokens": 4}]}],
)
def test_lengths_survive_the_way_out_and_in(wire: dict[str, Any]) -> None:
    assert parse_lengths(wire).wire() == wire


WRONG = [
    (3, "lengths: expected an object; got 3"),
    ({"promt": 3}, "lengths.promt: expected one of prompt, output, prefixes; got 'promt'"),
    ({"prompt": -1}, "lengths.prompt: expected a whole number of tokens; got -1"),
    ({"output": True}, "lengths.output: expected a whole number of tokens; got True"),
    ({"prefixes": 3}, "lengths.prefixes: expected a list of at most 2; got 3"),
    ({"prefixes": [1]}, "lengths.prefixes.0: expected an object; got 1"),
    (
        {"prefixes": [{"at": ["messages", 0], "tokens": 1}]},
        'lengths.prefixes.0.at: expected a place like ["system", 0] or ["messages", 0, 0]; got an array',
    ),
    ({"prefixes": [{"at": ["tools", 0]}]}, "lengths.prefixes.0.tokens: expected a whole number of tokens; got nothing"),
]


@pytest.mark.parametrize(("wire", "said"), WRONG)
def test_what_is_wrong_is_said_by_its_path(wire: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(NotAMessage, match=r"^lengths") as caught:
        parse_lengths(wire)
    assert str(caught.value) == said
    log = written(tmp_path / "log.jsonl", [{"request": REQUESTS[0], "lengths": wire}])
    with pytest.raises(InputError, match=r"log.jsonl:1 lengths"):
        list(read_logs(Logs([log])))


@pytest.mark.parametrize("at", [["messages", 9, 0], ["messages", 0, 9], ["system", 0], ["tools", 4]])
def test_a_place_that_the_request_has_not_sizes_nothing(at: list[Any], billed: Path) -> None:
    call = next(iter(read_logs(Logs([billed]))))
    lengths = parse_lengths({"prompt": 3_000, "prefixes": [{"at": at, "tokens": 100}]})
    assert lengths.breakpoints(call.request) == ()
    assert KnownLengths(5).breakpoints(call.request) == ()
