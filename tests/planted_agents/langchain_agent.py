"""Edits of the agent on LangChain."""

from __future__ import annotations

from collections.abc import Mapping

from planted_agents.edits import DESCRIPTION, LONGER_PROMPT, PROMPT_READ, PYTHON_MODEL, Edit, Edits

AGENT_EACH_TURN = (
    Edit("agent.py", "    agent = create_agent(", "    new_agent = lambda: create_agent("),
    Edit("agent.py", "agent.invoke", "new_agent().invoke"),
)
FAULTS: Mapping[str, Edits] = {
    "timestamp": (
        Edit("agent.py", "import sys\n", "import sys\nfrom datetime import datetime\n"),
        Edit(
            "agent.py",
            f"return {PROMPT_READ}",
            f'return f"It is now {{datetime.now():%H:%M:%S.%f}}.\\n" + {PROMPT_READ}',
        ),
        *AGENT_EACH_TURN,
    ),
    "tools in the order of a set": (
        Edit("agent.py", "tools=TOOLS,", "tools=sorted(TOOLS, key=lambda one: hash(one.__name__)),"),
    ),
    "tools in another order each call": (
        Edit(
            "agent.py",
            "    for question in sys.stdin:\n",
            "    for question in sys.stdin:\n        TOOLS.append(TOOLS.pop(0))\n",
        ),
        *AGENT_EACH_TURN,
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
    "breakpoint on the system prompt alone": (
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
HARMLESS: Mapping[str, Edits] = {
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
