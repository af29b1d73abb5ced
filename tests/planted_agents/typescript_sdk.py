"""Edits of the agent on Anthropic's TypeScript SDK."""

from __future__ import annotations

from collections.abc import Mapping

from planted_agents.edits import ANOTHER_MODEL, DESCRIPTION, LONGER_PROMPT, Edit, Edits

FAULTS: Mapping[str, Edits] = {
    "timestamp": (
        Edit(
            "agent.mjs",
            "text, cache_control: BREAKPOINT",
            "text: `It is now ${process.hrtime.bigint()}.\\n${text}`, cache_control: BREAKPOINT",
        ),
    ),
    "tools in a random order each call": (
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
HARMLESS: Mapping[str, Edits] = {
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
    "a comment of documentation": (Edit("tools.mjs", " * The result of a tool call.", " * What a tool gives."),),
    "timeout and retries": (Edit("agent.mjs", "new Anthropic()", "new Anthropic({ timeout: 30_000, maxRetries: 4 })"),),
    "other answers on stdout": (
        Edit("agent.mjs", "console.log(await ask(client, messages))", 'console.log("-", await ask(client, messages))'),
    ),
}
