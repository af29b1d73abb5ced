"""Callbacks that more than one of the folders take."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]
"""Prints a line for people."""


def ignore(*values: object) -> None:
    """The default of an optional callback."""
