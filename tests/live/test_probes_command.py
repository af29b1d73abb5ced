"""`python -m tools.probes`: priced first, then asked of the simulated API, then a rules file that loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from probe_bench import FakeClock
from server_fakes import Says, served_by

from cachecost.commands.diagnostics import exit_code
from cachecost.live.server.app import app_of, serving
from cachecost.live.server.state import Meter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, own_rules
from cachecost.simulation.setup import ReplaySetup
from tools.probes.__main__ import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "api-key.md"
KEY = "sk-ant-planted-000000000001"


class Outcome:
    """What the command left behind."""

    def __init__(self, *arguments: str, key: str | None = KEY, url: str | None = None) -> None:
        environment = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": url}
        with CliRunner().isolation(env=environment) as (out, err, _):
            self.code = exit_code(lambda: main.main(list(arguments), standalone_mode=False))
            self.out, self.err = out.getvalue().decode(), err.getvalue().decode()


def test_the_price_comes_first_and_needs_no_key() -> None:
    """As the page shows it."""
    outcome = Outcome("--model", "claude-sonnet-4-6", "--max-usd", "3", "--dry-run", key=None)
    assert (outcome.code, outcome.err) == (0, "")
    command = "$ python -m tools.probes --model claude-sonnet-4-6 --max-usd 3 --dry-run\n"
    assert command + outcome.out in PAGE.read_text()


def test_nothing_is_sent_without_a_key_or_a_confirmation() -> None:
    arguments = ("--model", "claude-sonnet-4-6", "--max-usd", "1")
    assert "ANTHROPIC_API_KEY is not set; nothing was sent" in Outcome(*arguments, key=None).err
    outcome = Outcome(*arguments)
    assert (outcome.code, "nothing was sent. Add --yes to confirm" in outcome.err) == (2, True)


def test_an_unknown_probe_names_the_nearest() -> None:
    outcome = Outcome("--model", "claude-sonnet-4-6", "--probe", "minimun", "--max-usd", "1")
    assert (outcome.code, "got 'minimun' (did you mean 'minimum'?)" in outcome.err) == (2, True)


def test_a_rules_file_sizes_the_prompts(tmp_path: Path) -> None:
    """The findings of `minimum` advise it where a prefix must be longer than the built-in rules say."""
    path = tmp_path / "own.toml"
    path.write_text('[[minimum_tokens]]\nmodel = "claude-sonnet-4-6"\nvalue = 4096\nfrom = 2026-01-01\n')
    arguments = ("--model", "claude-sonnet-4-6", "--probe", "effort", "--max-usd", "1", "--dry-run")
    assert "effort: at most 27 calls, 81,648 input tokens" in Outcome(*arguments).out
    assert "81,648" not in Outcome(*arguments, "--rules", str(path)).out


def test_what_it_finds_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = tmp_path / "own.toml", FakeClock()
    monkeypatch.setattr("tools.probes.__main__.ScaledClock", lambda: clock)
    served = served_by(
        Says(), Meter(ReplaySetup(RuleBook(), PriceBook.load(None, None), "anthropic", "auto")), clock=clock
    )
    with serving(app_of(served), served.pauses) as url:
        args = ("--model", "claude-sonnet-4-6", "--probe", "minimum", "--probe", "ttl_in_key")
        outcome = Outcome(*args, "--max-usd", "2", "--yes", "--out", str(path), url=url)
    assert outcome.code == 0, outcome.err
    own = own_rules(path)
    assert own.assumptions == {"ttl_in_key": False}
    assert [(one.model, one.value) for one in own.rows] == [("claude-sonnet-4-6", 1024)]
    assert "2 questions asked, 2 settled" in outcome.out
    assert KEY not in outcome.out + outcome.err + path.read_text()
