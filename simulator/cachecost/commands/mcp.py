"""`cachecost mcp`: the answers of the other commands, for agents."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cachecost.base.extras import require
from cachecost.commands.output_paths import CheckedCommand


@click.command(cls=CheckedCommand)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Folder below which files may be read, besides the agents' sessions; repeatable.  [default: this folder]",
)
def mcp(roots: tuple[Path, ...]) -> None:
    """Answer agents over the Model Context Protocol: bill, explain, next_message, what_if, lint_request, models.

    A client starts it and speaks to it on stdin and stdout. The tools only read: files below the roots and the
    sessions of the agents on this machine. They run no command of a scenario and open no URL. Resources are
    cachecost://rulebook and cachecost://codes/CODE.
    """
    require("cachecost mcp", "mcp")
    import anyio

    from cachecost.base.atomic_files import read_only_below
    from cachecost.commands.mcp_server.server import make_server, serve_stdio
    from cachecost.sessions.locations import locations

    sessions = [folder for location in locations() for folder in location.roots(Path.home(), os.environ)]
    read_only_below(dict.fromkeys([*(roots or [Path.cwd()]), *sessions]))
    anyio.run(serve_stdio, make_server())
