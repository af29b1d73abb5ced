"""Requests and answers of OpenAI's APIs as Messages bodies: what shapes the prompt stays, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from cachecost.conversations.readers.apis.openai import (
    from_chat,
    from_chat_message,
    from_responses,
    from_responses_output,
)
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage, Request

Body = dict[str, Any]
MODEL = "gpt-5.6-sol"
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def says(role: str, content: Any, **more: Any) -> Body:
    return {"role": role, "content": content, **more}


def use(called: str, name: str, arguments: Any) -> Body:
    return {"type": "tool_use", "id": called, "name": name, "input": arguments}


def result(called: str, content: Any, **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": called, "content": content, **more}


def chat(*messages: Any, **more: Any) -> Body:
    return from_chat({"model": MODEL, "messages": list(messages), **more})


def responses(given: Any, **more: Any) -> Body:
    return from_responses({"model": MODEL, "input": given, **more})


def messages_of(*messages: Any) -> Any:
    return chat(*messages)["messages"]


def rendered(body: Body) -> Request:
    """The request that the simulator makes of a body: it must be one."""
    return Intake(keep_content=True).body(body)


# ------------------------------------------------------------------------------------------------ chat


CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
OTHER = {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
TALK = [
    says("system", "Be brief."),
    says("user", "Weather in Rome?"),
    says("assistant", None, tool_calls=[CALL, OTHER]),
    {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
    {"role": "tool", "tool_call_id": "call_2", "content": "rain"},
    says("assistant", "Sun."),
    says("user", "Thanks."),
]
MESSAGES = [
    says("user", [text("Weather in Rome?")]),
    says("assistant", [use("call_1", "weather", {"city": "Rome"}), use("call_2", "weather", {})]),
    says("user", [result("call_1", "sun"), result("call_2", "rain")]),
    says("assistant", [text("Sun.")]),
    says("user", [text("Thanks.")]),
]


def test_a_chat_with_tools() -> None:
    body = chat(*TALK, max_completion_tokens=100, temperature=0.5, stream=True)
    assert body == {"model": MODEL, "max_tokens": 100, "system": [text("Be brief.")], "messages": MESSAGES}
    request = rendered(body)
    assert (request.model, request.thread.length, request.params) == (MODEL, 5, {"max_tokens": 100})


def test_instructions_at_the_start_are_the_system_prompt_and_later_ones_stay() -> None:
    body = chat(
        says("system", "one"),
        says("developer", [text("two")]),
        says("user", "go"),
        says("developer", "three"),
        says("system", "four"),
    )
    assert body["system"] == [text("one"), text("two")]
    assert body["messages"] == [
        says("user", [text("go")]),
        says("system", [text("three")]),
        says("system", [text("four")]),
    ]
    assert rendered(body).thread.length == 3


def test_a_request_without_instructions_has_no_system_prompt() -> None:
    assert "system" not in chat(says("user", "go"))
    assert chat()["messages"] == []


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (text("hi"), text("hi")),
        ({"type": "refusal", "refusal": "no"}, text("no")),
        (
            {"type": "image_url", "image_url": {"url": PIXEL}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}, "detail": "low"},
        ),
        (
            {"type": "image_url", "image_url": "https://example.com/a.png"},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                "title": "a.pdf",
            },
        ),
        (
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ),
    ],
)
def test_the_parts_of_a_message(part: Body, block: Body) -> None:
    for breakpoint in ({}, {"cache_control": LONG}):
        assert messages_of(says("user", [{**part, **breakpoint}])) == [says("user", [{**block, **breakpoint}])]
    assert messages_of(says("user", [{**part, "cache_control": None}])) == [says("user", [block])]


def test_what_an_assistant_says() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert from_chat_message(says("assistant", "", tool_calls=[CALL])) == [use("call_1", "weather", {"city": "Rome"})]
    assert from_chat_message(says("assistant", None)) == []
    assert from_chat_message(says("assistant", None, refusal="no")) == [text("no")]
    assert from_chat_message(says("assistant", "yes", reasoning_content="hm")) == [
        {"type": "thinking", "thinking": "hm"},
        text("yes"),
    ]
    assert from_chat_message(says("assistant", "yes", thinking_blocks=[thought], reasoning_content="hm")) == [
        thought,
        text("yes"),
    ]
    assert from_chat_message(says("assistant", [text("a"), text("b", cache_control=SHORT)])) == [
        text("a"),
        text("b", cache_control=SHORT),
    ]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
    ],
)
def test_arguments_that_are_no_object_stay_as_the_model_wrote_them(arguments: Any, read: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert from_chat_message(says("assistant", None, tool_calls=[call])) == [use("c", "f", read)]


def test_calls_of_old_and_of_other_kinds() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    odd = {"id": "o", "type": "computer", "action": "click"}
    flat = {"id": "f", "name": "g", "arguments": "{}"}
    assert from_chat_message(says("assistant", None, tool_calls=[custom, odd, flat])) == [
        use("c", "shell", "ls"),
        odd,
        use("f", "g", {}),
    ]
    old = says("assistant", None, function_call={"name": "f", "arguments": "{}"})
    returned = says("function", "5", name="f")
    assert messages_of(old, returned) == [
        says("assistant", [use("f", "f", {})]),
        says("user", [result("f", "5")]),
    ]


def test_breakpoints_of_gateways_stay_where_they_are() -> None:
    body = chat(
        says("system", [text("long"), text("longer", cache_control=LONG)]),
        says("user", "go", cache_control=SHORT),
        says("assistant", "calling", tool_calls=[CALL], cache_control=SHORT),
        {"role": "tool", "tool_call_id": "call_1", "content": [text("sun", cache_control=SHORT)]},
        {"role": "tool", "tool_call_id": "call_2", "content": "rain", "cache_control": SHORT},
        tools=[{"type": "function", "function": {"name": "weather"}, "cache_control": SHORT}],
    )
    assert body["system"][1] == text("longer", cache_control=LONG)
    assert body["messages"] == [
        says("user", [text("go", cache_control=SHORT)]),
        says(
            "assistant",
            [text("calling"), use("call_1", "weather", {"city": "Rome"}) | {"cache_control": SHORT}],
        ),
        says(
            "user",
            [result("call_1", [text("sun", cache_control=SHORT)]), result("call_2", "rain", cache_control=SHORT)],
        ),
    ]
    assert [
        (breakpoint.layer.value, breakpoint.index, breakpoint.ttl) for breakpoint in rendered(body).breakpoints
    ] == [
        ("tools", 0, "5m"),
        ("system", 1, "1h"),
        ("messages", 0, "5m"),
        ("messages", 1, "5m"),
        ("messages", 0, "5m"),
        ("messages", 1, "5m"),
    ]


@pytest.mark.parametrize(
    ("options", "breakpoint"),
    [({}, SHORT), ({"prompt_cache_options": {"ttl": "30m"}}, SHORT), ({"prompt_cache_options": {"ttl": "12h"}}, LONG)],
)
def test_openais_breakpoints_are_breakpoints_and_no_part_of_the_block(options: Body, breakpoint: Body) -> None:
    point = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    body = chat(says("user", [text("go", **point)]), **options)
    assert body["messages"] == [says("user", [text("go", cache_control=breakpoint)])]
    body = responses([says("user", [{"type": "input_text", "text": "go", **point}])], **options)
    assert body["messages"] == [says("user", [text("go", cache_control=breakpoint)])]


POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}


@pytest.mark.parametrize(
    ("model", "options", "ours"),
    [
        ("gpt-6.1-sol", {}, "gpt-6.1-sol"),
        ("gpt-6.1-sol", {"prompt_cache_options": None}, "gpt-6.1-sol"),
        ("gpt-6.1-sol", {"prompt_cache_options": {"mode": "implicit"}}, "gpt-6.1-sol"),
        ("gpt-6.1-sol", {"prompt_cache_options": {"mode": "explicit"}}, "gpt-6.1-sol-explicit"),
        ("gpt-6.1-sol-explicit", {"prompt_cache_options": {"mode": "explicit"}}, "gpt-6.1-sol-explicit"),
        ("openai/gpt-5.6", {"prompt_cache_options": {"mode": "explicit"}}, "openai/gpt-5.6-explicit"),
        ("claude-opus-4-6", {"prompt_cache_options": {"mode": "explicit"}}, "claude-opus-4-6"),
        (None, {"prompt_cache_options": {"mode": "explicit"}}, None),
    ],
)
def test_the_model_of_a_request_in_explicit_mode_is_the_one_that_caches_so(
    model: str | None, options: Body, ours: str | None
) -> None:
    assert from_chat({"model": model, "messages": [says("user", "go")], **options})["model"] == ours
    assert from_responses({"model": model, "input": "go", **options})["model"] == ours


@pytest.mark.parametrize(
    ("mode", "part", "expected"),
    [
        ({}, {}, None),
        ({}, POINT, SHORT),
        ({"ttl": "12h"}, POINT, LONG),
        ({"mode": "implicit"}, POINT, SHORT),
        ({"mode": "explicit"}, POINT, None),
        ({}, {"cache_control": SHORT}, None),  # a gateway's: the other hosts place none of their own
    ],
)
def test_breakpoints_of_the_client_leave_the_implicit_one_in_place(
    mode: Body, part: Body, expected: Body | None
) -> None:
    options = {"prompt_cache_options": mode}
    body = chat(says("system", [text("be brief", **part)]), says("user", "go"), **options)
    assert body.get("cache_control") == expected
    items = [says("developer", [{"type": "input_text", "text": "be brief", **part}]), says("user", "go")]
    assert responses(items, **options).get("cache_control") == expected


FUNCTION = {"name": "weather", "description": "Tells it.", "parameters": SCHEMA, "strict": True}
TOOL = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA, "strict": True}


@pytest.mark.parametrize(
    ("tool", "ours"),
    [
        ({"type": "function", "function": FUNCTION}, TOOL),
        ({"type": "function", "function": {**FUNCTION, "cache_control": SHORT}}, {**TOOL, "cache_control": SHORT}),
        ({"type": "function", "function": {"name": "now", "strict": None}}, {"name": "now"}),
        ({"type": "custom", "custom": {"name": "sql"}}, {"type": "custom", "name": "sql"}),
        ({"type": "web_search_20250305", "name": "web_search"}, {"type": "web_search_20250305", "name": "web_search"}),
        (TOOL, TOOL),
    ],
)
def test_tools(tool: Body, ours: Body) -> None:
    body = chat(says("user", "go"), tools=[tool])
    assert (body["tools"], list(body["tools"][0])) == ([ours], list(ours))


def test_tools_of_responses_stand_flat() -> None:
    search = {"type": "web_search", "search_context_size": "low"}
    deferred = {"type": "function", "name": "rare", "parameters": SCHEMA, "defer_loading": True}
    body = responses("go", tools=[{"type": "function", **FUNCTION}, search, deferred])
    rare = {"name": "rare", "input_schema": SCHEMA, "defer_loading": True}
    assert body["tools"] == [TOOL, search, rare]
    assert len(rendered(body).tools.blocks) == 2


def test_functions_of_old() -> None:
    body = chat(says("user", "go"), functions=[FUNCTION], function_call={"name": "weather"})
    assert (body["tools"], body["tool_choice"]) == ([TOOL], {"type": "tool", "name": "weather"})
    assert chat(says("user", "go"), functions=[FUNCTION], function_call="none")["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("told", "parallel", "ours"),
    [
        (None, None, None),
        (None, True, None),
        ("auto", None, {"type": "auto"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ({"type": "function", "function": {"name": "weather"}}, None, {"type": "tool", "name": "weather"}),
        ({"type": "function", "name": "weather"}, None, {"type": "tool", "name": "weather"}),
        ({"type": "custom", "custom": {"name": "sql"}}, None, {"type": "tool", "name": "sql"}),
        ({"type": "file_search"}, None, {"type": "tool", "name": "file_search"}),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, None, {"type": "any"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}, None, {"type": "auto"}),
        ({"type": "any"}, None, {"type": "any"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choice(told: Any, parallel: Any, ours: Any) -> None:
    more = {"tools": [{"type": "function", **FUNCTION}], "tool_choice": told, "parallel_tool_calls": parallel}
    assert chat(says("user", "go"), **more).get("tool_choice") == responses("go", **more).get("tool_choice") == ours


def test_parallel_calls_mean_nothing_without_tools() -> None:
    assert "tool_choice" not in chat(says("user", "go"), parallel_tool_calls=False)


def test_effort_and_format_shape_the_prompt() -> None:
    wanted = {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    schema = {"name": "city", "schema": SCHEMA, "strict": True}
    body = chat(
        says("user", "go"), reasoning_effort="high", response_format={"type": "json_schema", "json_schema": schema}
    )
    assert body["output_config"] == wanted
    format_ = {"format": {"type": "json_schema", **schema}}
    assert responses("go", reasoning={"effort": "high"}, text=format_)["output_config"] == wanted
    assert chat(says("user", "go"), response_format={"type": "json_object"})["output_config"] == {
        "format": {"type": "json_object"}
    }
    for plain in (chat(says("user", "go"), response_format={"type": "text"}), responses("go", text={"format": None})):
        assert "output_config" not in plain


def test_what_a_gateway_takes_of_the_messages_api_is_kept() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    more = {"thinking": thinking, "speed": "fast", "cache_control": SHORT, "output_config": {"effort": "low"}}
    body = chat(says("user", "go"), reasoning_effort="high", max_tokens=9, top_p=1, user="somebody", **more)
    assert body == {**more, "model": MODEL, "max_tokens": 9, "messages": [says("user", [text("go")])]}
    assert rendered(body).automatic == "5m"


# ------------------------------------------------------------------------------------------- responses


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}, {"type": "summary_text", "text": "so"}],
    "encrypted_content": "gAAA",
}
THOUGHT = {"type": "thinking", "thinking": "hm\n\nso", "signature": "gAAA"}
FUNCTION_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Sun.", "annotations": []}],
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def returned(called: str, output: Any, kind: str = "function_call_output") -> Body:
    return {"type": kind, "call_id": called, "output": output}


def test_items_become_the_blocks_of_messages() -> None:
    items = [
        says("developer", "Be brief."),
        says("user", [{"type": "input_text", "text": "Weather in Rome?"}]),
        REASONING,
        FUNCTION_CALL,
        {**FUNCTION_CALL, "call_id": "call_2"},
        returned("call_1", "sun"),
        returned("call_2", [{"type": "input_text", "text": "rain"}, {"type": "input_image", "image_url": PIXEL}]),
        SAID,
        {"type": "message", **says("user", "Thanks.")},
    ]
    body = responses(items, instructions="You are a guide.", max_output_tokens=100, store=False)
    assert body == {
        "model": MODEL,
        "max_tokens": 100,
        "instruction_blocks": 1,
        "system": [text("You are a guide."), text("Be brief.")],
        "messages": [
            says("user", [text("Weather in Rome?")]),
            says("assistant", [THOUGHT, use("call_1", "weather", {}), use("call_2", "weather", {})]),
            says("user", [result("call_1", "sun"), result("call_2", [text("rain"), SHOWN])]),
            says("assistant", [text("Sun.")]),
            says("user", [text("Thanks.")]),
        ],
    }
    assert rendered(body).thread.length == 5


def test_an_input_may_be_a_text() -> None:
    assert responses("Weather?") == {"model": MODEL, "messages": [says("user", [text("Weather?")])]}
    assert from_responses({"model": MODEL, "prompt": {"id": "pmpt_1"}}) == {"model": MODEL, "messages": []}


def test_instructions_may_be_items() -> None:
    body = responses("go", instructions=[says("developer", [{"type": "input_text", "text": "Be brief."}])])
    assert (body["system"], body["messages"]) == ([text("Be brief.")], [says("user", [text("go")])])
    assert body["instruction_blocks"] == 1


def test_what_follows_an_answer_is_the_answer_as_it_was_sent_back() -> None:
    """The next request repeats the output's items: the same blocks, or no prefix would ever be the same."""
    output = [REASONING, SEARCH, SAID, FUNCTION_CALL]
    body = responses([says("user", "go"), *output, returned("call_1", "sun")])
    assert from_responses_output(output) == body["messages"][1]["content"]
    assert from_responses_output(output) == [THOUGHT, SEARCH, text("Sun."), use("call_1", "weather", {})]


def test_two_messages_of_the_user_stay_two_and_results_are_none_of_them() -> None:
    body = responses([says("user", "one"), says("user", "two"), returned("c", "3"), says("user", "four")])
    assert [len(message["content"]) for message in body["messages"]] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("sun", "sun"),
        (None, []),
        ([{"type": "input_text", "text": "sun"}], "sun"),
        (
            {"type": "computer_screenshot", "file_id": "f"},
            [{"type": "image", "source": {"type": "file", "file_id": "f"}}],
        ),
        ({"type": "computer_screenshot", "image_url": PIXEL}, [SHOWN]),
        ([{"type": "image_url", "image_url": {"url": PIXEL}}], [SHOWN]),
        ({"stdout": "a"}, '{"stdout": "a"}'),
        ([{"stdout": "a"}], '[{"stdout": "a"}]'),
    ],
)
def test_what_a_tool_returned(output: Any, content: Any) -> None:
    for kind in ("function_call_output", "custom_tool_call_output", "shell_call_output"):
        assert responses([returned("c", output, kind)])["messages"] == [says("user", [result("c", content)])]


def test_kinds_of_items_that_are_not_known_stay_as_they_are() -> None:
    items = [SEARCH, {"type": "compaction", "encrypted_content": "gA"}, {"id": "msg_9"}]
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
    assert responses([*items, custom])["messages"] == [
        says("assistant", [*items[:2], {"type": "item_reference", "id": "msg_9"}, use("c", "shell", "ls")])
    ]


# --------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "messages: expected an array of messages; got nothing"),
        ({"messages": ["go"]}, "messages.0: expected a message object; got 'go'"),
        (
            {"messages": [says("usr", "go")]},
            "messages.0.role: expected one of assistant, developer, function, system, tool, user; got 'usr'"
            " (did you mean 'user'?)",
        ),
        ({"messages": [says("user", 5)]}, "messages.0.content: expected a text or an array of parts; got 5"),
        ({"messages": [says("user", ["go"])]}, "messages.0.content.0: expected a content part object; got 'go'"),
        ({"messages": [says("user", [{}])]}, "messages.0.content.0.type: expected the part's type; got nothing"),
        ({"messages": [says("user", [text(5)])]}, "messages.0.content.0.text: expected a text; got 5"),  # type: ignore[arg-type]
        (
            {"messages": [says("user", [{"type": "image_url"}])]},
            "messages.0.content.0.image_url: expected an image's URL; got nothing",
        ),
        (
            {"messages": [says("user", "go"), says("assistant", None, tool_calls="f")]},
            "messages.1.tool_calls: expected an array of calls; got 'f'",
        ),
        (
            {"messages": [says("assistant", None, tool_calls=[5])]},
            "messages.0.tool_calls.0: expected a call object; got 5",
        ),
        ({"messages": [], "tools": {}}, "tools: expected an array of tools; got an object"),
        ({"messages": [], "tools": [5]}, "tools.0: expected a tool object; got 5"),
        (
            {"messages": [], "tools": [], "tool_choice": "always"},
            "tool_choice: expected auto, none, required or an object; got 'always'",
        ),
    ],
)
def test_what_is_no_chat_request(body: Body, message: str) -> None:
    with pytest.raises(NotAMessage) as caught:
        from_chat(body)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "input: expected a text or an array of items; got nothing"),
        ({"input": [5]}, "input.0: expected an item object; got 5"),
        ({"input": [{"content": "go"}]}, "input.0.type: expected the item's type; got nothing"),
        (
            {"input": [says("tool", "go")]},
            "input.0.role: expected one of assistant, developer, system, user; got 'tool'",
        ),
        (
            {"input": [says("user", [{"type": "input_text"}])]},
            "input.0.content.0.text: expected a text; got nothing",
        ),
        ({"input": "go", "instructions": 5}, "instructions: expected a text or an array of parts; got 5"),
    ],
)
def test_what_is_no_responses_request(body: Body, message: str) -> None:
    with pytest.raises(NotAMessage) as caught:
        from_responses(body)
    assert str(caught.value) == message


def test_what_is_no_answer() -> None:
    with pytest.raises(NotAMessage, match=r"^message\.content: expected a text or an array of parts; got 5$"):
        from_chat_message(says("assistant", 5))
    with pytest.raises(NotAMessage, match=r"^output: expected an array of items; got nothing$"):
        from_responses_output(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "kept"),
    [({"edits": []}, {"context_management": {"edits": []}}), ([{"type": "compaction", "compact_threshold": 9}], {})],
    ids=["ours, by a gateway", "OpenAI's own"],
)
def test_context_management_is_kept_where_it_is_the_messages_apis(told: Any, kept: Body) -> None:
    found = from_responses({"model": MODEL, "input": "Which way?", "context_management": told})
    assert {name: found[name] for name in found if name == "context_management"} == kept
    assert Intake().body({"max_tokens": 9, **found}).model == MODEL
