"""The line of each key of a TOML text: every way to write a key, and values that look like keys."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.configuration.project_settings import KeyPath, key_lines, line_of

TEXT = '''\
# [not.a.table]
title = "x = [1]"   # a = 1

[tool.cachecost]
host = "bedrock"
"as-of" = 2026-03-07
'odd = key' = 1
rule = [
  "a = b",  # c = [
  """
d = 1
""",
]
note = """
[tool.other]
e = "1"
"""
raw = \'\'\'
f = 1\'\'\'
volumes = { g = 1 }

  [ tool . "cachecost" . check ]
  reports = "r"
recording.cut.calls = "2-"
[[list]]
h = 1
[[list]]
h = 2'''


def test_every_way_to_write_a_key() -> None:
    ours = ("tool", "cachecost")
    assert key_lines(TEXT) == {
        ("title",): 2,
        ours: 4,
        (*ours, "host"): 5,
        (*ours, "as-of"): 6,
        (*ours, "odd = key"): 7,
        (*ours, "rule"): 8,
        (*ours, "note"): 14,
        (*ours, "raw"): 18,
        (*ours, "volumes"): 20,
        (*ours, "check"): 22,
        (*ours, "check", "reports"): 23,
        (*ours, "check", "recording", "cut", "calls"): 24,
        ("list",): 25,
        ("list", "h"): 26,
    }


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("tool", "cachecost", "volumes", "g"), 20),
        (("tool", "cachecost", "check", "reports"), 23),
        (("tool", "cachecost", "nothing"), 4),
        (("other",), None),
    ],
)
def test_a_key_without_a_line_has_that_of_what_is_around_it(path: KeyPath, line: int | None) -> None:
    assert line_of(key_lines(TEXT), path) == line


def test_lines_that_end_as_windows_ends_them() -> None:
    assert key_lines("a = 1\r\n\r\n[b]\r\nc = [\r\n1]\r\nd = 2\r\n") == {
        ("a",): 1,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "d"): 6,
    }


names = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)
words = st.text(st.sampled_from("ab=[]{}#'.,\n \t"), max_size=8)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def many_lines(text: str) -> str:
    return f'"""\n{text}"""'


values = st.one_of(
    st.integers(0, 9).map(str),
    words.map(quoted),
    words.map(many_lines),
    st.lists(words.map(quoted), max_size=3).map(lambda items: "[ # x = 1\n" + ",\n".join(items) + "]"),
    st.lists(words.map(many_lines), max_size=2).map(lambda items: "[" + ",\n".join(items) + "]"),
)


@given(st.lists(st.tuples(names, values, st.booleans()), unique_by=lambda row: row[0], max_size=8))
def test_what_is_found_is_what_is_there(rows: list[tuple[str, str, bool]]) -> None:
    """Keys with any name before values that look like keys, tables between them: each has the line it begins at."""
    lines, expected, table = list[str](), dict[KeyPath, int](), ()
    for number, (name, value, is_table) in enumerate(rows):
        if is_table:
            expected[(f"t{number}",)] = 1 + "\n".join(lines).count("\n") + bool(lines)
            lines.append(f"[t{number}]  # {name}")
            table = (f"t{number}",)
        expected[(*table, name)] = 1 + "\n".join(lines).count("\n") + bool(lines)
        lines.append(f"{quoted(name)} = {value}")
    text = "\n".join(lines)
    assert set(_paths(tomllib.loads(text))) == expected.keys()
    assert key_lines(text) == expected


def _paths(table: dict[str, Any], above: KeyPath = ()) -> list[KeyPath]:
    own = [(*above, name) for name in table]
    return own + [path for name, one in table.items() if isinstance(one, dict) for path in _paths(one, (*above, name))]
