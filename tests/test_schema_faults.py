"""pydantic's errors in the user's own names: one fault a place, whatever the model looks like."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from cachecost.base.yaml_text import ExactNumber, faults_of, keys_at, one_of, parse, show_value


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int
    rate: Annotated[float, Field(gt=0, lt=1)] = 0.5


def called_by_a_validator(value: Any) -> Inner:
    return Inner.model_validate(value)


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: Literal["same", "none"] | list[int] | None = None
    amount: int | str = 1
    either: Inner | list[Inner] | None = None
    by_name: dict[str, Inner] = {}
    several: Annotated[list[int], Field(min_length=2, max_length=3)] = [1, 2]
    made: Annotated[Any, PlainValidator(called_by_a_validator)] = None
    flag: bool = False
    number: Literal[1, 2] = 1


ROWS = [
    ("mode: sme", "1:1 mode: expected one of none, same or a list; got 'sme' (did you mean 'same'?)"),
    ("mode: 5", "1:1 mode: expected one of none, same or a list; got 5"),
    ("mode: [1, x]", "1:11 mode[1]: expected a whole number; got 'x'"),
    ("amount: 1.50", "1:1 amount: expected a whole number or text; got 1.50"),
    ("amount: [1]", "1:1 amount: expected a whole number or text; got a list of 1"),
    ("either: {size: x}", "1:10 either.size: expected a whole number; got 'x'"),
    ("either: [{size: 1}, {}]", "1:21 either[1].size: expected a whole number; got nothing"),
    ("either: [{size: 1, sise: 2}]", "1:20 either[0].sise: unknown key (did you mean 'size'?)"),
    ("either: text", "1:1 either: expected a mapping or a list; got 'text'"),
    ("by_name: {a b: {size: 1, rate: 1.0}}", "1:26 by_name.a b.rate: expected less than 1.0; got 1.0"),
    ("by_name: {a: {size: 1, rate: 0}}", "1:24 by_name.a.rate: expected more than 0.0; got 0"),
    ("by_name: {a: {syze: 1, size: 1}}", "1:15 by_name.a.syze: unknown key (did you mean 'size'?)"),
    ("by_name: {a: {zzz: 1, size: 1}}", "1:15 by_name.a.zzz: unknown key; expected one of rate, size"),
    ("several: [1]", "1:1 several: expected a list of at least 2; got a list of 1"),
    ("several: [1, 2, 3, 4]", "1:1 several: expected a list of at most 3; got a list of 4"),
    ("made: {size: x}", "1:8 made.size: expected a whole number; got 'x'"),
    ("made: {}", "1:1 made.size: expected a value; got nothing"),
    ("flag: yes", "1:1 flag: expected true or false; got 'yes'"),
    ("number: 3", "1:1 number: expected one of 1, 2; got 3"),
]


def found(text: str) -> list[str]:
    placed = parse(text, "x")
    with pytest.raises(ValidationError) as raised:
        Model.model_validate(placed.value)
    return [str(fault) for fault in faults_of(raised.value, placed, Model.model_json_schema())]


@pytest.mark.parametrize(("text", "fault"), ROWS)
def test_one_fault_a_place(text: str, fault: str) -> None:
    assert found(text) == [f"x:{fault}"]


def test_all_at_once() -> None:
    faults = found("mode: sme\nflag: yes\nnumber: 3\namount: [1]\nzzz: 1")
    assert {fault.partition(" ")[0] for fault in faults} == {"x:1:1", "x:2:1", "x:3:1", "x:4:1", "x:5:1"}


SHOWN = [
    (None, "nothing"),
    (True, "true"),
    ({}, "a mapping"),
    ([1], "a list of 1"),
    (ExactNumber("5.0"), "5.0"),
    ("it's", '"it\'s"'),
    ("x" * 100, "'" + "x" * 58 + "…"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN)
def test_values_are_shown_short_and_in_yamls_words(value: object, text: str) -> None:
    assert show_value(value) == text


def test_names_with_commas_are_quoted() -> None:
    message = one_of(["a, b", "c"], "d")
    assert message == "expected one of 'a, b', c; got 'd'"
    assert one_of(["c"], 5) == "expected c; got 5"


def test_keys_of_a_mapping_behind_unions_and_lists() -> None:
    schema = Model.model_json_schema()
    assert keys_at(schema, ("either",)) == keys_at(schema, ("either", 0)) == ["rate", "size"]
    assert keys_at(schema, ("by_name", "whatever")) == ["rate", "size"]
    assert keys_at(schema, ("by_name",)) == keys_at(schema, ("mode",)) == []
