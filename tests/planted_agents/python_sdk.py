"""Edits of the agent on Anthropic's Python SDK."""

from __future__ import annotations

from collections.abc import Mapping

from planted_agents.edits import DESCRIPTION, LONGER_PROMPT, PROMPT_READ, PYTHON_MODEL, Edit, Edits

FAULTS: Mapping[str, Edits] = {
    "timestamp": (
        Edit("agent.py", "import sys\n", "import sys\nfrom datetime import datetime\n"),
        Edit(
            "agent.py",
            f"text = {PROMPT_READ}",
            f'text = f"It is now {{datetime.now():%H:%M:%S.%f}}.\\n" + {PROMPT_READ}',
        ),
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
HARMLESS: Mapping[str, Edits] = {
    "a comment": (Edit("agent.py", "def main()", "# Questions come from a pipe.\ndef main()"),),
    "another local name": (
        Edit("agent.py", "        calls = [block", "        wanted = [block"),
        Edit("agent.py", "        if not calls:", "        if not wanted:"),
        Edit("agent.py", "            for call in calls\n", "            for call in wanted\n"),
    ),
    "imports in another order": (
        Edit("agent.py", "import sys\nfrom pathlib import Path\n", "from pathlib import Path\nimport sys\n"),
        Edit("agent.py", "from anthropic import Anthropic\n\nfrom tools", "from tools"),
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
