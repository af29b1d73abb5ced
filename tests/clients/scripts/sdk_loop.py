"""The Python SDK in a loop of its own: last tool, system, and the newest tool results are marked."""

import anthropic
import session

BREAKPOINT = {"type": "ephemeral"}

client = anthropic.Anthropic()
tools = [session.TOOLS[0], {**session.TOOLS[1], "cache_control": BREAKPOINT}]
system = [{"type": "text", "text": session.SYSTEM, "cache_control": BREAKPOINT}]
messages = [{"role": "user", "content": session.QUESTION}]
while True:
    with client.messages.stream(
        model=session.MODEL, max_tokens=1000, tools=tools, system=system, messages=messages
    ) as stream:
        answer = stream.get_final_message()
    if answer.stop_reason != "tool_use":
        break
    messages.append({"role": "assistant", "content": answer.content})
    messages.append(
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": session.run_tool(block.name, block.input),
                    "cache_control": BREAKPOINT,
                }
                for block in answer.content
                if block.type == "tool_use"
            ],
        }
    )
print(answer.content[-1].text)
