"""What `cachecost models` and `cachecost rules` list."""

from datetime import date

from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import model_rows, rule_rows
from cachecost.providers.rules import RuleBook

HOST = "anthropic"


def test_models_that_were_out_on_the_day() -> None:
    listed = [row.id for row in model_rows(RuleBook(as_of=date(2026, 3, 7)), HOST)]
    assert listed[:3] == ["claude-sonnet-4-6", "claude-opus-4-6", "claude-opus-4-5"]
    assert len(list(model_rows(RuleBook(), HOST))) == len(catalogue(HOST).models)


def test_models_are_listed_newest_first() -> None:
    for host in hosts():
        released = [row.released for row in model_rows(RuleBook(), host)]
        assert released == sorted(released, reverse=True)


def test_without_a_host_all_are_listed() -> None:
    assert {row.host for row in model_rows(RuleBook())} == {row.host for row in rule_rows()} == set(hosts())


def test_a_model_row_carries_its_rules_and_source() -> None:
    (row,) = (row for row in model_rows(RuleBook(), HOST) if row.id == "claude-opus-4-7")
    assert (row.rules.minimum_tokens, row.source, row.released) == (
        2048,
        "Claude Platform release notes",
        date(2026, 4, 16),
    )


def test_each_rule_row_says_since_when_and_who_says_so() -> None:
    rows = list(rule_rows(HOST))
    assert all(row.source and row.source_date <= date(2026, 11, 21) and row.start and row.meaning for row in rows)
    minimums = [
        (row.value, row.start) for row in rows if (row.rule, row.model) == ("minimum_tokens", "claude-opus-4-7")
    ]
    assert minimums == [(4096, date(2026, 4, 16)), (2048, date(2026, 6, 10))]
    assert [row.value for row in rows if row.rule == "collapses_runs"] == [False, True]


def test_refuted_rows_are_shown_and_never_used() -> None:
    refuted = {row.model: row for row in rule_rows(HOST) if row.refuted_by}
    assert refuted["claude-opus-4-6"].value == {"auto": 346, "any": 313, "tool": 313}
    assert refuted["claude-opus-4-6"].end == date(2026, 5, 29)
    used = RuleBook().rules(HOST, "claude-opus-4-6", date(2026, 5, 28)).hidden.tool_prompt
    assert used == {"auto": 497, "any": 589, "tool": 589}
