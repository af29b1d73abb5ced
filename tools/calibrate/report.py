"""How each calibration ends: what was fitted is printed, and written where that was asked for."""

from __future__ import annotations

import sys
from pathlib import Path


def print_report(report: str, target: Path | None) -> None:
    """Print the report, and write it to `target` if there is one."""
    sys.stdout.write(report)
    if target is not None:
        target.write_text(report, encoding="utf-8")
