"""`replay` counts the output that was recorded, and none where nothing was; what it counts calls by is the log."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

from cachecost.ledger.results import Ledger
from cachecost.views.replay.tables import print_ledgers
from command_runs import printed
from conversations.session_stores import write_lines

Row = dict[str, Any]
ANSWER = "an answer of some length " * 40


def row(turns: int, **fields: Any) -> Row:
    messages: list[Row] = []
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"{turn} " + "word " * 2_000},
            {"role": "assistant", "content": ANSWER},
        ]
    messages.append({"role": "user", "content": "go on"})
    request = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": messages}
    return {"timestamp": f"2026-03-07T{10 + turns}:00:00Z", "request": request, **fields}


def cachecost(log: Path, *rows: Row, how: tuple[str, ...]) -> str:
    write_lines(log, rows)
    return printed("replay", log, "--strategy", "none", *how)


def test_a_reply_whose_length_was_not_recorded_costs_nothing(tmp_path: Path) -> None:
    rows = [row(0), row(1), row(2, usage={"input_tokens": 4_500, "output_tokens": 77})]
    out = cachecost(tmp_path / "log.jsonl", *rows, how=("--tokens", "tiktoken", "--json"))
    made = [json.loads(line) for line in out.splitlines()]
    assert [(one["usage"]["output_tokens"], one["output_is_recorded"]) for one in made] == [
        (0, False),
        (0, False),
        (77, True),
    ]


def test_that_is_said(tmp_path: Path) -> None:
    out = cachecost(tmp_path / "log.jsonl", row(0), row(1), how=())
    assert "2 calls without recorded output: 0 output tokens counted" in map(str.strip, out.splitlines())


def test_the_title_counts_the_calls_of_the_log_whatever_a_strategy_adds() -> None:
    stream = StringIO()
    print_ledgers("log.jsonl", [Ledger("none", []), Ledger("with a ping", [])], stream, ranked=True, calls=7)
    assert stream.getvalue().splitlines()[0] == "log.jsonl   7 calls"
