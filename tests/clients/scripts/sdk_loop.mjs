// The TypeScript SDK in a loop of its own: last tool, system, and the newest tool results are marked.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.CLIENT_FOLDER, "package.json"));
const { default: Anthropic } = require("@anthropic-ai/sdk");
const session = JSON.parse(readFileSync(0, "utf8"));
const mark = { type: "ephemeral" };
const results = { get_weather: ({ city }) => `18 degrees and dry in ${city}`, add: ({ a, b }) => `${a + b}` };

const client = new Anthropic();
const [first, last] = session.tools;
const messages = [{ role: "user", content: session.question }];
let answer;
for (;;) {
  answer = await client.messages
    .stream({
      model: session.model,
      max_tokens: 1000,
      tools: [first, { ...last, cache_control: mark }],
      system: [{ type: "text", text: session.system, cache_control: mark }],
      messages,
    })
    .finalMessage();
  if (answer.stop_reason !== "tool_use") break;
  messages.push({ role: "assistant", content: answer.content });
  messages.push({
    role: "user",
    content: answer.content
      .filter((block) => block.type === "tool_use")
      .map((block) => ({
        type: "tool_result",
        tool_use_id: block.id,
        content: results[block.name](block.input),
        cache_control: mark,
      })),
  });
}
console.log(answer.content.at(-1).text);
