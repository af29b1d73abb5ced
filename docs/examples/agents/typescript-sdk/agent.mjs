// @ts-check
// The desk of a town library, on Anthropic's TypeScript SDK. Reads questions from stdin, a line each, and answers them.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";

import { runTool, TOOLS } from "./tools.mjs";

const MODEL = "claude-sonnet-5-5";
const BREAKPOINT = /** @type {const} */ ({ type: "ephemeral" });

/** @returns {Anthropic.TextBlockParam[]} */
function systemPrompt() {
  const text = readFileSync(new URL("prompt.md", import.meta.url), "utf8");
  return [{ type: "text", text, cache_control: BREAKPOINT }];
}

function tools() {
  return [...TOOLS.slice(0, -1), { ...TOOLS[TOOLS.length - 1], cache_control: BREAKPOINT }];
}

/**
 * The messages with a breakpoint on the last block: the next call reads all of them from the cache.
 * @param {any[]} messages
 */
function withBreakpoint(messages) {
  const last = messages[messages.length - 1];
  const blocks = [...last.content];
  blocks.push({ ...blocks.pop(), cache_control: BREAKPOINT });
  return [...messages.slice(0, -1), { ...last, content: blocks }];
}

/**
 * Answer the last message; the calls of tools and the answer are added to `messages`.
 * @param {Anthropic} client
 * @param {any[]} messages
 */
async function ask(client, messages) {
  for (;;) {
    const reply = await client.messages.create({
      model: MODEL,
      max_tokens: 1000,
      system: systemPrompt(),
      tools: tools(),
      messages: withBreakpoint(messages),
    });
    messages.push({ role: "assistant", content: reply.content });
    const results = [];
    for (const block of reply.content) {
      if (block.type !== "tool_use") continue;
      results.push({ type: "tool_result", tool_use_id: block.id, content: runTool(block.name, block.input) });
    }
    if (!results.length) return reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    messages.push({ role: "user", content: results });
  }
}

const client = new Anthropic();
const messages = [];
for await (const question of createInterface({ input: process.stdin })) {
  messages.push({ role: "user", content: [{ type: "text", text: question.trim() }] });
  console.log(await ask(client, messages));
}
