"""The sessions: which client, how it is started and pointed at the server, what it is expected to breakpoint and to
leave.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import session
from clients_bench import KEY, SCRIPTS, Done, Server, bin_of, folder_of, isolates, python_of

from cachecost.strategies.placements import Automatic, LastN, LastTool, Placement, SystemBlock
from cachecost.strategies.presets import PRESETS

Run = Callable[[Server], Done]
OF_THE_CALLER = Placement((LastTool(), SystemBlock("last"), LastN("tool", 9)))
"""The SDKs breakpoint nothing themselves; this is what our loops choose."""
SMALL = "claude-haiku-4-5"
"""The model that opencode names a session with."""
NOTHING_MARKED = "no breakpoint is set (no cache_control in its calls)"
NO_RESULTS = "no breakpoint on tool results; the last breakpoint is on "
FIRST_TEXT = f"{NO_RESULTS}the first user text"
ONCE = {"none": Placement(()), "automatic": Placement((Automatic(),)), "caller": OF_THE_CALLER}


@dataclass(frozen=True)
class Session:
    """`run` has the three calls of one turn made. `breakpoints` names a preset, or one of ONCE.

    `uncached` is why the bill says that the loop is left uncached; empty where it is cached. `beside` are the models of
    calls that are not of the loop.
    """

    run: Run
    breakpoints: str
    uncached: str = ""
    beside: tuple[str, ...] = ()

    @property
    def placement(self) -> Placement:
        return ONCE.get(self.breakpoints) or PRESETS[self.breakpoints].placement


def script(client: str, name: str, *words: str) -> Run:
    return lambda server: server.run(python_of(client), str(SCRIPTS / name), *words)


def typescript(server: Server) -> Done:
    plan = {"model": session.MODEL, "system": session.SYSTEM, "question": session.QUESTION, "tools": session.TOOLS}
    folder = folder_of("typescript-sdk")
    return server.run("node", str(SCRIPTS / "sdk_loop.mjs"), given=json.dumps(plan), CLIENT_FOLDER=str(folder))


def llm(server: Server) -> Done:
    words = ["-m", f"anthropic/{session.MODEL}", "-s", session.SYSTEM, "-o", "cache", "1"]
    functions = ["--functions", str(SCRIPTS / "session.py")]
    return server.run(str(folder_of("llm") / "bin/llm"), *words, *functions, session.QUESTION)


def claude_code_program() -> str:
    """The Claude Code that the Agent SDK brings along."""
    found = sorted(folder_of("claude-agent-sdk").glob("lib/python*/site-packages/claude_agent_sdk/_bundled/claude"))
    return str(found[0])


def claude_code(**more: str) -> Run:
    allowed = ["--allowedTools", "Read", "Bash(echo:*)"]
    words = ["-p", session.QUESTION, "--output-format", "json", *allowed]
    return lambda server: server.run(claude_code_program(), *words, **more)


def cline(server: Server) -> Done:
    """Its `auth` takes no base URL for Anthropic: that goes into its settings file."""
    program = bin_of("cline", "cline")
    if not isolates():
        pytest.skip("Cline leaves a daemon behind, which is ended with certainty on Linux as root alone")
    settings = {"provider": "anthropic", "apiKey": KEY, "model": session.MODEL, "baseUrl": f"{server.address}/v1"}
    entry = {"settings": settings, "updatedAt": "2026-11-21T00:00:00.000Z", "tokenSource": "manual"}
    file = {"version": 1, "lastUsedProvider": "anthropic", "modes": {}, "providers": {"anthropic": entry}}
    written(server.folder / "home/.cline/data/settings/providers.json", json.dumps(file))
    return server.run(program, "-P", "anthropic", "-m", session.MODEL, session.QUESTION)


CONTINUE = """\
name: bench
version: 1.0.0
schema: v1
models:
  - name: claude
    provider: anthropic
    model: {model}
    apiKey: {key}
    apiBase: {address}/v1/
    roles: [chat]
    capabilities: [tool_use]
"""


def continue_cli(server: Server) -> Done:
    text = CONTINUE.format(model=session.MODEL, key=KEY, address=server.address)
    config = written(server.folder / "home/config.yaml", text)
    return server.run(bin_of("continue", "cn"), "--config", str(config), "-p", session.QUESTION)


def opencode(server: Server) -> Done:
    """Its own program: the one in node_modules/.bin wants the package's install script to have run."""
    programs = sorted(
        folder_of("opencode").glob("node_modules/opencode-*/bin/opencode"), key=lambda path: len(str(path))
    )
    if not programs:
        pytest.skip("opencode has no program for this platform")
    options = {"baseURL": f"{server.address}/v1", "apiKey": KEY}
    provider = {"options": options, "models": {session.MODEL: {}}}
    models = {"model": f"anthropic/{session.MODEL}", "small_model": f"anthropic/{SMALL}"}
    config = {"autoupdate": False, "share": "disabled", "provider": {"anthropic": provider}, **models}
    written(server.folder / "work/opencode.json", json.dumps(config))
    return server.run(
        str(programs[0]),
        *("run", session.QUESTION),
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
    )


WITH_BUDGET = "claude-sonnet-4-5"
"""A model that takes a budget of thinking, as two clients send it for models that they do not know."""


def pi(server: Server) -> Done:
    config = {"providers": {"anthropic": {"baseUrl": server.address}}}
    written(server.folder / "home/.pi/agent/models.json", json.dumps(config))
    words = ["-p", session.QUESTION, "--provider", "anthropic", "--model", WITH_BUDGET]
    return server.run(bin_of("pi", "pi"), *words, PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")


def qwen_code(client: str, model: str = session.MODEL) -> Run:
    words = ["-p", session.QUESTION, "--auth-type", "anthropic", "--model", model]
    return lambda server: server.run(bin_of(client, "qwen"), *words, ANTHROPIC_MODEL=model)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


HOUR = {"ENABLE_PROMPT_CACHING_1H": "1"}
SESSIONS = {
    "anthropic": Session(script("anthropic", "sdk_loop.py"), "caller"),
    "anthropic-tool-runner": Session(script("anthropic", "sdk_tool_runner.py"), "automatic"),
    "typescript-sdk": Session(typescript, "caller"),
    "langchain": Session(script("langchain", "langchain_agent.py"), "none", NOTHING_MARKED),
    "langchain-middleware": Session(script("langchain", "langchain_agent.py", "middleware"), "langchain-middleware"),
    "pydantic-ai-none": Session(script("pydantic-ai", "pydantic_agent.py", "none"), "none", NOTHING_MARKED),
    "pydantic-ai-places": Session(script("pydantic-ai", "pydantic_agent.py", "places"), "pydantic-ai"),
    "pydantic-ai-auto": Session(script("pydantic-ai", "pydantic_agent.py", "automatic"), "pydantic-ai-auto"),
    "litellm": Session(script("litellm", "litellm_loop.py"), "litellm-injection"),
    "llm": Session(llm, "llm-anthropic"),
    "claude-code": Session(claude_code(), "claude-code"),
    "claude-code-1h": Session(claude_code(**HOUR), "claude-code-1h"),
    "claude-code-uncached": Session(claude_code(DISABLE_PROMPT_CACHING="1"), "none", NOTHING_MARKED),
    "claude-agent-sdk": Session(script("claude-agent-sdk", "agent_sdk.py", session.QUESTION), "claude-agent-sdk"),
    "cline": Session(cline, "cline-sdk", FIRST_TEXT),
    "continue": Session(continue_cli, "continue-systemAndTools", FIRST_TEXT),
    "opencode": Session(opencode, "opencode", beside=(SMALL,)),
    "pi": Session(pi, "pi"),
    "qwen-code": Session(qwen_code("qwen-code"), "qwen-code"),
    **{
        f"openai-{way}": Session(script("openai", "openai_loop.py", way), "none")
        for way in ("chat", "chat-stream", "responses", "responses-stream", "responses-stored")
    },
    **{
        f"google-genai-{way}": Session(script("google-genai", "gemini_loop.py", way), "none")
        for way in ("whole", "stream", "automatic")
    },
    "qwen-code-0.15": Session(
        qwen_code("qwen-code-0.15", WITH_BUDGET), "qwen-code-0.15", f"{NO_RESULTS}the system prompt"
    ),
}
