"""Faults of a user's input, as values: collected, then told all at once (exit codes: docs/output-formats.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachecost.base.inert import inert
from cachecost.base.structs import value


@value
class Fault:
    """One thing that is wrong with a file: where, what, and the mend if there is a near one."""

    file: str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return inert(f"{place} {self.message}")


class InputError(Exception):
    """Input that is not valid; exit code 2. Carries every fault found."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = list(faults)


class CannotEvaluate(Exception):
    """A model, price, rule or count that is not known; exit code 3. The text names the nearest ones."""


class NamesNotKnown(InputError, CannotEvaluate):
    """Input that is valid but for hosts or models that are not known: told like faults, with exit code 3."""


def nearest(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)" for the nearest known name, else ""."""
    from difflib import get_close_matches  # only for what is wrong already

    match = get_close_matches(name, list(known), n=1)
    return f" (did you mean '{match[0]}'?)" if match else ""
