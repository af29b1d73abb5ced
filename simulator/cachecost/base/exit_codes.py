"""The exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum


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
