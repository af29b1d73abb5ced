"""The bill in a terminal, pinned at several widths, without what other rooms advise."""

from __future__ import annotations

from pathlib import Path

import pytest

from bill_sessions import SessionWriter, account_in, write_sessions
from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.summary import BillSummary, summarize
from cachecost.views.bill.text import bill_lines
from cachecost.views.bill.words import cause_lines
from goldens import Golden

WIDTHS = [60, 80, 100, 120, 180]


@pytest.fixture
def account(tmp_path: Path) -> BillAccount:
    return account_in(write_sessions(tmp_path))


def lines(account: BillAccount, width: int, by: str = "session", most: int | None = None) -> list[str]:
    hints = [
        "What would have saved most:",
        "  $0.11  a 1h TTL for the main conversation, so that nothing has to be written again",
    ]
    found = bill_lines(summarize(account, by), account.rewrites, hints, width, most)
    return [line for line, _ in found]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_bill(account: BillAccount, golden: Golden, width: int) -> None:
    golden.check("".join(f"{line}\n" for line in lines(account, width)))


@pytest.mark.parametrize("by", ["session", "project", "day", "week", "month", "model", "agent"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_row_says_what_it_cost_and_why(account: BillAccount, width: int, by: str) -> None:
    found = lines(account, width, by)
    head = next(line for line in found if line.endswith("main cause"))
    assert head.split()[0] == by and {"cost", "rewritten"} <= set(head.split())
    assert found[-1].endswith("--html bill.html")
    assert not [line for line in found if line != line.rstrip()]


def test_hidden_rows_are_counted(account: BillAccount) -> None:
    assert "  … 1 more session: --by session shows all" in lines(account, 80, most=1)
    assert not [line for line in lines(account, 80, most=2) if "more session" in line]


def test_several_changes_of_the_prefix_are_one_line_with_its_parts(tmp_path: Path) -> None:
    assert "prefix changed" not in " ".join(line.name for line in cause_lines(_summary(tmp_path, ["compact"])))
    found = cause_lines(_summary(tmp_path, ["compact", "edit"]))
    assert [(line.name, line.is_part, line.times) for line in found] == [
        ("prefix changed within the TTL", False, 2),
        ("earlier messages changed", True, 1),
        ("history compacted", True, 1),
    ]
    assert found[0].cost == found[1].cost + found[2].cost
    assert found[0].tokens == found[1].tokens + found[2].tokens


def _summary(folder: Path, events: list[str]) -> BillSummary:
    session = SessionWriter("s", "/p")
    session.write_message("A")
    session.answer(0, 20_000)
    if "edit" in events:
        session.add("system", subtype="microcompact_boundary", content="x")
        session.return_result()
        session.answer(5_000, 15_000)
    if "compact" in events:
        session.compact()
        session.return_result()
        session.answer(5_000, 2_000)
    session.save(folder / "s.jsonl")
    return summarize(account_in(folder))
