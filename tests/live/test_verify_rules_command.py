"""`cachecost live --verify-rules`: priced first, then asked of the simulated API, then a rules file that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from probe_bench import FakeClock
from server_fakes import Says, served_by

from cachecost.base.errors import InputError
from cachecost.cli import cachecost
from cachecost.live.server.app import app_of
from cachecost.live.server.meter import Meter
from cachecost.live.server.serving import serving
from cachecost.providers.own_rules import own_rules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

KEY = "sk-ant-planted-000000000001"


def run(*args: str, key: str | None = KEY, url: str | None = None) -> Result:
    environment = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": url}
    return CliRunner().invoke(cachecost, ["live", *args], env=environment, catch_exceptions=False)


def test_the_price_comes_first_and_needs_no_key() -> None:
    told = run("--verify-rules", "--model", "claude-sonnet-4-6", "--max-usd", "1", "--dry-run", key=None)
    assert told.exit_code == 0
    assert re.search(r"minimum: at most \d+ calls, [\d,]+ input tokens, \$0\.\d{4}, 5 s of waiting", told.stdout)
    assert "the budget is $1" in told.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--max-usd", "1"), "expected SCENARIO.yaml, or --verify-rules with --model MODEL"),
        (("--verify-rules", "--max-usd", "1"), "--verify-rules takes --model MODEL and no scenario"),
    ],
)
def test_what_is_asked_wrongly_is_said(args: tuple[str, ...], words: str) -> None:
    told = run(*args)
    assert told.exit_code == 2
    assert words in told.output


def test_an_unknown_probe_is_told_with_its_nearest_name() -> None:
    with pytest.raises(InputError, match=r"got 'minimun' \(did you mean 'minimum'\?\)"):
        run("--verify-rules", "--model", "claude-sonnet-4-6", "--probe", "minimun", "--max-usd", "1")


def test_what_it_finds_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = tmp_path / "own.toml", FakeClock()
    monkeypatch.setattr("cachecost.live.clock.ScaledClock", lambda: clock)
    served = served_by(
        Says(), Meter(ReplaySetup(RuleBook(), PriceBook.load(None, None), "anthropic", "auto")), clock=clock
    )
    with serving(app_of(served), served.pauses) as url:
        args = ("--verify-rules", "--model", "claude-sonnet-4-6", "--probe", "minimum", "--probe", "ttl_in_key")
        told = run(*args, "--max-usd", "2", "--yes", "--out", str(path), url=url)
    assert told.exit_code == 0, told.output
    own = own_rules(path)
    assert own.assumptions == {"ttl_in_key": False}
    assert [(one.model, one.value) for one in own.rows] == [("claude-sonnet-4-6", 1024)]
    assert "2 questions asked, 2 settled" in told.stdout
    assert KEY not in told.output + path.read_text()
