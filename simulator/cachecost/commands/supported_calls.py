"""The calls of a workload that a command supports; what it leaves out is said on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachecost.commands.diagnostics import print_diagnostic

if TYPE_CHECKING:
    from cachecost.simulation.left_out import LeftOut
    from cachecost.simulation.workload import Workload


def only_supported(workload: Workload, command: str) -> Workload:
    """The workload without the calls of caches that `command` does not support. Raises CannotEvaluate for all calls."""
    from cachecost.simulation.left_out import supported_calls

    supported, left_out = supported_calls(workload, command)
    print_left_out(left_out, command)
    return supported


def print_left_out(left_out: LeftOut, command: str) -> None:
    """A line on stderr for each model and host of which calls were left out."""
    for note in left_out.notes(command):
        print_diagnostic(note)
