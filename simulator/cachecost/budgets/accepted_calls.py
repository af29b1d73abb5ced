"""What the command of a scenario sent when its costs were accepted: `recording.jsonl` beside the baseline."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.atomic_files import write_together
from cachecost.budgets.baseline import FILE_NAME, Baseline, baseline_text, is_same_but_day
from cachecost.scenario.recorded import RecordedScenario

RECORDING = "recording.jsonl"


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
