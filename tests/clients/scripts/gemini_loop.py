"""google-genai in a loop of its own. argv: whole, stream, or automatic (the SDK runs the functions itself)."""

import sys

import session
from google import genai
from google.genai import errors, types

MODEL = "gemini-2.5-pro"
client = genai.Client()
DECLARED = [
    types.FunctionDeclaration(
        name=tool["name"], description=tool["description"], parameters_json_schema=tool["input_schema"]
    )
    for tool in session.TOOLS
]


def answer_of(contents: list, streams: bool):
    config = types.GenerateContentConfig(
        system_instruction=session.SYSTEM, tools=[types.Tool(function_declarations=DECLARED)]
    )
    asked = {"model": MODEL, "contents": contents, "config": config}
    if not streams:
        answer = client.models.generate_content(**asked)
        return answer.candidates[0].content, answer.usage_metadata
    chunks = list(client.models.generate_content_stream(**asked))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    text = "".join(part.text or "" for part in parts)
    calls = [part for part in parts if part.function_call]
    return types.Content(role="model", parts=calls or [types.Part(text=text)]), chunks[-1].usage_metadata


def loop(streams: bool) -> str:
    contents = [types.Content(role="user", parts=[types.Part(text=session.QUESTION)])]
    while True:
        said, usage = answer_of(contents, streams)
        assert (usage.cached_content_token_count or 0) <= usage.prompt_token_count
        calls = [part.function_call for part in said.parts if part.function_call]
        if not calls:
            return said.parts[0].text
        results = [
            types.Part.from_function_response(
                name=call.name, response={"result": session.run_tool(call.name, call.args)}
            )
            for call in calls
        ]
        contents += [said, types.Content(role="user", parts=results)]


def automatic() -> str:
    config = types.GenerateContentConfig(system_instruction=session.SYSTEM, tools=[session.get_weather, session.add])
    return client.models.generate_content(model=MODEL, contents=session.QUESTION, config=config).text


def check_errors() -> None:
    """The SDK raises the error that it has for each status."""
    try:
        client.models.generate_content(model="gemini-0", contents="Hi")
    except errors.ClientError as error:
        assert (error.code, error.status) == (404, "NOT_FOUND"), error
    else:
        raise AssertionError("an unknown model was answered")
    assert f"models/{MODEL}" in [one.name for one in client.models.list()]
    assert client.models.get(model=MODEL).name == f"models/{MODEL}"
    assert client.models.count_tokens(model=MODEL, contents="Hi").total_tokens > 0


if sys.argv[1] == "errors":
    check_errors()
else:
    print(automatic() if sys.argv[1] == "automatic" else loop(sys.argv[1] == "stream"))
