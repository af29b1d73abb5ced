"""A call that the API refuses is left out of alternatives; the others are evaluated."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from bodies_of_cases import chat, row
from case_files import json_of, run_in

from conversations.session_stores import write_lines


@pytest.mark.parametrize("place", [0, 3, 6])
def test_keep_alives_are_evaluated_beside_a_refused_call(tmp_path: Path, place: int) -> None:
    rows = [row(420.0 * turn, chat(turn)) for turn in range(1, 7)]
    write_lines(tmp_path / "whole.jsonl", rows)
    refused = row(
        420.0 * (place + 0.5),
        chat(max(1, place)) | {"tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    )
    write_lines(tmp_path / "log.jsonl", [*rows[:place], refused, *rows[place:]])
    both = [
        json_of(run_in(tmp_path, "whatif", name, "--json", "--tokens", "bytes"))
        for name in ("whole.jsonl", "log.jsonl")
    ]
    for name in ("keep-alive=240s", "keep-alive=295s", "keep-alive=295s:1", "ttl=1h"):
        whole, beside = (next(one for one in report["alternatives"] if one["name"] == name) for report in both)
        assert (beside["supported"], Decimal(beside["saving_usd"])) == (
            whole["supported"],
            Decimal(whole["saving_usd"]),
        ), name
