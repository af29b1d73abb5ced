"""How each calibration ends: what was fitted is printed, and written where that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from cachecost.tokens.calibration import SCRIPTS


def print_report(report: str, target: Path | None) -> None:
    """Print the report, and write it to `target` if there is one."""
    sys.stdout.write(report)
    if target is not None:
        target.write_text(report, encoding="utf-8")


def write_table(values: Mapping[str, float]) -> str:
    """An inline table; ratios of scripts have a file of their own."""
    return "{ " + ", ".join(f"{name} = {value:g}" for name, value in values.items() if name not in SCRIPTS) + " }"
