"""Rows of `replay --json` of one log beside those of another: all but where the calls were recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PLACE = ("file", "line")
NAMES = ("session", "project", "agent")


def without_place(line: str | bytes) -> dict[str, Any]:
    """A printed row without its file and line."""
    return _without(json.loads(line), PLACE)


def without_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without its session, project, agent, file and line."""
    return _without(row, (*NAMES, *PLACE))


def _without(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
