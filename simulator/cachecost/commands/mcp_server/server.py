"""The server of the official SDK over stdin and stdout; the docstrings of its tools are what an agent reads."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.stdio import stdio_server
from mcp.types import ToolAnnotations
from pydantic import Field

import cachecost
from cachecost.base.atomic_files import check_readable
from cachecost.base.errors import CannotEvaluate, InputError, nearest
from cachecost.base.limits import OutOfLimits, check_depth, json_value
from cachecost.base.version import __version__
from cachecost.commands.mcp_server.answers import (
    BillAnswer,
    ExplainAnswer,
    ExplainAnswers,
    LintAnswer,
    ModelsAnswer,
    NextAnswer,
    NoAnswer,
    WhatIfAnswer,
    brief_model,
    cut_answer,
    run_for_json,
)
from cachecost.conversations.input_files import is_url
from cachecost.providers.hosts import AUTO_HOST, near_model

Paths = Annotated[list[str], Field(min_length=1, description="Files or folders with logs or sessions.")]
Limit = Annotated[int, Field(ge=1, le=500, description="Rows of a list at most, the most expensive first.")]
TokenCount = Annotated[int, Field(ge=0, le=10**8)]
_ONE_AT_A_TIME = threading.Lock()
"""A command that runs has the stdout and stderr of the process."""
RULEBOOK = "rulebook.md"
PACKAGE = Path(cachecost.__file__).parent
INSTRUCTIONS = (
    "What prompt caching costs. Ask bill first: what sessions cost, what was written again, and which setting helps. "
    "next_message prices what comes next, before the money is spent. All tools only read files of this machine."
)
MARKDOWN = "text/markdown"


def bill(
    paths: Annotated[
        list[str], Field(description="Session files, logs or folders; none: the agents' sessions on this machine.")
    ] = [],  # noqa: B006 (never changed; the schema shows it)
    by: Literal["session", "project", "day", "week", "month", "model", "agent"] | None = None,
    since: Annotated[str | None, Field(description="30d, 12h, 2w, or a date in UTC.")] = None,
    until: Annotated[str | None, Field(description="As `since`.")] = None,
    project: Annotated[str | None, Field(description="Only sessions whose folder contains this text.")] = None,
    session: Annotated[str | None, Field(description="One session call by call: the beginning of its id.")] = None,
    limit: Limit = 20,
) -> BillAnswer:
    """What sessions cost, which of it was paid to write cached tokens again, why, and which setting would have helped.

    Reads coding agents' session files (Claude Code, Codex, opencode and others) and request logs. USD are list prices.
    """
    options = _options(by=by, since=since, until=until, project=project, session=session)
    return BillAnswer(**_answer("bill", [*options, *_paths(paths)], limit))


def explain(
    paths: Paths,
    strategy: Annotated[str | None, Field(description="Of a scenario: only this strategy.")] = None,
    limit: Limit = 20,
) -> ExplainAnswers:
    """The avoidable cost of logs or of one scenario file: each cause with its calls, its dollars and its fix.

    The resource cachecost://codes/CODE explains the code of a finding.
    """
    answers = _run("explain", [*_options(strategy=strategy), *_paths(paths)])
    return ExplainAnswers(explanations=[ExplainAnswer(**cut_answer(one, limit)) for one in answers])


def next_message(
    session: Annotated[
        str | None,
        Field(description="The beginning of a session's id, or a file or folder; none: this machine's latest session."),
    ] = None,
    tokens: Annotated[TokenCount | None, Field(description="Length of the message; none: as is typical.")] = None,
    output: Annotated[TokenCount, Field(description="Also price an answer of so many tokens.")] = 0,
    at: Annotated[str | None, Field(description="When it is sent, as 2026-03-07T14:30 (UTC); none: now.")] = None,
    models: Annotated[list[str], Field(description="Also with these models.")] = [],  # noqa: B006
    tools: Annotated[TokenCount | None, Field(description="Also with tools of so many tokens added.")] = None,
) -> NextAnswer:
    """What the next message of a session costs now, until when its cache is warm, and what a change would do.

    Alternatives: after the TTL, with another model or effort level, after /compact (its own cost, and after how many
    messages it pays), with tools added. Call it before a switch of the model or a compaction. It sends nothing.
    """
    options = _options(tokens=tokens, output=output, at=at, tools=tools) + [f"--model={model}" for model in models]
    named = [] if session is None else [session]
    return NextAnswer(**_answer("next", [*options, *_paths(named)], 500))


def what_if(
    paths: Paths,
    jointly: Annotated[list[str], Field(description="Also these alternatives combined; names as answered.")] = [],  # noqa: B006
    actions: Annotated[
        list[str], Field(description="Changes in mid-session: model=MODEL, effort=low, tools+=NAME, format=json.")
    ] = [],  # noqa: B006
    at: Annotated[int | None, Field(ge=1, description="With `actions`: change after this call.")] = None,
    limit: Limit = 20,
) -> WhatIfAnswer:
    """What other ways to send recorded calls would have cost: TTLs, keep-alives, breakpoints, models, hosts, batches.

    Each alternative is replayed; its saving is the difference to a replay of the calls as they were sent. Needs logs of
    requests; for transcripts of an agent, `bill` has advice.
    """
    options = _options(jointly=",".join(jointly) or None, at=at) + [f"--action={action}" for action in actions]
    return WhatIfAnswer(**_answer("whatif", [*options, *_paths(paths)], limit))


def lint_request(
    requests: Annotated[
        list[dict[str, Any]], Field(description="Bodies of the Messages API, in the order in which they are sent.")
    ] = [],  # noqa: B006
    paths: Annotated[list[str], Field(description="Instead: files with a body each, or request logs.")] = [],  # noqa: B006
    host: str = AUTO_HOST,
    limit: Limit = 50,
) -> LintAnswer:
    """Check requests before they are sent: what the API refuses, and what breaks or misses the prompt cache.

    Two or more requests are also compared, each with the one before it.
    """
    if bool(requests) == bool(paths):
        raise ToolError("requests, paths: expected one of them")
    if paths:
        return LintAnswer(**_answer("lint", [*_options(host=host), *_paths(paths)], limit))
    from cachecost.analysis.lint import RequestLoader, lint_bodies, sort_findings
    from cachecost.commands.lint import body_faults
    from cachecost.providers.rules import RuleBook
    from cachecost.tokens.factory import AUTO
    from cachecost.views.lint import lint_object

    loader, bodies = RequestLoader(RuleBook(), host, AUTO), [(f"requests[{n}]", one) for n, one in enumerate(requests)]
    try:
        if faults := [fault for label, body in bodies for fault in body_faults(loader, body, label)]:
            raise InputError(faults)
        found = lint_object(sort_findings(lint_bodies(bodies, loader)), len(bodies))
    except (InputError, CannotEvaluate) as error:
        raise ToolError(str(error)) from None
    return LintAnswer(**cut_answer(found | {"diagnostics": []}, limit))


def models(
    host: str = "anthropic",
    model: Annotated[str | None, Field(description="Only this one, with all its rules.")] = None,
    limit: Limit = 50,
) -> ModelsAnswer:
    """The models of a host: prices (USD per 10^6 tokens), minimum prompt that is cached, TTLs, context window."""
    (answer,) = _run("models", _options(host=host))
    rows = answer["models"]
    if model is None:
        answer["models"] = [brief_model(row) for row in rows]
    else:
        answer["models"] = [row for row in rows if model in (row["id"], *row["aliases"])]
        if not answer["models"]:
            raise ToolError(f"unknown model '{model}' on {host}{near_model(host, model)}")
    return ModelsAnswer(**cut_answer(answer, limit))


TOOLS = (bill, explain, next_message, what_if, lint_request, models)


def _answer(name: str, words: Sequence[str], limit: int) -> dict[str, Any]:
    """The one object that a command prints, its lists cut. Raises ToolError."""
    return cut_answer(_run(name, words)[0], limit)


def _run(name: str, words: Sequence[str]) -> list[dict[str, Any]]:
    try:
        with _ONE_AT_A_TIME:
            return run_for_json(name, words)
    except NoAnswer as error:
        raise ToolError(str(error)) from None


def _options(**values: object) -> list[str]:
    """As one word each, so that no value is taken for another option."""
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _paths(named: Sequence[str]) -> list[str]:
    """What was named, where nothing is an option. Raises ToolError for a URL, and for what may not be read."""
    if urls := [path for path in named if is_url(path)]:
        raise ToolError(f"{', '.join(urls)}: expected a path on this machine; got a URL")
    faults = []
    for path in named:
        try:
            if "\0" in path or Path(path).exists():  # what is no file may be the beginning of a session's id
                check_readable(Path(path))
        except InputError as error:
            faults += error.faults
    if faults:
        raise ToolError("\n".join(map(str, faults)))
    return ["--", *named]


def pages() -> Path:
    """The folder of the pages: in an installed package, or the documentation of the checkout."""
    installed = PACKAGE / "pages"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "docs"


def rulebook() -> str:
    """Every rule of prompt caching by which cachecost computes, with its source."""
    return (pages() / RULEBOOK).read_text(encoding="utf-8")


def code_page(code: str) -> str:
    """What the code of a finding (CC101 …) means, why it costs, and what to do."""
    known = {path.stem: path for path in (pages() / "codes").glob("CC*.md")}
    if code.upper() not in known:
        raise ResourceNotFoundError(f"unknown code '{code}'{nearest(code, sorted(known))}")
    return known[code.upper()].read_text(encoding="utf-8")


def make_server() -> MCPServer[None]:
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
            number: int | str = 0
            with suppress(msgspec.MsgspecError, RecursionError):
                number = msgspec.json.decode(line, type=_Envelope).id or 0
            yield json.dumps({"jsonrpc": "2.0", "id": number, "method": f"none: {error}", "params": {}})
        except ValueError:
            yield line
        else:
            yield line


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve until stdin ends."""
    stdin: Any = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
    lines: Any = read_lines(stdin)
    async with stdio_server(stdin=lines) as (received, sent):
        inner = server._lowlevel_server
        await inner.run(received, sent, inner.create_initialization_options())
