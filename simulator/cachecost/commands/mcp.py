"""`cachecost mcp`: the answers of the other commands, for agents."""

from __future__ import annotations

import click

from cachecost.base.extras import require
from cachecost.commands.help import SectionedCommand


@click.command(cls=SectionedCommand)
def mcp() -> None:
    """Answer agents over the Model Context Protocol: bill, explain, next_message, what_if, lint_request, models.

    A client starts it and speaks to it on stdin and stdout. The tools only read: the files that a call names or, for
    bill and next_message without any, the sessions of the agents on this machine. They take no URLs. Resources are
    cachecost://rulebook and cachecost://codes/CODE.
    """
    require("cachecost mcp", "mcp")
    from cachecost.commands.mcp_server.server import make_server

    make_server().run("stdio")
