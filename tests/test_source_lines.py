"""The source line of a changed text: found where exactly one line can be it, and nowhere else."""

from __future__ import annotations

import pytest

from cachecost.budgets.source_lines import SourceLine, find_source_line, search_texts
from cachecost.prompts.compare import first_difference

PROMPT = "You are a careful agent of a small project. Answer in one sentence."
AGENT = """\
import time

SYSTEM = f"Current time: {time.ctime()}. " + (
    "You are a careful agent of a small project. "
)
"""


def found(old: str, new: str, files: dict[str, str]) -> SourceLine | None:
    return find_source_line(search_texts(old, new, first_difference(old, new)), files)


def test_a_text_that_is_put_together_is_found_by_what_does_not_vary() -> None:
    stamped = f"Current time: 2026-03-07T10:00:00Z. {PROMPT}"
    assert found(PROMPT, stamped, {"agent.py": AGENT}) == SourceLine("agent.py", 3, 12)


def test_a_short_label_is_found_by_the_mark_that_begins_its_literal() -> None:
    files = {"agent.py": 'now = 1\nsystem = f"Now: {now}\\n" + prompt\n', "prompt.md": f"{PROMPT}\n"}
    assert found(PROMPT, f"Now: 1795518894.89\n{PROMPT}", files) == SourceLine("agent.py", 2, 11)


def test_a_longer_text_is_found_by_what_came() -> None:
    files = {"a.py": "x = 1\n", "prompt.txt": f"{PROMPT}\nCite your sources.\n"}
    assert found(PROMPT, f"{PROMPT}\nCite your sources.", files) == SourceLine("prompt.txt", 2, 1)


def test_what_is_repeated_is_found_by_how_it_begins() -> None:
    files = {"agent.py": f'RULES = "Cite your sources. " * 40\nPROMPT = "{PROMPT}"\n'}
    assert found(PROMPT, "Cite your sources. " * 40 + PROMPT, files) == SourceLine("agent.py", 1, 10)


def test_a_shorter_text_is_found_by_what_is_around_it() -> None:
    files = {"agent.py": 'S = """\nYou are a careful agent. Answer in one sentence.\n"""\n'}
    shorter = "You are a careful agent. Answer in one sentence."
    assert found(PROMPT, shorter, files) == SourceLine("agent.py", 2, 1)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.py": "nothing of it"},
        {"a.py": "Cite your sources.", "b.py": "Cite your sources."},
        {"a.py": "Cite your sources.\nCite your sources.\n"},
    ],
    ids=["no file", "in none", "in two files", "in two lines"],
)
def test_nothing_is_said_where_no_line_or_several_have_it(files: dict[str, str]) -> None:
    assert found("", "Cite your sources.", files) is None


def test_short_pieces_are_not_searched() -> None:
    assert search_texts("a b c", "a x c", 2) == ()
    assert all(len(text) >= 8 and "\n" not in text for text in search_texts(PROMPT, f"1: {PROMPT}\nmore lines", 0))
