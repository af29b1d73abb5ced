import pickle
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

import msgspec
import pytest

from cachecost.base.structs import replace
from cachecost.prompts.blocks import NO_COUNTS, Block
from cachecost.providers.usage import Usage


class Pair(msgspec.Struct, frozen=True):
    """Two of them."""

    one: int
    other: Mapping[str, int] = msgspec.field(default_factory=dict)
    name: str = msgspec.field(default="pair")

    @property
    def total(self) -> int:
        return self.one + sum(self.other.values())


class Single(msgspec.Struct, frozen=True, eq=False):
    """One of its own."""

    one: int


def test_a_fact_equals_one_with_equal_fields_and_can_be_a_key() -> None:
    assert Usage(1, 2) == Usage(1, read=2) != Usage(2, 1)
    assert {Usage(1, 2): "found"}[Usage(1, 2)] == "found"


def test_a_thing_equals_itself_alone_and_can_be_a_key() -> None:
    one, other = Single(1), Single(1)
    assert one == one and one != other and len({one, other}) == 2


def test_neither_can_be_changed() -> None:
    for made in (Pair(1), Single(1)):
        with pytest.raises(AttributeError):
            made.one = 2  # type: ignore[misc]


def test_defaults_are_those_of_the_fields_and_a_factory_makes_each_its_own() -> None:
    assert (Pair(3).other, Pair(3).name, Pair(3, {"a": 4}).total) == ({}, "pair", 7)
    assert Pair(1).other is not Pair(1).other
    assert Block("text", "user", b"", 0).counts is NO_COUNTS


@dataclass(frozen=True)
class Plain:
    """A dataclass."""

    one: int


def test_one_function_replaces_fields_of_structs_and_dataclasses() -> None:
    assert replace(Pair(1), one=2) == Pair(2)
    assert replace(Single(1), one=2).one == 2
    assert replace(Plain(1), one=2) == Plain(2)
    for made in (Pair(1), Plain(1)):
        with pytest.raises(TypeError):
            replace(made, two=2)


def test_a_fact_is_copied_and_pickled_whole() -> None:
    made = Usage(1, 2, 3, 4, 5)
    assert pickle.loads(pickle.dumps(made)) == deepcopy(made) == made
