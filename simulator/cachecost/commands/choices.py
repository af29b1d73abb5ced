"""Options that take one of several names."""

from __future__ import annotations

from typing import Any

import click

from cachecost.base.errors import nearest


class NameChoice(click.Choice[str]):
    """One of several names. The error for another value names the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What was expected and what came, without the option, which click names."""
        return f"expected one of {', '.join(self.choices)}; got '{value}'{nearest(str(value), self.choices)}"
