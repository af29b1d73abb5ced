"""Errors in user input, as values: collected, then reported together, and the exit codes of all commands
(docs/reference/output-formats.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import msgspec

from cachecost.base.formatting import inert


class ExitCode(IntEnum):
    """What a command returns to the shell."""

    OK = 0
    CHECK_FAILED = 1
    INVALID_INPUT = 2
    NOT_EVALUATED = 3
    INTERNAL_ERROR = 70
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.CHECK_FAILED: "a budget is exceeded, or a check failed",
    ExitCode.INVALID_INPUT: "wrong usage or invalid input; every error is listed with its place",
    ExitCode.NOT_EVALUATED: "not evaluated: unknown model, price or rule, failed live call, missing extra",
    ExitCode.INTERNAL_ERROR: "internal error",
    ExitCode.INTERRUPTED: "interrupted",
}
"""Each code in a few words, as help and documentation show it."""


def exit_code(check_failed: object = False, not_evaluated: object = False) -> ExitCode:
    """The exit code of a command that ran to its end."""
    if check_failed:
        return ExitCode.CHECK_FAILED
    return ExitCode.NOT_EVALUATED if not_evaluated else ExitCode.OK


class Fault(msgspec.Struct, frozen=True):
    """One error in a file: where it is, what is wrong, and a suggestion where there is a near name."""

    file: str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return inert(f"{place} {self.message}")


class InputError(Exception):
    """Invalid input; exit code 2. Carries every error found."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = list(faults)


class CannotEvaluate(Exception):
    """An unknown model, price, rule or count; exit code 3. The text names the nearest known ones."""


class OtherCache(CannotEvaluate):
    """A call of a known cache that an analysis does not support."""


class CommandFailed(CannotEvaluate):
    """A command that a scenario runs did not do its work; exit code 3. `output` are its last lines, shown below."""

    def __init__(self, fault: Fault, output: Sequence[str] = ()) -> None:
        super().__init__("\n".join([str(fault), *(f"  {inert(line)}" for line in output)]))


class NamesNotKnown(InputError, CannotEvaluate):
    """Valid input that names unknown hosts or models: reported like input errors, with exit code 3."""


def nearest(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)" for the nearest known name, else ""."""
    match = nearest_name(name, known)
    return f" (did you mean '{match}'?)" if match else ""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The nearest known name; "" where none is near."""
    from difflib import get_close_matches  # only for what is wrong already

    return next(iter(get_close_matches(name, list(known), n=1)), "")
