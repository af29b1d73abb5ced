"""Diagnostics of commands."""

from __future__ import annotations

import click


def print_diagnostic(text: str) -> None:
    """Print a line to stderr; stdout is for results."""
    click.echo(text, err=True)
