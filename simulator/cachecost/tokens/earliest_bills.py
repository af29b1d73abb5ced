"""The bills of one length. Each call is told by the earliest other one, so the two earliest are all that is kept."""

from __future__ import annotations

from typing import TypeVar

Told = TypeVar("Told")
Bills = tuple[int, Told] | tuple[int, Told, int, Told]
"""The number of the earliest call, and what its bill tells; then those of the next one, if there is one."""


def add_bill(bills: Bills[Told] | None, call: int, told: Told) -> Bills[Told]:
    """`bills` with that of `call`, in the place of an older one of the same call."""
    if bills is None or (len(bills) == 2 and bills[0] == call):
        return call, told
    first, of_first = bills[:2]
    if call < first:
        return call, told, first, of_first
    if call == first:
        return (call, told, *bills[2:])
    return bills if len(bills) == 4 and bills[2] < call else (first, of_first, call, told)


def told_by_other(bills: Bills[Told] | None, call: int) -> Told | None:
    """What the bill of the earliest other call tells; None: unknown."""
    if bills is None:
        return None
    if bills[0] != call:
        return bills[1]
    return bills[3] if len(bills) == 4 else None
