"""OpenAI's and Gemini's APIs, served: tool loops, streams, limits, errors, keys and lists of models."""

import asyncio
import json

import httpx2
import pytest
from api_dialects import CHAT, GEMINI_API, KEY, MESSAGES, OTHERS, RESPONSES, TOOL, Said
from server_fakes import Says, client_of, get, lines_of, post, served_by
from test_server_billed import START, WORDS, meter

from cachecost.conversations.usage_shapes import usage_from
from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server import served_api
from cachecost.live.server.answers.agent import AgentAnswerer
from cachecost.live.server.answers.script import ScriptAnswerer, ScriptFile
from cachecost.live.server.bill import bill_of
from cachecost.live.server.state import faults_from
from cachecost.providers.usage import Usage

every = pytest.mark.parametrize("api", OTHERS, ids=lambda api: api.name)
SYSTEM = "You answer as briefly as the question allows. " * 600


def served_agent(calls=2, **others):
    return served_by(AgentAnswerer(calls), meter(), clock=SteppingClock(2.0, START), **others)


def begun(api, system=SYSTEM):
    return Said(system, [api.question("What is in README.md?")])


def usages(response):
    """The usage object in an answer, whatever its API."""
    told = response.json()
    return told.get("usage") or told["usageMetadata"]


def kinds(call):
    return [block["type"] for block in call.answer]


# --------------------------------------------------------------------------------------- loops and streams


@every
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_loop_of_tool_calls_comes_to_its_end(api, streams):
    served, said, seen = served_agent(), begun(api), []
    for _ in range(3):
        response = api.send(served, said, streams)
        seen.append(api.read(response))
        whole = api.send(served_agent(), said).json()
        api.go_on(said, whole, "A line.\n" * 300)
    assert [kinds(call) for call in seen] == [["tool_use"], ["tool_use"], ["text"]]
    assert [call.answer[0].get("input") for call in seen[:2]] == [{"path": "README.md"}] * 2
    assert seen[2].answer[0]["text"].startswith("Done after 2 tool calls.")
    assert [call.usage for call in seen] == [row.usage for row in served.meters.rows]
    reads = [call.usage.read for call in seen]
    assert reads[0] == 0 < reads[1] < reads[2]


@every
def test_a_stream_and_a_whole_answer_say_the_same(api):
    blocks = [{"type": "text", "text": WORDS[:900]}, {"type": "tool_use", "id": "t", "name": TOOL, "input": {"a": [1]}}]
    told = [
        api.read(api.send(served_by(Says(*blocks), meter(), clock=SteppingClock(2.0, START)), begun(api), streams))
        for streams in (False, True)
    ]
    assert told[0].answer == told[1].answer
    assert kinds(told[0]) == ["text", "tool_use"]
    assert told[0].usage == told[1].usage


def test_gemini_streams_an_array_without_events():
    response = post(served_agent(), GEMINI_API.body("", "", begun(GEMINI_API).turns, True),
                    "/v1beta/models/gemini-2.5-pro:streamGenerateContent", GEMINI_API.headers)  # fmt: skip
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.text)[-1]["candidates"][0]["finishReason"] == "STOP"


def test_a_chat_stream_has_a_usage_only_if_it_is_asked_for():
    said = begun(CHAT)
    body = {**CHAT.body(CHAT.model, "", said.turns, True), "stream_options": None}
    bare = post(served_agent(), body, CHAT.path, CHAT.headers).text
    assert '"usage"' not in bare
    assert bare.endswith("data: [DONE]\n\n")


@every
def test_ids_follow_from_the_call(api):
    def told(workspace):
        served = served_agent(first_token_s=0.0)
        return [post(served, api.body(api.model, "", begun(api).turns, False), api.path.format(model=api.model),
                     {**api.headers, **workspace}).text for _ in range(2)]  # fmt: skip

    assert told({}) == told({})
    assert len(set(told({}))) == 2


def test_a_custom_tool_is_called_with_a_text():
    named = {"name": "look_up", "description": WORDS[:40]}
    chat = CHAT.send(served_agent(), begun(CHAT), tools=[{"type": "custom", "custom": named}]).json()
    response = RESPONSES.send(served_agent(), begun(RESPONSES), tools=[{"type": "custom", **named}]).json()
    (call,) = chat["choices"][0]["message"]["tool_calls"]
    assert (call["type"], call["custom"]) == ("custom", {"name": "look_up", "input": "{}"})
    (item,) = response["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "look_up", "{}")
    said = begun(CHAT)
    CHAT.go_on(said, chat, "found")
    assert "Done after 1" in CHAT.send(served_agent(1), said).json()["choices"][0]["message"]["content"]


def test_thinking_of_a_script_is_told_apart():
    thought = {"type": "thinking", "thinking": "Let me see what is asked here. " * 4, "signature": "c2ln"}
    says = Says(thought, {"type": "text", "text": "It."})

    def told(api, **more):
        return api.send(served_by(says, meter(), clock=SteppingClock(2.0, START)), begun(api), **more).json()

    chat, response = told(CHAT), told(RESPONSES)
    shown = told(GEMINI_API, generationConfig={"thinkingConfig": {"includeThoughts": True}})
    hidden = told(GEMINI_API)
    assert chat["choices"][0]["message"]["reasoning_content"] == thought["thinking"]
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert [part.get("thought") for part in shown["candidates"][0]["content"]["parts"]] == [True, None]
    assert [part.get("thought") for part in hidden["candidates"][0]["content"]["parts"]] == [None]
    usage = chat["usage"]
    assert 10 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]
    for one in (shown, hidden):
        counts = one["usageMetadata"]
        assert counts["thoughtsTokenCount"] > 10
        assert (
            counts["candidatesTokenCount"] + counts["thoughtsTokenCount"] + counts["promptTokenCount"]
            == (counts["totalTokenCount"])
        )


@pytest.mark.parametrize("usage", [Usage(3, 0, 0, 0, 5), Usage(7, 1024, 0, 0, 1), Usage(0, 128, 300, 40, 9)])
def test_a_usage_says_in_each_form_what_it_said(usage):
    from cachecost.live.server.gemini_api import gemini_usage
    from cachecost.live.server.openai_api import chat_usage, responses_usage

    message = {"usage": usage.wire()}
    in_chat = Usage(usage.input_tokens, usage.read, usage.write, 0, usage.output_tokens)  # no TTL in Chat
    assert usage_from(responses_usage(message, 0), shape="openai") == usage
    assert usage_from(chat_usage(message, 0), shape="openai") == in_chat
    in_gemini = Usage(usage.input_tokens + usage.write, usage.read, 0, 0, usage.output_tokens)  # it has no writes
    assert usage_from(gemini_usage(message, 1), shape="gemini") == in_gemini


# ------------------------------------------------------------------------------------------------ limits


LIMITED = {
    "chat": lambda most: {"max_completion_tokens": most},
    "responses": lambda most: {"max_output_tokens": most},
    "gemini": lambda most: {"generationConfig": {"maxOutputTokens": most}},
}


def reason_of(told):
    if "choices" in told:
        return told["choices"][0]["finish_reason"]
    return told["candidates"][0]["finishReason"] if "candidates" in told else told["incomplete_details"]["reason"]


@every
@pytest.mark.parametrize("most", [16, 40, 150])
def test_no_more_than_the_limit_is_ever_billed(api, most):
    served = served_by(Says({"type": "text", "text": WORDS}), meter(), clock=SteppingClock(2.0, START))
    told = api.send(served, begun(api), **LIMITED[api.name](most)).json()
    assert reason_of(told) in ("length", "MAX_TOKENS", "max_output_tokens")
    (row,) = served.meters.rows
    assert most * 0.7 - 10 < row.usage.output_tokens <= most


REFUSED = [
    (CHAT, {"max_tokens": 0}, "max_tokens"),
    (CHAT, {"max_tokens": "9"}, "max_tokens"),
    (CHAT, {"n": 2}, "n"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": [{"role": "nobody"}]}, "messages.0.role"),
    (CHAT, {"stream": "yes"}, "stream"),
    (RESPONSES, {"max_output_tokens": 15}, "max_output_tokens"),
    (RESPONSES, {"input": []}, "input"),
    (RESPONSES, {"input": [{"type": None}]}, "input.0.type"),
    (RESPONSES, {"background": True}, "background"),
    (RESPONSES, {"prompt": {"id": "p"}}, "prompt"),
]


@pytest.mark.parametrize(("api", "more", "param"), REFUSED, ids=lambda value: str(getattr(value, "name", value))[:30])
def test_openai_names_the_field_that_it_refuses(api, more, param):
    served = served_agent()
    response = api.send(served, begun(api), **more)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"], error["code"]) == (
        400,
        "invalid_request_error",
        param,
        None,
    )
    assert (served.meters.rows, served.unreadable) == ([], 1)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"contents": []}, 400),
        ({"contents": [{"role": "nobody", "parts": []}]}, 400),
        ({"generationConfig": {"maxOutputTokens": 0}}, 400),
        ({"generation_config": {"candidate_count": 2}}, 400),
        ({"cachedContent": "cachedContents/1"}, 403),
    ],
)
def test_gemini_refuses_with_its_own_words(more, status):
    response = GEMINI_API.send(served_agent(), begun(GEMINI_API), **more)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, status)
    assert error["status"] == {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED"}[status]


# ---------------------------------------------------------------------------------------- errors and faults


def shape_of(api, response):
    """(status, what the SDK tells errors apart by) of an error in the API's own form."""
    error = response.json()["error"]
    if api is GEMINI_API:
        assert set(error) == {"code", "message", "status"}
        assert error["code"] == response.status_code
        return response.status_code, error["status"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status_code, error["code"] or error["type"]


@every
def test_an_unknown_model_is_a_404_and_is_recorded(api, tmp_path):
    with CallLog(tmp_path / "log.jsonl") as log:
        response = api.send(served_agent(log=log), begun(api), model="nobody-1")
    openai = (404, "model_not_found")
    assert shape_of(api, response) == ((404, "NOT_FOUND") if api is GEMINI_API else openai)
    assert "nobody-1" in response.json()["error"]["message"]
    (line,) = lines_of(log.path)
    assert (line["status"], line["host"], line["request"]["model"]) == (404, api.host, "nobody-1")


@every
def test_bodies_that_are_no_json_and_calls_without_a_key(api, monkeypatch):
    path = api.path.format(model=api.model)
    bad = post(served_agent(), None, path, api.headers, content=b"{")
    bare = post(served_agent(), {}, path, {})
    monkeypatch.setattr(served_api, "LARGEST", 1000)
    large = api.send(served_agent(), begun(api))
    shapes = [shape_of(api, response) for response in (bad, bare, large)]
    if api is GEMINI_API:
        assert shapes == [(400, "INVALID_ARGUMENT"), (403, "PERMISSION_DENIED"), (400, "INVALID_ARGUMENT")]
    else:
        invalid = "invalid_request_error"
        assert shapes == [(400, invalid), (401, "invalid_api_key"), (413, invalid)]


FAULTS = {
    "429": ((429, "rate_limit_exceeded"), (429, "RESOURCE_EXHAUSTED")),
    "500": ((500, "server_error"), (500, "INTERNAL")),
    "529": ((503, "server_error"), (503, "UNAVAILABLE")),
}


@every
@pytest.mark.parametrize("kind", FAULTS)
def test_an_injected_error_has_the_form_of_the_api(api, kind, tmp_path):
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_agent(faults=faults_from([f"1:{kind}"]), log=log)
        response = api.send(served, begun(api))
        assert api.send(served, begun(api)).status_code == 200
    assert shape_of(api, response) == FAULTS[kind][api is GEMINI_API]
    assert ("retry-after" in response.headers) is (kind == "429")
    assert [line["status"] for line in lines_of(log.path)] == [response.status_code, 200]
    assert len(served.meters.rows) == 1


@every
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
def test_a_cut_answer_and_garbage_are_billed(api, streams):
    served = served_agent(faults=faults_from(["1:cut", "2:garbage"]))
    with pytest.raises(httpx2.RemoteProtocolError):
        api.send(served, begun(api), streams)
    response = api.send(served, begun(api), streams)
    with pytest.raises(ValueError):
        json.loads(response.content)
    assert [row.usage.total_input > 0 for row in served.meters.rows] == [True, True]


def test_a_retry_that_openai_s_sdk_counts_gets_what_the_script_says_next():
    told = {"format": 1, "replies": [{"error": {"status": 529, "type": "overloaded_error"}}, {"text": "It."}]}
    served = served_by(ScriptAnswerer(ScriptFile.model_validate(told)), meter(), clock=SteppingClock(2.0, START))
    body = CHAT.body(CHAT.model, "", begun(CHAT).turns, False)
    first, second = (
        post(served, body, CHAT.path, {**CHAT.headers, "x-stainless-retry-count": count}) for count in ("0", "1")
    )
    assert shape_of(CHAT, first) == (503, "server_error")
    assert second.json()["choices"][0]["message"]["content"] == "It."


def test_calls_at_once_are_billed_one_after_the_other():
    """Each with its own id, whatever their order."""

    def told(order):
        async def run():
            async with client_of(served) as client:
                return await asyncio.gather(*(client.post(path, headers=head, json=body) for path, head, body in order))

        served = served_agent()
        ids = {str(answer.json().get("id") or answer.json().get("responseId")) for answer in asyncio.run(run())}
        return ids, bill_of(served.meters).total.calls, served.meters.rows

    calls = [
        (api.path.format(model=api.model), api.headers, api.body(api.model, SYSTEM, [api.question(word)], False))
        for api in OTHERS
        for word in ("one", "two", "two")
    ]
    forth, back = told(calls), told(calls[::-1])
    assert forth[0] == back[0]
    assert len(forth[0]) == forth[1] == back[1] == len(calls)
    starts = [row.start for row in forth[2]]
    assert starts == sorted(set(starts))


# -------------------------------------------------------------------------------------- stored responses


def test_a_stored_response_is_continued_as_if_all_was_sent(tmp_path):
    whole, short = served_agent(), served_agent()
    said = begun(RESPONSES)
    first = RESPONSES.send(whole, said).json()
    RESPONSES.go_on(said, first, "A line.")
    RESPONSES.send(whole, said)
    stored = RESPONSES.send(short, begun(RESPONSES)).json()
    results = RESPONSES.extend(stored, "A line.")[len(stored["output"]) :]
    RESPONSES.send(short, Said(SYSTEM, results), previous_response_id=stored["id"])
    assert [row.usage for row in short.meters.rows] == [row.usage for row in whole.meters.rows]


def test_what_is_not_stored_cannot_be_continued():
    served, said = served_agent(), begun(RESPONSES)
    kept = RESPONSES.send(served, said).json()["id"]
    not_kept = RESPONSES.send(served, said, store=False).json()["id"]
    body = RESPONSES.body(RESPONSES.model, "", said.turns, False)
    other = {"authorization": "Bearer another-key-0123456"}
    refused = [
        RESPONSES.send(served, said, previous_response_id=not_kept),
        RESPONSES.send(served, said, previous_response_id=9),
        post(served, {**body, "previous_response_id": kept}, RESPONSES.path, other),
    ]
    shapes = [(400, "previous_response_not_found")] * 3
    assert [shape_of(RESPONSES, response) for response in refused] == shapes
    assert RESPONSES.send(served, said, conversation="conv_1").status_code == 404
    assert RESPONSES.send(served, said, previous_response_id=kept).status_code == 200


# ----------------------------------------------------------------------------------- keys, hosts, models


@every
def test_the_key_is_stored_nowhere(api, tmp_path):
    with CallLog(tmp_path / "log.jsonl") as log:
        response = api.send(served_agent(log=log), Said("", [api.question(f"my key is {KEY}")]))
    assert KEY not in log.path.read_text() + response.text
    (line,) = lines_of(log.path)
    assert line["api"] == api.name
    assert len(line["workspace"]) == 8


def test_a_key_in_gemini_s_address_counts_and_is_not_stored(tmp_path):
    body = GEMINI_API.body("", "", [GEMINI_API.question(f"my key is {KEY}")], False)
    path = f"{GEMINI_API.path.format(model=GEMINI_API.model)}?key={KEY}"
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_agent(log=log)
        response = post(served, body, path, {})
        GEMINI_API.send(served, Said("", [GEMINI_API.question("the same key")]))
    assert response.status_code == 200
    assert KEY not in log.path.read_text() + response.text
    assert len({line["workspace"] for line in lines_of(log.path)}) == 1


@pytest.mark.parametrize(
    ("chosen", "model", "host"),
    [
        ("anthropic", "gpt-5.2", "openai"),
        ("deepseek", "deepseek-v4-pro", "deepseek"),
        ("deepseek", "gpt-5.2", "openai"),
        ("anthropic", "claude-sonnet-4-5", None),
    ],
)
def test_a_call_is_billed_by_the_host_that_was_chosen_if_it_has_the_model(chosen, model, host, tmp_path):
    from cachecost.live.server.state import Meter
    from cachecost.providers.prices import PriceBook
    from cachecost.providers.rules import RuleBook
    from cachecost.simulation.setup import ReplaySetup

    bill = Meter(ReplaySetup(RuleBook(), PriceBook.load(), chosen, "tiktoken"))
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(AgentAnswerer(1), bill, clock=SteppingClock(2.0, START), log=log)
        response = CHAT.send(served, begun(CHAT), model=model)
    (line,) = lines_of(log.path)
    assert response.status_code == (200 if host else 404)
    assert line["host"] == (host or "openai")


def test_tokens_are_counted_at_no_charge():
    served = served_agent()
    said = begun(RESPONSES)
    body = RESPONSES.body(RESPONSES.model, SYSTEM, said.turns, False)
    counted = post(served, body, "/v1/responses/input_tokens", RESPONSES.headers).json()
    assert counted == {"object": "response.input_tokens", "input_tokens": counted["input_tokens"]}
    contents = GEMINI_API.body("", SYSTEM, begun(GEMINI_API).turns, False)
    total = post(served, contents, "/v1beta/models/gemini-2.5-pro:countTokens", GEMINI_API.headers).json()
    assert served.meters.rows == []
    RESPONSES.send(served, said)
    GEMINI_API.send(served, begun(GEMINI_API))
    assert [row.usage.total_input for row in served.meters.rows] == [counted["input_tokens"], total["totalTokens"]]


@pytest.mark.parametrize("path", ["/v1/models", "/v1beta/models"])
def test_the_lists_of_models_have_no_ids_of_our_own(path):
    openai = get(served_agent(), "/v1/models", CHAT.headers).json()
    ids = [one["id"] for one in openai["data"]]
    assert {"gpt-5.2", "gpt-5.6-sol"} <= set(ids)
    assert not [name for name in ids if name.endswith("-explicit")]
    gemini = get(served_agent(), path, GEMINI_API.headers).json()
    assert "models/gemini-2.5-pro" in [one["name"] for one in gemini["models"]]
    found = get(served_agent(), f"{path}/gemini-2.5-pro", GEMINI_API.headers).json()
    assert found in gemini["models"]
    assert get(served_agent(), "/v1/models/gpt-5.2", CHAT.headers).json() in openai["data"]
    assert shape_of(CHAT, get(served_agent(), "/v1/models/gpt-0", CHAT.headers)) == (404, "model_not_found")
    assert shape_of(GEMINI_API, get(served_agent(), f"{path}/no", GEMINI_API.headers)) == (404, "NOT_FOUND")
    assert get(served_agent(), "/v1/models", MESSAGES.headers).json()["data"] == []  # the state's own list


def test_a_method_of_gemini_that_is_not_served():
    response = post(served_agent(), {}, "/v1beta/models/gemini-2.5-pro:embedContent", GEMINI_API.headers)
    assert shape_of(GEMINI_API, response) == (404, "NOT_FOUND")
