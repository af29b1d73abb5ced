"""docs/reference/hosts.md says of each host what its rules say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cachecost.caches.hosts import CACHE_MODELS
from cachecost.providers.hosts import hosts
from cachecost.providers.listing import model_rows
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ttl_names

PAGE = (Path(__file__).parents[2] / "docs/reference/hosts.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the rows under a heading."""
    lines = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][2:]


def coded(cell: str) -> list[str]:
    return re.findall(r"`([a-z_-]+)`", cell)


def test_the_ways_are_those_that_rules_may_state() -> None:
    assert [coded(row[0])[0] for row in table("Ways to find a prefix")] == list(CACHE_MODELS)


def test_each_host_stands_there_with_the_ways_of_its_models() -> None:
    stated = {(host, way) for row in table("Which host has which") for host in coded(row[0]) for way in coded(row[2])}
    assert stated == {(host, row.rules.matching) for host in hosts() for row in model_rows(RuleBook(), host)}


@pytest.mark.parametrize("row", table("Which host has which"), ids=lambda row: f"{row[0][:20]} {row[2]}")
def test_lifetimes_are_those_of_the_rules(row: list[str]) -> None:
    for host in coded(row[0]):
        found = [one.rules for one in model_rows(RuleBook(), host) if one.rules.matching in coded(row[2])]
        lives_of_row = set(re.findall(r"\d+[mh]", row[3]))
        stated = [set(ttl_names([rules])[: len(rules.ttl_s)]) if rules.ttl_s else set() for rules in found]
        assert not lives_of_row or all(lives == lives_of_row for lives in stated), host
        if "not published" in row[3] or row[3].startswith("none"):
            assert not any(stated), host
