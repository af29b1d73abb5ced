"""The server of the official SDK, with the tools and the resources."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from cachecost.base.version import __version__
from cachecost.commands.mcp_server.resources import code_page, rulebook
from cachecost.commands.mcp_server.tools import TOOLS

INSTRUCTIONS = (
    "What prompt caching costs. Ask bill first: what sessions cost, what was written again, and which setting helps. "
    "next_message prices what comes next, before the money is spent. All tools only read files of this machine."
)
MARKDOWN = "text/markdown"


def make_server() -> MCPServer[None]:
    """A server that is ready to run."""
    server = MCPServer[None]("cachecost", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    for tool in TOOLS:
        annotations = ToolAnnotations(
            title=f"cachecost {tool.__name__}", read_only_hint=True, idempotent_hint=True, open_world_hint=False
        )
        server.add_tool(tool, annotations=annotations, structured_output=True)
    server.resource("cachecost://rulebook", mime_type=MARKDOWN)(rulebook)
    server.resource("cachecost://codes/{code}", mime_type=MARKDOWN)(code_page)
    return server
