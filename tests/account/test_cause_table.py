"""The table of causes: what it refuses at load, and that every name of a cause in the code is one of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from cachecost.account.causes import Cause, cause_events, causes, coded_causes, parse_causes
from cachecost.changes.fixes import FIXERS, FIXES
from cachecost.views.viewer.call import name_of_cause

RULEBOOK = (Path(__file__).parents[2] / "docs" / "rulebook.md").read_text()


def a_table() -> dict[str, Any]:
    """A table of every cause, of which one costs something."""
    rows: dict[str, Any] = {cause: {"name": cause} for cause in get_args(Cause)}
    texts = dict.fromkeys(("word", "what", "sentence", "why", "fix", "source"), "…")
    rows["fork"] |= {"code": "CC122", "rule": 10, "fixed_in": "breakpoints", "fixer": "place_breakpoints", **texts}
    return {"cause": rows}


def test_a_table_of_all_causes_is_read() -> None:
    assert parse_causes(a_table())["fork"].code == "CC122"


def test_a_cause_without_a_fixer_is_refused_and_nothing_is_one() -> None:
    table = a_table()
    del table["cause"]["fork"]["fixer"]
    with pytest.raises(ValueError, match=r"^fork: causes\.toml says no `fixer`$"):
        parse_causes(table)
    table["cause"]["fork"]["fixer"] = "nothing"
    assert parse_causes(table)["fork"].fixer == "nothing"


def test_a_code_of_two_causes_a_cause_without_a_name_in_the_list_and_one_without_a_table_are_refused() -> None:
    table = a_table()
    table["cause"]["hit"] = table["cause"]["fork"]
    table["cause"]["moon"] = {"name": "full moon"}
    del table["cause"]["unknown"]
    with pytest.raises(ValueError) as found:
        parse_causes(table)
    assert str(found.value).split("; ") == [
        "CC122 is the code of two causes",
        "moon: add it to `Cause` in causes.py",
        "unknown: `Cause` has it, and causes.toml no table",
    ]


def test_every_fix_is_of_a_cause_and_every_cause_but_those_of_bills_has_one() -> None:
    assert {row.fixer for row in coded_causes().values()} - {"nothing"} == set(FIXES)
    assert set(coded_causes()) - set(FIXERS) == {"cold_start", "billed_not_explained", "evicted"}


def test_every_cause_that_costs_something_rests_on_a_rule_and_has_a_page() -> None:
    pages = Path(__file__).parents[2] / "docs" / "codes"
    for row in coded_causes().values():
        assert f"### Rule {row.rule}\n" in RULEBOOK
        assert (pages / f"{row.code}.md").is_file()


def test_events_show_causes_of_the_table() -> None:
    assert {one.cause for one in cause_events()} <= set(coded_causes())


@pytest.mark.parametrize(
    ("cause", "name", "bill", "column"),
    [
        ("tools_changed", "tools changed", "MCP server or tool list changed", "tools changed"),
        ("ttl_expired", "TTL expired", "idle longer than the TTL", "idle"),
        ("effort_changed", "effort changed", "effort level switched", "effort level switched"),
        ("no_breakpoint", *["sent again without a breakpoint"] * 3),
        ("new_content", *["new content"] * 3),
    ],
)
def test_a_cause_has_its_words_in_each_place(cause: str, name: str, bill: str, column: str) -> None:
    row = causes()[cause]
    assert (row.name, row.name_in_bill, row.name_in_column) == (name, bill, column)


def test_a_report_of_another_version_may_have_other_causes() -> None:
    assert (name_of_cause("not_cached"), name_of_cause("ttl_expired")) == ("not cached", "idle longer than the TTL")
