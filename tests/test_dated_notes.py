"""--as-of is named where another day would give other figures: errors, retired models, prices that changed."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from bodies import body, text, user
from cachecost.base.errors import CannotEvaluate
from cachecost.commands.replay import price_note, retirement_note
from cachecost.providers.hosts import catalogue
from cachecost.providers.prices import PriceBook
from command_runs import run_here
from price_queries import prices_of


def log_of(folder: Path, model: str, day: str) -> Path:
    path = folder / "log.jsonl"
    path.write_text(json.dumps({"timestamp": f"{day}T09:00:00Z", "request": body(user(text(99)), model=model)}) + "\n")
    return path


@pytest.mark.parametrize(
    ("as_of", "words"),
    [
        (date(2026, 6, 14), ""),
        (
            date(2026, 6, 15),
            "claude-opus-4 is retired on 2026-06-15, so its last rules and prices hold; its last day: "
            "--as-of 2026-06-14",
        ),
    ],
)
def test_a_retired_model_names_its_last_day(as_of: date, words: str) -> None:
    assert retirement_note("anthropic", "claude-opus-4-20250514", as_of) == words
    assert retirement_note("anthropic", "nobody", as_of) == retirement_note("openai", "gpt-4o", as_of) == ""


@pytest.mark.parametrize(
    ("day", "now", "is_said"),
    [
        # gpt-5.6-sol: 5 until 2026-08-20, 4 from 2026-08-21 on
        (date(2026, 8, 20), date(2026, 8, 20), False),
        (date(2026, 8, 20), date(2026, 8, 21), True),
        (date(2026, 8, 21), date(2026, 11, 24), False),
        (date(2026, 1, 1), date(2026, 11, 24), False),  # no price on the day: the call says so itself
    ],
)
def test_a_changed_price_names_today(day: date, now: date, is_said: bool) -> None:
    words = f"gpt-5.6-sol: the prices changed after {day}, the day of its last call; for those of today: --as-of {now}"
    assert price_note(PriceBook(), "openai", "gpt-5.6-sol", day, now) == (words if is_said else "")
    assert price_note(PriceBook(), "openai", "nobody", day, now) == ""


@pytest.mark.parametrize("command", ["replay", "whatif"])
@pytest.mark.parametrize(
    ("model", "day", "more", "words"),
    [
        ("claude-sonnet-5-5", "2026-10-06", (), "--as-of 2026-11-24"),
        ("claude-sonnet-5-5", "2026-10-07", (), ""),
        ("claude-sonnet-5-5", "2026-10-06", ("--as-of", "2026-10-06"), ""),
        ("claude-opus-4", "2026-06-14", ("--as-of", "2026-06-15"), "--as-of 2026-06-14"),
    ],
)
def test_commands_say_so(tmp_path: Path, command: str, model: str, day: str, more: tuple[str, ...], words: str) -> None:
    done = run_here(command, log_of(tmp_path, model, day), "--tokens", "bytes", *more)
    assert done.returncode == 0
    notes = [line for line in done.stderr.splitlines() if line.startswith(model)]
    assert [note.endswith(words) for note in notes] == [True] * bool(words)


def test_a_call_before_its_model_names_the_day(tmp_path: Path) -> None:
    done = run_here("replay", log_of(tmp_path, "claude-opus-5", "2026-07-23"), "--tokens", "bytes")
    assert done.returncode == 3
    assert "claude-opus-5 has no rules on 2026-07-23; known from 2026-07-24: --as-of 2026-07-24" in done.stdout


def test_a_model_that_is_planned_with_says_that_it_is_retired(tmp_path: Path) -> None:
    log = log_of(tmp_path, "claude-opus-5", "2026-11-01")
    done = run_here("replay", log, "--tokens", "bytes", "-s", "none", "--model", "claude-3-opus")
    assert "claude-3-opus is retired on 2026-11-21, so " in done.stderr and "--as-of 2026-01-04" in done.stderr


def test_prices_and_modifiers_of_other_days_name_one() -> None:
    with pytest.raises(CannotEvaluate, match=r"from 2026-05-12 until 2026-07-24: --as-of 2026-07-23\)"):
        prices_of(PriceBook(), "anthropic", "claude-opus-4-7", date(2026, 8, 1), 0, fast=True)
    model = catalogue("anthropic").model("claude-opus-5")
    with pytest.raises(CannotEvaluate, match=r"it is known from .* on: --as-of "):
        catalogue("anthropic").value(model, "minimum_tokens", date(2020, 1, 1))
