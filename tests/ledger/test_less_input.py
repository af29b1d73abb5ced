"""How much of the conversation a strategy leaves out, against another one that makes the same calls."""

from __future__ import annotations

import pytest

from cachecost.ledger.rows import CallRow, CallSize, Cost, less_input, sizes_by_call
from cachecost.providers.usage import Usage


def sized(*messages: int, static: int = 0) -> tuple[list[CallRow], list[CallSize]]:
    rows = [CallRow(n, 0.0, None, "s", "m", Usage(), Cost(), "hit", {}, {}, turn=n) for n in range(len(messages))]
    return rows, [CallSize(tokens, static) for tokens in messages]


@pytest.mark.parametrize(
    ("own", "static", "less"),
    [
        ((1_000, 1_000), 0, False),
        ((900, 900), 0, False),
        ((899, 900), 0, True),
        ((1_400, 400), 0, False),
        ((1_400, 399), 0, True),
        ((500, 500), 400, False),
        ((500, 500), 399, True),
    ],
)
def test_less_is_under_nine_tenths_of_the_same_calls_and_not_what_moved_to_the_system_prompt(
    own: tuple[int, ...], static: int, less: bool
) -> None:
    found = less_input(*sized(*own, static=static), sizes_by_call(*sized(1_000, 1_000)))
    assert (found is not None) is less


def test_calls_with_next_to_no_conversation_are_counted() -> None:
    found = less_input(*sized(999, 1_000, 999), sizes_by_call(*sized(999, 9_000, 9_000)))
    assert found is not None
    assert (found.calls, found.small) == (3, 1)
