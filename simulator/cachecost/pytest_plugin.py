"""The pytest plugin: scenarios and budgets as tests (`pytest --cachecost`), and the fixture `cache_cost`.

It stands alone because pytest imports it in every run of every project that has cachecost installed, asked for or not:
it imports pytest and nothing of cachecost until an option or the fixture asks for something.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cachecost.testing import CacheCost
    from cachecost.testing.scenarios import ScenarioOptions

SCENARIOS, REPORTS = "scenarios", "reports"
MARKER = "cache_cost(as_of, host, tokens, rules, prices, answers, clock): settings of the fixture cache_cost."
OPTIONS: pytest.StashKey[ScenarioOptions] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, in one group; every name begins with cachecost."""
    group = parser.getgroup("cachecost", "cachecost: budgets of prompt caching")
    group.addoption(
        "--cachecost",
        nargs="?",
        const=SCENARIOS,
        metavar="DIR",
        help=f"also test the budgets of the scenarios in DIR, given as --cachecost=DIR (default: {SCENARIOS})",
    )
    group.addoption(
        "--cachecost-reports", metavar="DIR", help=f"folder of the baselines (default: {REPORTS}, next to the project)"
    )
    group.addoption(
        "--cachecost-update", action="store_true", help="write the current costs of the scenarios as the new baselines"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; with --cachecost also collect the scenarios."""
    config.addinivalue_line("markers", MARKER)
    if config.getoption("cachecost") is None:
        for other in ("cachecost_reports", "cachecost_update"):
            if config.getoption(other):
                raise pytest.UsageError(f"--{other.replace('_', '-')} needs --cachecost")
        return
    from cachecost.testing.scenarios import read_options

    asked = config.stash[OPTIONS] = read_options(config, SCENARIOS, REPORTS)
    config.args += [one for one in map(str, asked.scenarios) if one not in config.args]


def pytest_report_header(config: pytest.Config) -> str | None:
    """A line, if scenarios are tested."""
    return config.stash[OPTIONS].header if OPTIONS in config.stash else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A scenario that was asked for, as a file of tests."""
    asked = parent.config.stash.get(OPTIONS, None)
    if asked is None or file_path not in asked.scenarios:
        return None
    from cachecost.testing.scenarios import ScenarioFile

    collected = ScenarioFile.from_parent(parent, path=file_path)
    collected.asked = asked
    return collected


@pytest.fixture
def cache_cost(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CacheCost]:
    """A simulated API for this test: takes its calls, without a key or a network, and asserts what they would cost."""
    from cachecost.testing import CacheCost

    options = [breakpoint.kwargs for breakpoint in request.node.iter_markers("cache_cost")]
    merged = {name: value for kwargs in reversed(options) for name, value in kwargs.items()}
    with CacheCost(tmp_path_factory.mktemp("cache_cost"), **merged) as made:
        yield made
