"""Lines of a bill: wrapped between words, and names that tell sessions and projects apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.views.bill.text import wrap_line, wrap_parts
from cachecost.views.bill.words import SHORT_ID, project_names, session_names

WORDS = st.lists(st.text("abc1×%$.,", min_size=1, max_size=9), min_size=1, max_size=30).map(" ".join)


@given(WORDS, st.integers(30, 90))
def test_lines_are_no_wider_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap_line(text, width, "  ", "    ")
    assert " ".join(line.strip() for line in lines) == text
    assert all(len(line) <= width or len(line.split(" ")) > 1 for line in lines)
    assert not [line for line in lines if line.endswith(" ")]


def test_a_number_stays_with_its_unit() -> None:
    assert wrap_line("it was idle for 13 min", 20) == ["it was idle for", "13 min"]
    assert wrap_line("it was idle for 13 min", 19) == ["it was idle for", "13 min"]
    assert wrap_line("it happened 22 × here", 16) == ["it happened 22 ×", "here"]
    assert wrap_line("it happened 22 × here", 15) == ["it happened", "22 × here"]


def test_parts_stay_whole_where_they_fit() -> None:
    assert wrap_parts("one two · three four · five", 20) == ["one two · three four", "  five"]
    assert wrap_parts("one two · three four · five", 19) == ["one two", "  three four · five"]
    assert wrap_parts("a long part that does not fit · b", 12) == ["a long part", "that does", "not fit", "  b"]


def test_ids_are_as_long_as_it_takes() -> None:
    names = session_names(["01234567-a", "01234567-b", "fedcba98-a", "/x/rollout-01.jsonl", "/x/rollout-02.jsonl"])
    assert list(names.values()) == ["01234567-a", "01234567-b", "fedcba98", "rollout-01", "rollout-02"]


@given(st.sets(st.text("ab", min_size=1, max_size=14), max_size=20))
def test_ids_tell_sessions_apart(ids: set[str]) -> None:
    names = session_names(ids)
    assert all(key.startswith(name) and len(name) >= min(SHORT_ID, len(key)) for key, name in names.items())
    assert len(set(names.values())) == len(ids)


@pytest.mark.parametrize(
    ("projects", "names"),
    [
        (["/home/ann/api"], ["api"]),
        (["/home/ann/work/api", "/home/ann/play/api", "/home/ann/site"], ["work/api", "play/api", "site"]),
        (["/a/x/api", "/b/x/api"], ["a/x/api", "b/x/api"]),
        (["/api", "/x/api"], ["api", "x/api"]),
        (["C:\\work\\api", "C:\\play\\api"], ["work/api", "play/api"]),
        (["", "/"], ["", "/"]),
    ],
)
def test_projects_get_the_parents_that_tell_them_apart(projects: list[str], names: list[str]) -> None:
    assert list(project_names(projects).values()) == names
