"""OpenAI's Python SDK in a loop of its own. argv: chat or responses, with -stream or -stored, or errors."""

import json
import sys

import openai
import session

MODEL = "gpt-5.2"
client = openai.OpenAI()


def functions(inner: bool) -> list[dict]:
    """The tools as functions: Chat Completions has the definition in an object of its own."""
    named = [
        {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}
        for tool in session.TOOLS
    ]
    return [{"type": "function", "function": one} if inner else {"type": "function", **one} for one in named]


def result_of(name: str, arguments: str) -> str:
    return session.run_tool(name, json.loads(arguments))


def chat(streams: bool) -> str:
    messages = [{"role": "system", "content": session.SYSTEM}, {"role": "user", "content": session.QUESTION}]
    asked = {"model": MODEL, "tools": functions(inner=True), "messages": messages}
    while True:
        if streams:
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(**asked)
        assert answer.usage.prompt_tokens_details.cached_tokens <= answer.usage.prompt_tokens
        said = answer.choices[0].message
        if answer.choices[0].finish_reason != "tool_calls":
            return said.content
        messages.append(said.model_dump(exclude_none=True))
        messages += [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": result_of(call.function.name, call.function.arguments),
            }
            for call in said.tool_calls
        ]


def responses(streams: bool, stored: bool) -> str:
    """With `stored`, the server keeps the conversation and only results are sent."""
    items = [{"role": "user", "content": session.QUESTION}]
    asked = {"model": MODEL, "instructions": session.SYSTEM, "tools": functions(inner=False), "input": items}
    while True:
        if streams:
            with client.responses.stream(**asked) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**asked)
        assert answer.usage.input_tokens_details.cached_tokens <= answer.usage.input_tokens
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": result_of(call.name, call.arguments)}
            for call in calls
        ]
        if stored:
            asked |= {"previous_response_id": answer.id, "input": results}
        else:
            items += [item.model_dump(exclude_none=True) for item in answer.output] + results


def check_errors() -> None:
    """The SDK raises the error that it has for each status."""
    try:
        client.chat.completions.create(model="gpt-0", messages=[{"role": "user", "content": "Hi"}])
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error
    else:
        raise AssertionError("an unknown model was answered")
    assert MODEL in [one.id for one in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


if sys.argv[1] == "errors":
    check_errors()
else:
    api, _, way = sys.argv[1].partition("-")
    print(chat(way == "stream") if api == "chat" else responses(way == "stream", way == "stored"))
