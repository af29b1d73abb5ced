"""YAML as a person means it, and the place of everything in it."""

from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.yaml_text import SourcePlace, parse, read, spell

SCALARS = [
    ("21_000", 21_000),
    ("017", 17),
    ("0x1F", 31),
    ("-3", -3),
    ("0.05", 0.05),
    ("1_000.5", 1000.5),
    ("1e3", 1000.0),
    ("no", "no"),
    ("true", True),
    ("False", False),
    ("~", None),
    ("", None),
    ("5m", "5m"),
    ("5%", "5%"),
    ("2026-03-07", "2026-03-07"),
    ('"21_000"', "21_000"),
    ("12:30", "12:30"),
    ("=", "="),
    ("<<", "<<"),
    ("!!int x", "x"),
    ("!!bool x", "x"),
    (".inf", ".inf"),
    (".nan", ".nan"),
    ("!!str 3", "3"),
]


@pytest.mark.parametrize(("written", "value"), SCALARS)
def test_scalars_are_what_a_person_means(written: str, value: object) -> None:
    found = parse(f"a: {written}", "x.yaml").value["a"]
    assert found == value
    assert isinstance(found, type(value))


def test_a_number_keeps_its_digits() -> None:
    number = parse("a: 0.1000000000000000055511151231257827", "x.yaml").value["a"]
    assert Decimal(str(number)) == Decimal("0.1000000000000000055511151231257827")


def test_places_are_those_of_keys_and_items() -> None:
    placed = parse("a:\n  b: 1\n  c:\n    - 2\n    - d: 3\n", "x.yaml")
    assert placed.places == {
        (): SourcePlace("x.yaml", 1, 1),
        ("a",): SourcePlace("x.yaml", 1, 1),
        ("a", "b"): SourcePlace("x.yaml", 2, 3),
        ("a", "c"): SourcePlace("x.yaml", 3, 3),
        ("a", "c", 0): SourcePlace("x.yaml", 4, 7),
        ("a", "c", 1): SourcePlace("x.yaml", 5, 7),
        ("a", "c", 1, "d"): SourcePlace("x.yaml", 5, 7),
    }


NOT_YAML = [
    ("", "x.yaml:1:1 expected a mapping; got an empty file"),
    ("# nothing\n", "x.yaml:1:1 expected a mapping; got an empty file"),
    ("a: [1,\nb: 2", "x.yaml:2:5 not valid YAML: expected ',' or ']', but got '<stream end>'"),
    ("a: 1\n---\nb: 2\n", "x.yaml:2:1 not valid YAML: but found another document"),
    ("a: 1\n  b: 2\n", "x.yaml:2:4 not valid YAML: mapping values are not allowed here"),
    ("\ta: 1", "x.yaml:1:1 not valid YAML: found character '\\t' that cannot start any token"),
    ("a: *b", "x.yaml:1:4 not valid YAML: found undefined alias"),
    ("a: 1\nb: x\x01y", "x.yaml:2:5 not valid YAML: the character '\\x01' is not allowed"),
    ("[" * 600, "x.yaml:1:1 expected at most 128 levels of nesting; got more"),
]


@pytest.mark.parametrize(("text", "fault"), NOT_YAML)
def test_what_is_not_yaml_is_one_fault_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text, "x.yaml")
    assert str(raised.value) == fault


NOBODY_MEANS = [
    ("a: 1\nb: 2\na: 3", {"a": 1, "b": 2}, ["x.yaml:3:1 a: given twice; first in line 1"]),
    (
        "a: !!python/none x",
        {"a": None},
        ["x.yaml:1:4 a: expected a plain value; got the tag tag:yaml.org,2002:python/none"],
    ),
    (
        "a: !b 3\nc: !d 4",
        {"a": None, "c": None},
        [
            "x.yaml:1:4 a: expected a plain value; got the tag !b",
            "x.yaml:2:4 c: expected a plain value; got the tag !d",
        ],
    ),
    ("a: &x [*x]", {"a": [None]}, ["x.yaml:1:4 a[0]: an alias within what it stands for"]),
    ("[1]: 2\nb: 3", {"b": 3}, ["x.yaml:1:1 a key that is no single word"]),
]


@pytest.mark.parametrize(("text", "value", "faults"), NOBODY_MEANS)
def test_what_nobody_means_is_a_fault_and_reading_goes_on(text: str, value: object, faults: list[str]) -> None:
    placed = parse(text, "x.yaml")
    assert placed.value == value
    assert [str(fault) for fault in placed.faults] == faults


def test_an_alias_stands_for_its_value() -> None:
    assert parse("a: &x {b: 1}\nc: *x", "x.yaml").value == {"a": {"b": 1}, "c": {"b": 1}}


def test_aliases_cannot_blow_up() -> None:
    lines = ["a0: &a0 [1, 1]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 30)]
    with pytest.raises(InputError, match=r"expected at most 100,000 values"):
        parse("\n".join(lines), "x.yaml")


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.yaml cannot be read: No such file or directory"):
        read(tmp_path / "gone.yaml")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("a: 1\nb: caf\xe9".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.yaml:2:7 expected UTF-8; got the byte 0xe9"):
        read(tmp_path / "latin.yaml")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read(tmp_path / "bom.yaml").value == {"a": 1}


TEXT = "a: {b: [1, 2]}\nc: text\nd:\n"
WAYS = [
    ("a.b", ("a", "b")),
    ("a.b.1", ("a", "b", 1)),
    ("a.new.newer", ("a", "new", "newer")),
    ("d.e", ("d", "e")),
    ("e", ("e",)),
]


@pytest.mark.parametrize(("dotted", "way"), WAYS)
def test_a_dotted_path_is_a_way(dotted: str, way: tuple[Any, ...]) -> None:
    placed = parse(TEXT, "x.yaml")
    assert placed.way_of(dotted) == way
    assert placed.put(way, parse("9", "y")).at(way).value == 9


DEAD_ENDS = [
    ("a.b.2", "a.b: expected the number of an item, 0 to 1; got '2'"),
    ("a.b.-1", "a.b: expected the number of an item, 0 to 1; got '-1'"),
    ("a.b.c", "a.b: expected the number of an item, 0 to 1; got 'c'"),
    ("c.d", "c: is the single value 'text'; nothing in it is named 'd'"),
    ("a..b", "expected words between dots"),
]


@pytest.mark.parametrize(("dotted", "why"), DEAD_ENDS)
def test_a_path_that_leads_nowhere_says_why(dotted: str, why: str) -> None:
    with pytest.raises(LookupError) as raised:
        parse(TEXT, "x.yaml").way_of(dotted)
    assert raised.value.args == (why,)


def test_putting_leaves_the_original_and_moves_places() -> None:
    placed = parse(TEXT, "x.yaml")
    changed = placed.put(("a", "b"), parse("{c: 3}", "y.yaml"))
    assert placed.value["a"] == {"b": [1, 2]}
    assert changed.value["a"] == {"b": {"c": 3}}
    assert changed.place(("a", "b", "c")) == SourcePlace("y.yaml", 1, 2)
    assert ("a", "b", 1) not in changed.places
    assert changed.place(("a", "b", "x", "y")) == SourcePlace("y.yaml", 1, 1)


def test_ways_are_spelled_as_people_write_them() -> None:
    assert spell(("strategies", 1, "breakpoints", 0)) == "strategies[1].breakpoints[0]"
    assert spell(()) == ""


def test_parts_of_a_long_list_are_found_without_a_look_at_the_others() -> None:
    """Looking through all places for each part took a minute."""
    placed = parse(f"a: {{b: [{', '.join(map(str, range(20_000)))}]}}", "f")
    start = process_time()
    parts = [placed.at(("a", "b", number)) for number in range(20_000)]
    assert process_time() - start < 5
    assert (parts[-1].value, parts[0].place(()).column) == (19_999, 9)


def test_what_a_mapping_lacks_has_no_places() -> None:
    placed = parse("a: {b: [1, 2]}\nc: 3", "f").without("a")
    assert placed.value == {"c": 3}
    assert set(placed.places) == {(), ("c",)}
