"""LiteLLM in a loop of its own, with injection points: the system prompt and the last message."""

import json
import os

import litellm
import session

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        },
    }
    for tool in session.TOOLS
]

messages = [
    {"role": "system", "content": session.SYSTEM},
    {"role": "user", "content": session.QUESTION},
]
while True:
    answer = litellm.completion(
        model=f"anthropic/{session.MODEL}",
        api_base=os.environ["ANTHROPIC_BASE_URL"],
        max_tokens=1000,
        tools=TOOLS,
        messages=messages,
        cache_control_injection_points=[
            {"location": "message", "role": "system"},
            {"location": "message", "index": -1},
        ],
    )
    said = answer.choices[0].message
    if not said.tool_calls:
        break
    messages.append(said.model_dump(exclude_none=True))
    messages += [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": session.run_tool(call.function.name, json.loads(call.function.arguments)),
        }
        for call in said.tool_calls
    ]
print(said.content)
