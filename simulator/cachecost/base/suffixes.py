"""What a file's name says about its content."""

from __future__ import annotations

from pathlib import Path


def is_yaml(path: Path) -> bool:
    """Whether a path is that of a YAML file. Of inputs that may be a log or a scenario, that is the scenario."""
    return path.suffix in (".yaml", ".yml")
