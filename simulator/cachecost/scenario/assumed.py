"""An assumption that a scenario's answer rests on, and the values between which it is tried."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from cachecost.base.limits import is_number
from cachecost.base.schema_errors import show_value
from cachecost.strategies.derived_models import CONFIG
from cachecost.strategies.spec import check_printable

STEPS = 100
"""Steps between the ends of a range, about: the precision of a break-even where no `step` is given."""
ROUND_STEPS = (Decimal(5), Decimal(2), Decimal(1))


def _paths(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _number(value: Any) -> int | Decimal:
    if is_number(value):
        return value if isinstance(value, int) else Decimal(str(value))
    raise ValueError(f"expected a number; got {show_value(value)}")


Number = Annotated[int | Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
Paths = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
PathOrPaths = Annotated[Paths, BeforeValidator(_paths, json_schema_input_type=str | Paths)]


class AssumptionSpec(BaseModel):
    """Something that the answer takes for granted. With `set`, it is tried at other values."""

    model_config = CONFIG

    name: Annotated[str, Field(min_length=1), AfterValidator(check_printable)]
    """What is assumed, in a few words, e.g. retry rate of the answer tool."""
    set: PathOrPaths | None = None
    """What it stands for: a dotted path in this file, or several that change together. Strategies are named by their
    number from 0 or by their name: strategies.answer tool, auto.inquiry.retry_rate."""
    range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    """The lowest and the highest value it may have. Both ends are simulated, and where they give another answer, the
    value at which it changes is searched for."""
    values: Annotated[list[Any], Field(min_length=1)] | None = None
    """Instead of a range: other values to simulate, such as names of models."""
    step: Number | None = None
    """How precisely the break-even is searched for; null is about a hundredth of the range, and at least 1 for whole
    numbers."""
    why: str = ""
    """Why it is assumed, and how well it is known."""
    source: str = ""
    """Where the value comes from."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = [name for name in ("range", "values") if getattr(self, name) is not None]
        if self.set is None and given:
            raise ValueError(f"expected set with {given[0]}; got none")
        if self.set is not None and len(given) != 1:
            raise ValueError(f"expected range or values with set; got {' and '.join(given) or 'neither'}")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"range: expected the lower end first; got {self.range[0]} and {self.range[1]}")
        if self.step is not None and (self.range is None or self.step <= 0):
            raise ValueError("step: expected a number above 0, with a range")
        return self

    @property
    def tried(self) -> Sequence[Any]:
        """The values that are simulated: the ends of the range, or those listed; nothing without `set`."""
        return [plain(end) for end in self.range] if self.range is not None else self.values or []

    @property
    def precision(self) -> int | Decimal:
        """The step of the search for a break-even; of whole numbers a whole number."""
        assert self.range is not None
        if self.step is not None:
            return self.step
        step = round_step((Decimal(self.range[1]) - self.range[0]) / STEPS)
        return max(1, int(step)) if all(isinstance(end, int) for end in self.range) else step


def plain(number: int | Decimal) -> int | float:
    """A number as YAML has it."""
    return number if isinstance(number, int) else float(number)


def round_step(step: Decimal) -> Decimal:
    """The nearest 1, 2 or 5 times a power of ten that is not above `step`."""
    unit = Decimal(1).scaleb(step.adjusted())
    times = (step / unit).quantize(Decimal(1), ROUND_DOWN)
    return next(each for each in ROUND_STEPS if each <= times) * unit
