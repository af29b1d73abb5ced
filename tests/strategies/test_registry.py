"""Strategies by name, those of other packages included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_talks import asked

from cachecost.strategies.presets import PRESETS
from cachecost.strategies.registry import UnknownStrategy, build, find_strategy, list_strategies, names
from cachecost.strategies.spec import StrategySpec

MODULE = """
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import Automatic, Placement

AGENT = Agent(name="theirs", what="as data", source="a page", date="2026-11-01", placement=Placement((Automatic(),)))


class Silent:
    name, source, date = "silent", "another page", "2026-11-02"

    def plan(self, conversation):
        return iter(())

    def notes(self, conversation):
        return ["It says nothing."]


def made():
    return Silent()


NOTHING = 5
"""
POINTS = """
[cachecost.strategies]
theirs = their_strategies:AGENT
silent = their_strategies:Silent
also-silent = their_strategies:made
progressive = their_strategies:Silent
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that adds strategies, and tries to take a built-in name."""
    (tmp_path / "their_strategies.py").write_text(MODULE)
    info = tmp_path / "their_strategies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-strategies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_strategies", raising=False)
    return info / "entry_points.txt"


def test_built_in_names_are_sorted_and_each_its_own() -> None:
    assert names() == sorted(PRESETS)
    assert all(PRESETS[name].name == name for name in names())


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UnknownStrategy) as raised:
        find_strategy("progresive")
    text = str(raised.value)
    assert text == (
        "expected one of automatic, base, claude-code, none, progressive, system-only … "
        f"({len(PRESETS)}: cachecost strategies), or one with @5m or @1h; "
        "got 'progresive' (did you mean 'progressive'?)"
    )


@pytest.mark.usefixtures("package")
def test_other_packages_add_strategies() -> None:
    assert [call.request.automatic for call in build("theirs").plan(asked())] == ["5m", "5m"]
    assert build("silent").notes(asked()) == ["It says nothing."]
    assert build("also-silent").date == "2026-11-02"


@pytest.mark.usefixtures("package")
def test_a_built_in_name_cannot_be_taken() -> None:
    assert build("progressive").source == PRESETS["progressive"].source


@pytest.mark.usefixtures("package")
def test_the_listing_has_all_with_source_and_date() -> None:
    rows = {row.name: row for row in list_strategies()}
    assert list(rows) == sorted([*PRESETS, "theirs", "silent", "also-silent"])
    assert rows["theirs"] == ("theirs", "as data", "a page", "2026-11-01")
    assert rows["silent"] == ("silent", "", "another page", "2026-11-02")
    assert rows["progressive"][2:] == (PRESETS["progressive"].source, PRESETS["progressive"].date)


@pytest.mark.usefixtures("package")
def test_a_spec_can_start_from_another_packages_agent_but_not_change_what_it_does_not_know() -> None:
    spec = StrategySpec.model_validate({"name": "mine", "preset": "theirs", "ttl": "1h"})
    assert [call.request.automatic for call in build(spec).plan(asked())] == ["1h", "1h"]
    with pytest.raises(ValueError, match="'silent' belongs to another package: it takes no options"):
        StrategySpec.model_validate({"preset": "silent", "ttl": "1h"})
    assert build(StrategySpec.model_validate("silent")).name == "silent"


def test_an_entry_point_that_is_no_strategy_says_what_it_lacks(package: Path) -> None:
    package.write_text("[cachecost.strategies]\nfive = their_strategies:NOTHING.real.bit_length\n")
    with pytest.raises(
        ValueError, match=r"entry point five = .*: no Strategy, it lacks name, source, date, plan, notes"
    ):
        build("five")


def test_built_in_strategies_need_no_heavy_import() -> None:
    code = (
        "import sys; from cachecost.strategies.registry import build; build('progressive'); "
        "print([name for name in ('pydantic', 'numpy', 'pandas', 'tiktoken') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
