"""The server of the official SDK, with the tools and the resources, over stdin and stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import anyio
import msgspec
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.types import ToolAnnotations

from cachecost.base.limits import OutOfLimits, check_depth, json_value
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


class _Envelope(msgspec.Struct):
    """What a JSON-RPC request is answered by."""

    id: int | str | None = None


async def read_lines(stream: AsyncIterator[str]) -> AsyncIterator[str]:
    """The lines of a client. One that is nested too deeply for the SDK would never be answered: its method is not.

    What is answered then is that there is no such method, and the method's name says why.
    """
    async for line in stream:
        try:
            check_depth(json_value(line), line)
        except OutOfLimits as error:
            yield json.dumps({"jsonrpc": "2.0", "id": _id_of(line), "method": f"none: {error}", "params": {}})
        except ValueError:
            yield line
        else:
            yield line


def _id_of(line: str) -> int | str:
    with suppress(msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(line, type=_Envelope).id or 0
    return 0


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve until stdin ends."""
    stdin: Any = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
    lines: Any = read_lines(stdin)
    async with stdio_server(stdin=lines) as (received, sent):
        inner = server._lowlevel_server
        await inner.run(received, sent, inner.create_initialization_options())
