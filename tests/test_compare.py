"""The comparison of two prompts, against plain loops that say what it means."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.compare import (
    ancestor,
    common,
    first_changed_block,
    first_changed_text,
    first_difference,
    pair_anywhere,
    pair_in_order,
    path,
    shared_ends,
    unchanged,
)
from cachecost.prompts.request import block_of

TEXTS = st.text(alphabet="ab", max_size=8)
KEYS = st.lists(st.integers(0, 3), max_size=8)


@given(KEYS, KEYS)
def test_the_first_difference_is_where_a_loop_finds_it(old: list[int], new: list[int]) -> None:
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))))
    assert first_difference(old, new) == shared
    assert first_difference("".join(map(str, old)), "".join(map(str, new))) == shared
    assert first_changed_block(list(map(text_block, old)), list(map(text_block, new))) == shared


def text_block(number: int) -> Block:
    return block_of("user", {"type": "text", "text": f"text {number}"})


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_shared_ends_do_not_overlap_and_are_the_longest(texts: list[str]) -> None:
    begin, end = shared_ends(*texts)
    rest = min(map(len, texts)) - begin
    assert len({text[:begin] for text in texts}) == len({text[len(text) - end :] for text in texts}) == 1
    assert end <= rest
    assert begin == min(map(len, texts)) or len({text[begin] for text in texts}) > 1
    assert end == rest or len({text[-1 - end] for text in texts}) > 1


@given(KEYS, KEYS)
def test_pairs_in_order_have_every_index_once_and_rising(old: list[int], new: list[int]) -> None:
    pairs = list(pair_in_order(old, new))
    assert [one for one, _ in pairs if one is not None] == list(range(len(old)))
    assert [other for _, other in pairs if other is not None] == list(range(len(new)))
    shared = first_difference(old, new)
    assert pairs[:shared] == [(number, number) for number in range(shared)]


@given(KEYS, KEYS, st.sampled_from([None, 0, 1]))
def test_pairs_anywhere_are_equal_once_and_as_many_as_there_are(old: list[int], new: list[int], at: int | None) -> None:
    known = {at: at} if at is not None and at < min(len(old), len(new)) else {}
    found = pair_anywhere(old, new, known)
    assert all(old[one] == new[other] for one, other in found.items())
    assert not set(found) & set(known) and not set(found.values()) & set(known.values())
    left = [key for number, key in enumerate(old) if number not in found and number not in known]
    assert not set(left) & {key for number, key in enumerate(new) if number not in {*found.values(), *known.values()}}


def test_a_changed_text_has_its_path_and_its_character() -> None:
    old = block_of(
        "user", {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls -l", "rest": ["x"]}}
    )
    new = block_of(
        "user", {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls -a", "rest": ["y"]}}
    )
    found = first_changed_text(old, new)
    assert found is not None
    assert (found.path, found.was, found.now, found.at) == ("input.command", "ls -l", "ls -a", 4)
    assert first_changed_text(old, old) is None


def chain(root: Prefix, *texts: str, role: str = "user") -> Prefix:
    node = root
    for text in texts:
        block = block_of(role, {"type": "text", "text": text})
        node = node.then(block, Layer.MESSAGES, 1)
    return node


def test_what_stays_behind_a_change_is_equal_or_a_version_with_something_equal_behind_it() -> None:
    root = Prefix(None, Layer.MESSAGES, None, 0)
    long = "a text that is long enough to be known again, "
    before = chain(root, "first", f"{long}10:41", "second", "third")
    now = chain(root, "first", f"{long}10:42", "second", "a fourth")
    parted = common(before, now)
    assert parted is ancestor(now, 1) is ancestor(before, 1)
    old, new = path(before, 1), path(now, 1)
    assert [node.depth for node in unchanged(old, new)] == [2, 3]
    assert unchanged(path(before, 1)[:1], path(now, 1)[:1]) == []
    assert common(before, chain(Prefix(None, Layer.MESSAGES, None, 0), "first")) is None
