"""Edits of the example agents: faults that cost money, each at a known place, and changes that cost nothing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
AGENTS = ROOT / "docs" / "examples" / "agents"
LONGER = "\n## Before you answer\n\n" + "".join(
    f"- If the question is about {what}, read the file of that name again, even if you have read it before.\n"
    for what in ("loans", "fees", "rooms", "readings", "newspapers", "maps", "school classes", "lost titles")
)
DESCRIPTION = "Look up whether a title is on the shelf, on loan or reserved, and on which floor it stands."


@dataclass(frozen=True, slots=True)
class Edit:
    """`old`, which `file` has exactly once, becomes `new`; without `old`, `new` is added at the end."""

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        place = folder / self.file
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        assert not self.old or text.count(self.old) == 1, f"{self.file} has {self.old!r} {text.count(self.old)} times"
        place.write_text(text.replace(self.old, self.new) if self.old else text + self.new, encoding="utf-8")


Edits = tuple[Edit, ...]
PROMPT_READ = 'Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")'
LONGER_PROMPT = (Edit("prompt.md", "", LONGER),)
ANOTHER_MODEL = "claude-opus-5-5"
PYTHON_MODEL = (Edit("agent.py", '"claude-sonnet-5-5"', f'"{ANOTHER_MODEL}"'),)

PYTHON_SDK: Mapping[str, Edits] = {
    "timestamp": (
        Edit("agent.py", "import sys\n", "import sys\nfrom datetime import datetime\n"),
        Edit("agent.py", f"text = {PROMPT_READ}", f'text = f"Now: {{datetime.now():%H:%M:%S.%f}}\\n" + {PROMPT_READ}'),
    ),
    "tools in the order of a set": (
        Edit(
            "agent.py",
            "    return [*TOOLS[:-1], {**TOOLS[-1]",
            '    offered = sorted(TOOLS, key=lambda one: hash(one["name"]))\n    return [*offered[:-1], {**offered[-1]',
        ),
    ),
    "tools in another order each call": (
        Edit(
            "agent.py",
            "    return [*TOOLS[:-1], {**TOOLS[-1]",
            "    TOOLS.append(TOOLS.pop(0))\n    return [*TOOLS[:-1], {**TOOLS[-1]",
        ),
    ),
    "new tool": (
        Edit(
            "tools.py",
            '    tool("get_opening_hours"',
            f'    tool("look_up_title", "{DESCRIPTION}", title="The title."),\n    tool("get_opening_hours"',
        ),
    ),
    "moved breakpoint": (
        Edit(
            "agent.py",
            "messages=with_breakpoint(messages)",
            "messages=[*with_breakpoint(messages[:1]), *messages[1:]]",
        ),
    ),
    "longer system prompt": LONGER_PROMPT,
    "another model": PYTHON_MODEL,
}
PYTHON_SDK_HARMLESS: Mapping[str, Edits] = {
    "a comment": (Edit("agent.py", "def main()", "# Questions come from a pipe.\ndef main()"),),
    "another local name": (
        Edit("agent.py", "        calls = [block", "        wanted = [block"),
        Edit("agent.py", "        if not calls:", "        if not wanted:"),
        Edit("agent.py", "            for call in calls\n", "            for call in wanted\n"),
    ),
    "imports in another order": (
        Edit("agent.py", "import sys\nfrom pathlib import Path\n", "from pathlib import Path\nimport sys\n"),
        Edit("agent.py", "from anthropic import Anthropic\nfrom tools", "from tools"),
        Edit("agent.py", "run_tool\n\nMODEL", "run_tool\nfrom anthropic import Anthropic\n\nMODEL"),
    ),
    "a log line to stderr": (
        Edit(
            "agent.py",
            "        reply = client",
            '        print(len(messages), "messages", file=sys.stderr)\n        reply = client',
        ),
    ),
    "a helper in another form": (
        Edit(
            "agent.py",
            '    return [*TOOLS[:-1], {**TOOLS[-1], "cache_control": BREAKPOINT}]',
            "    offered = [dict(one) for one in TOOLS]\n"
            '    offered[-1]["cache_control"] = BREAKPOINT\n'
            "    return offered",
        ),
    ),
    "max_tokens": (Edit("agent.py", "max_tokens=1000", "max_tokens=1500"),),
    "a new file": (Edit("notes.py", "", "MODEL = 'claude-opus-5-5'\n"),),
    "a docstring": (Edit("tools.py", '"""The result of a tool call."""', '"""What a tool gives."""'),),
    "timeout and retries": (Edit("agent.py", "Anthropic()", "Anthropic(timeout=30, max_retries=4)"),),
    "other answers on stdout": (Edit("agent.py", "print(ask(client, messages))", 'print("-", ask(client, messages))'),),
}

LANGCHAIN: Mapping[str, Edits] = {
    "timestamp": (
        Edit("agent.py", "import sys\n", "import sys\nfrom datetime import datetime\n"),
        Edit("agent.py", f"return {PROMPT_READ}", f'return f"Now: {{datetime.now():%H:%M:%S.%f}}\\n" + {PROMPT_READ}'),
    ),
    "tools in the order of a set": (
        Edit("agent.py", "tools=TOOLS,", "tools=sorted(TOOLS, key=lambda one: hash(one.__name__)),"),
    ),
    "tools in another order each call": (
        Edit(
            "agent.py",
            "        messages = agent.invoke",
            "        TOOLS.append(TOOLS.pop(0))\n        messages = new_agent().invoke",
        ),
        Edit("agent.py", "    agent = create_agent(", "    new_agent = lambda: create_agent("),
    ),
    "new tool": (
        Edit(
            "tools.py",
            "TOOLS = [list_files, read_file, search_files, get",
            "TOOLS = [list_files, look_up_title, read_file, search_files, get",
        ),
        Edit(
            "tools.py",
            "\n\nTOOLS =",
            f'\n\ndef look_up_title(title: Annotated[str, "The title."]) -> str:\n    """{DESCRIPTION}"""\n'
            '    return "On the shelf."\n\n\nTOOLS =',
        ),
    ),
    "moved breakpoint": (
        Edit("agent.py", "from tools import", "from langchain_core.messages import SystemMessage\nfrom tools import"),
        Edit("agent.py", "        middleware=[AnthropicPromptCachingMiddleware()],\n", ""),
        Edit(
            "agent.py",
            "system_prompt=system_prompt()",
            'system_prompt=SystemMessage([{"type": "text", "text": system_prompt(), '
            '"cache_control": {"type": "ephemeral"}}])',
        ),
    ),
    "longer system prompt": LONGER_PROMPT,
    "another model": PYTHON_MODEL,
}
LANGCHAIN_HARMLESS: Mapping[str, Edits] = {
    "a comment": (Edit("agent.py", "def main()", "# Questions come from a pipe.\ndef main()"),),
    "another local name": (
        Edit("agent.py", "    agent = create_agent(", "    desk = create_agent("),
        Edit("agent.py", "agent.invoke", "desk.invoke"),
    ),
    "imports in another order": (
        Edit("agent.py", "import sys\nfrom pathlib import Path\n", "from pathlib import Path\nimport sys\n"),
    ),
    "a log line to stderr": (
        Edit(
            "agent.py", "        messages = agent", "        print(question, file=sys.stderr)\n        messages = agent"
        ),
    ),
    "a helper in another form": (
        Edit(
            "agent.py",
            f"    return {PROMPT_READ}",
            '    with Path(__file__).with_name("prompt.md").open(encoding="utf-8") as prompt:\n'
            "        return prompt.read()",
        ),
    ),
    "max_tokens": (Edit("agent.py", "max_tokens=1000", "max_tokens=1500"),),
    "a new file": (Edit("notes.py", "", "MODEL = 'claude-opus-5-5'\n"),),
    "the docstring of a module": (Edit("tools.py", '"""The tools of the agent.', '"""What the agent can do.'),),
    "timeout and retries": (Edit("agent.py", "max_tokens=1000", "max_tokens=1000, timeout=30, max_retries=4"),),
    "other answers on stdout": (Edit("agent.py", "print(messages[-1].text)", 'print("-", messages[-1].text)'),),
}

TYPESCRIPT_SDK: Mapping[str, Edits] = {
    "timestamp": (
        Edit(
            "agent.mjs",
            "text, cache_control: BREAKPOINT",
            "text: `Now: ${process.hrtime.bigint()}\\n${text}`, cache_control: BREAKPOINT",
        ),
    ),
    "tools in a random order": (
        Edit("agent.mjs", "  return [...TOOLS", "  TOOLS.sort(() => Math.random() - 0.5);\n  return [...TOOLS"),
    ),
    "tools in another order each call": (
        Edit("agent.mjs", "  return [...TOOLS", "  TOOLS.push(...TOOLS.splice(0, 1));\n  return [...TOOLS"),
    ),
    "new tool": (
        Edit(
            "tools.mjs",
            '  tool("get_opening_hours"',
            f'  tool("look_up_title", "{DESCRIPTION}", {{ title: "The title." }}),\n  tool("get_opening_hours"',
        ),
    ),
    "moved breakpoint": (
        Edit(
            "agent.mjs",
            "messages: withBreakpoint(messages)",
            "messages: [...withBreakpoint(messages.slice(0, 1)), ...messages.slice(1)]",
        ),
    ),
    "longer system prompt": LONGER_PROMPT,
    "another model": (Edit("agent.mjs", '"claude-sonnet-5-5"', f'"{ANOTHER_MODEL}"'),),
}
TYPESCRIPT_SDK_HARMLESS: Mapping[str, Edits] = {
    "a comment": (Edit("agent.mjs", "const client =", "// Questions come from a pipe.\nconst client ="),),
    "another local name": (
        Edit("agent.mjs", "  const last = messages", "  const newest = messages"),
        Edit("agent.mjs", "[...last.content]", "[...newest.content]"),
        Edit("agent.mjs", "{ ...last, content", "{ ...newest, content"),
    ),
    "imports in another order": (
        Edit("agent.mjs", 'import { readFileSync } from "node:fs";\n', ""),
        Edit(
            "agent.mjs", 'from "node:readline";\n', 'from "node:readline";\nimport { readFileSync } from "node:fs";\n'
        ),
    ),
    "a log line to stderr": (
        Edit("agent.mjs", "    const reply =", '    console.error(messages.length, "messages");\n    const reply ='),
    ),
    "a helper in another form": (
        Edit(
            "agent.mjs",
            "  return [...TOOLS.slice(0, -1), { ...TOOLS[TOOLS.length - 1], cache_control: BREAKPOINT }];",
            "  return TOOLS.map((one, at) => (at < TOOLS.length - 1 ? one : { ...one, cache_control: BREAKPOINT }));",
        ),
    ),
    "max_tokens": (Edit("agent.mjs", "max_tokens: 1000", "max_tokens: 1500"),),
    "a new file": (Edit("notes.mjs", "", "export const MODEL = 'claude-opus-5-5';\n"),),
    "a comment of documentation": (
        Edit("tools.mjs", "/** The result of a tool call. */", "/** What a tool gives. */"),
    ),
    "timeout and retries": (Edit("agent.mjs", "new Anthropic()", "new Anthropic({ timeout: 30_000, maxRetries: 4 })"),),
    "other answers on stdout": (
        Edit("agent.mjs", "console.log(await ask(client, messages))", 'console.log("-", await ask(client, messages))'),
    ),
}

FAULTS = {"python-sdk": PYTHON_SDK, "typescript-sdk": TYPESCRIPT_SDK, "langchain": LANGCHAIN}
HARMLESS = {
    "python-sdk": PYTHON_SDK_HARMLESS,
    "typescript-sdk": TYPESCRIPT_SDK_HARMLESS,
    "langchain": LANGCHAIN_HARMLESS,
}


def project(agent: str, target: Path, *edits: Edit) -> Path:
    """A copy of an agent's folder, edited."""
    shutil.copytree(AGENTS / agent, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for edit in edits:
        edit.apply(target)
    return target
