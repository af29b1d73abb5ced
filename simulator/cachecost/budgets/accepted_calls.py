"""What the command of a scenario sent when its costs were accepted: `recording.jsonl` beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cachecost.base.atomic_files import write_together
from cachecost.budgets.baseline import FILE_NAME, Baseline, baseline_text, is_same_but_day
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.detect import read_calls
from cachecost.scenario.recorded import RecordedScenario

RECORDING = "recording.jsonl"


@dataclass(frozen=True, slots=True)
class SentCalls:
    """What the command of a scenario sent when it was accepted (None: it never was), and what it sends now.

    Both have content, or where the scenario keeps digests neither has.
    """

    accepted: Sequence[RecordedCall] | None
    now: Sequence[RecordedCall]


def read_accepted_calls(folder: Path) -> list[RecordedCall] | None:
    """The accepted calls in a scenario's folder; None: there are none. Raises InputError."""
    path = folder / RECORDING
    return list(read_calls(path, "calls")) if path.exists() else None


def write_accepted(folder: Path, now: Baseline, recorded: RecordedScenario) -> list[Path]:
    """Write the baseline and, for a command, its recording: those that changed, all or none. Returns their paths.

    Raises InputError if the folder cannot be written.
    """
    files: dict[Path, bytes] = {}
    if not is_same_but_day(folder / FILE_NAME, now):
        files[folder / FILE_NAME] = baseline_text(now).encode()
    if recorded.kept is not None and _bytes_at(folder / RECORDING) != (kept := recorded.kept.read_bytes()):
        files[folder / RECORDING] = kept
    write_together(files)
    return list(files)


def _bytes_at(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
