"""Help of commands: shared options are listed last, under their own heading."""

from __future__ import annotations

import click

from cachecost.commands.output_paths import CheckedCommand

SHARED_HEADING = "Rules and prices"


class SharedOption(click.Option):
    """An option that all simulating commands share."""


class SectionedCommand(CheckedCommand):
    """A command whose help lists shared options after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two sections, without empty ones."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [option for option in options if not isinstance(option, SharedOption)]
        shared = [option for option in options if isinstance(option, SharedOption)]
        for heading, section in (("Options", own), (SHARED_HEADING, shared)):
            if records := [record for option in section if (record := option.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)
