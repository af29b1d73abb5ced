"""The stored count of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class BlockCount(NamedTuple):
    """The count of a block: tokens of its texts, their content kind, and the facts of its structure."""

    prose: str
    tokens: int
    facts: Mapping[str, int]
