"""The split of the recordings: by name alone, the same for every form of a file, about a third."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.analysis.fidelity.validation import is_held_out, name_in_source, recording_name

TRAFFIC = Path(__file__).parents[2] / "scenarios" / "recordings" / "traffic"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a.jsonl", "a"),
        ("folder/a.jsonl.gz", "a"),
        ("a.test_b.yaml.gz", "a.test_b"),
        ("a@9721f8df.jsonl", "a"),
        ("a.txt", "a.txt"),
    ],
)
def test_a_name_without_what_differs_between_copies(name: str, stem: str) -> None:
    assert recording_name(name) == stem


@pytest.mark.parametrize(("name", "held_out"), [("e", False), ("f", False), ("g", True), ("h", True), ("i", False)])
def test_the_hash_decides(name: str, held_out: bool) -> None:
    assert is_held_out(f"{name}.jsonl") == held_out == (int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0)


@given(st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=20))
def test_copies_of_a_recording_are_in_the_same_part(name: str) -> None:
    copies = (f"{name}.jsonl", f"other/{name}.json.gz", f"{name}@0a5bb03c.jsonl")
    assert {is_held_out(copy) for copy in copies} == {is_held_out(name)}


def test_a_file_has_the_name_under_which_it_was_imported() -> None:
    name = name_in_source("0xPlaygrounds/rig", "tests/cassettes/anthropic/a/b.yaml")
    assert recording_name(name) == "0xPlaygrounds+rig__tests_cassettes_anthropic_a_b"


def test_about_a_third_of_the_traffic_is_held_out() -> None:
    parts = [is_held_out(path.name) for path in TRAFFIC.glob("*/*.jsonl")]
    assert 0.25 < sum(parts) / len(parts) < 0.42
