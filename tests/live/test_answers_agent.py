"""The small agent: it calls what does no harm, as often as it was told, and always says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cachecost.live.server.answers import answerer_from, notes_of
from cachecost.live.server.answers.agent import THOUGHT, harmless_call
from cachecost.live.server.model import ClientCall, ModelAnswer

PATH = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
SHELL = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
    "required": ["command"],
}


def tool(name: str, schema: dict[str, Any] = PATH, **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": schema, **fields}


READ, WRITE, BASH = tool("Read"), tool("Write"), tool("Bash", SHELL)
HELLO = {"role": "user", "content": "Hello"}


def ask(messages: list[Any], how: str = "agent", **fields: Any) -> ModelAnswer:
    turn = sum(message["role"] == "assistant" for message in messages)
    body = {"model": "m", "max_tokens": 9, "messages": messages, **fields}
    answer = answerer_from(how).answer(ClientCall("msg_1", body, "w", 0.0, turn))
    assert isinstance(answer, ModelAnswer)
    return answer


def loop(how: str, **fields: Any) -> list[ModelAnswer]:
    """All answers of a turn, each call answered by a result."""
    messages: list[Any] = [HELLO]
    answers: list[ModelAnswer] = []
    while not answers or answers[-1].stop_reason == "tool_use":
        answers.append(ask(messages, how, **fields))
        messages += [{"role": "assistant", "content": list(answers[-1].content)}]
        calls = [block for block in answers[-1].content if block["type"] == "tool_use"]
        messages += [{"role": "user", "content": [_result(call) for call in calls]}]
    return answers


def _result(call: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}


@pytest.mark.parametrize(("how", "calls"), [("agent", 2), ("agent:0", 0), ("agent:3", 3)])
def test_it_makes_so_many_calls_and_then_says_a_line(how: str, calls: int) -> None:
    answers = loop(how, tools=[READ, BASH])
    assert [answer.stop_reason for answer in answers] == ["tool_use"] * calls + ["end_turn"]
    assert answers[-1].content[0]["type"] == "text"
    names = [answer.content[0]["name"] for answer in answers[:-1]]
    assert names == ["Read", "Bash", "Read"][:calls]
    assert len({answer.content[0]["id"] for answer in answers[:-1]}) == calls


def test_the_next_human_turn_counts_anew_and_a_reminder_beside_a_result_is_none() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    before = [HELLO, {"role": "assistant", "content": [use]}, {"role": "user", "content": [_result(use)]}]
    with_text = [*before[:-1], {"role": "user", "content": [_result(use), {"type": "text", "text": "<reminder>"}]}]
    assert ask(before, "agent:1", tools=[READ]).stop_reason == "end_turn"
    assert ask(with_text, "agent:1", tools=[READ]).stop_reason == "end_turn"
    spoken = [*before, {"role": "assistant", "content": "Done"}, {"role": "user", "content": "More"}]
    assert ask(spoken, "agent:1", tools=[READ]).stop_reason == "tool_use"


def test_the_same_call_gets_the_same_answer_and_another_one_another_id() -> None:
    one, again = (ask([HELLO], tools=[READ]) for _ in range(2))
    assert one == again
    other = ask([{"role": "user", "content": "Hallo"}], tools=[READ])
    assert one.content[0]["id"] != other.content[0]["id"]
    assert one.content[0]["id"].startswith("toolu_01")


HARMLESS = [
    ("Read", {"file_path": "README.md"}),
    ("read_file", {"file_path": "README.md"}),
    ("mcp__filesystem__read_text_file", {"file_path": "README.md"}),
    ("list_directory", {"file_path": "."}),
    ("get_weather", {"file_path": "README.md"}),
    ("WebSearch", {"file_path": "README.md"}),
    ("add", {"file_path": "README.md"}),
    ("add_two_numbers", {"file_path": "README.md"}),
    ("get_order", {"file_path": "README.md"}),
    ("lookup_order", {"file_path": "README.md"}),
    ("listOrderComments", {"file_path": "."}),
    ("find_book", {"file_path": "README.md"}),
]
HARMFUL = [
    "Write",
    "Edit",
    "MultiEdit",
    "TodoWrite",
    "NotebookEdit",
    "str_replace_based_edit_tool",
    "apply_patch",
    "delete_file",
    "deleteFile",
    "get_or_create_user",
    "search_and_replace",
    "read_then_delete",
    "add_user",
    "git_add",
    "mcp__github__create_issue",
    "mcp__read__delete",
    "send_email",
    "move",
    "kill_process",
    "Task",
    "run_query",
    "order_status",
    "post_status",
    "check_out_book",
    "get_order_and_charge",
    "search_book_delete",
    "execute_sql",
    "",
]


@pytest.mark.parametrize(("name", "arguments"), HARMLESS)
def test_what_only_looks_is_called(name: str, arguments: dict[str, Any]) -> None:
    call = harmless_call(tool(name))
    assert call is not None and (call.name, call.arguments) == (name, arguments)


@pytest.mark.parametrize("name", HARMFUL)
def test_what_may_change_something_is_never_called(name: str) -> None:
    assert harmless_call(tool(name)) is None
    assert ask([HELLO], tools=[tool(name)]).stop_reason == "end_turn"


@pytest.mark.parametrize(
    "name", ["Bash", "bash", "shell", "run_command", "execute_command", "run_shell_command", "RunTerminalCommand"]
)
def test_a_shell_prints_a_word_and_nothing_else(name: str) -> None:
    call = harmless_call(tool(name, SHELL))
    assert call is not None and call.arguments == {"command": "echo cachecost"}


def test_a_shell_that_takes_a_list_gets_one() -> None:
    schema = {
        "type": "object",
        "properties": {"command": {"type": "array", "items": {"type": "string"}}},
        "required": ["command"],
    }
    call = harmless_call(tool("shell", schema))
    assert call is not None and call.arguments == {"command": ["echo", "cachecost"]}


@pytest.mark.parametrize(
    "schema",
    [
        PATH,
        {
            **SHELL,
            "properties": {**SHELL["properties"], "code": {"default": "rm -rf /"}},
            "required": ["command", "code"],
        },
    ],
    ids=["no command", "more than a command"],
)
def test_a_shell_of_another_kind_is_left_alone(schema: dict[str, Any]) -> None:
    assert harmless_call(tool("Bash", schema)) is None


def test_a_reader_whose_first_action_is_to_delete_is_left_alone() -> None:
    schema = {"type": "object", "properties": {"action": {"enum": ["delete", "show"]}}, "required": ["action"]}
    assert harmless_call(tool("file_info", schema)) is None
    schema["properties"]["action"]["enum"].reverse()
    assert harmless_call(tool("file_info", schema)) is not None


def test_anthropics_own_shell_has_no_schema_and_other_typed_tools_are_the_servers() -> None:
    call = harmless_call({"type": "bash_20250124", "name": "bash"})
    assert call is not None and call.arguments == {"command": "echo cachecost"}
    for kind in ("web_search_20260209", "text_editor_20250728", "computer_20250124", "memory_20250818", "mcp_toolset"):
        assert harmless_call({"type": kind, "name": "read"}) is None
    assert harmless_call(tool("Read", defer_loading=True)) is None


def test_tool_choice_is_obeyed() -> None:
    tools = [WRITE, READ, tool("Glob")]
    assert ask([HELLO], tools=tools, tool_choice={"type": "none"}).stop_reason == "end_turn"
    assert ask([HELLO], "agent:0", tools=tools, tool_choice={"type": "any"}).content[0]["name"] == "Read"
    assert ask([HELLO], tools=tools, tool_choice={"type": "tool", "name": "Glob"}).content[0]["name"] == "Glob"
    assert ask([HELLO], tools=tools, tool_choice={"type": "tool", "name": "Write"}).stop_reason == "end_turn"
    assert ask([HELLO], tools=tools, tool_choice={"type": "tool", "name": "Nothing"}).stop_reason == "end_turn"


def test_a_forced_tool_of_any_harmless_name_holds_the_structured_answer() -> None:
    person = tool("Person", {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
    forced = ask([HELLO], tools=[person], tool_choice={"type": "tool", "name": "Person"})
    assert forced.content[0]["input"] == {"age": 1}
    assert ask([HELLO], tools=[person]).stop_reason == "end_turn"


def test_where_any_tool_will_do_the_answer_comes_after_the_work() -> None:
    tools, choice = [READ, tool("final_result")], {"type": "any"}
    messages: list[Any] = [HELLO]
    names = []
    for _ in range(3):
        call = ask(messages, tools=tools, tool_choice=choice).content[0]
        names.append(call["name"])
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [_result(call)]}]
    assert names == ["Read", "Read", "final_result"]


@pytest.mark.parametrize("place", ["output_config", "output_format"])
def test_structured_output_is_the_least_json(place: str) -> None:
    wanted = {
        "type": "json_schema",
        "schema": {"type": "object", "properties": {"a": {"enum": [3]}}, "required": ["a"]},
    }
    fields = {"output_config": {"format": wanted}} if place == "output_config" else {"output_format": wanted}
    assert json.loads(ask([HELLO], **fields).content[0]["text"]) == {"a": 3}


@pytest.mark.parametrize("kind", ["enabled", "adaptive", "disabled"])
def test_it_thinks_once_a_turn_where_it_is_asked_to(kind: str) -> None:
    first, *later = loop("agent", tools=[READ], thinking={"type": kind})
    thoughts = [block for block in first.content if block["type"] == "thinking"]
    assert [block["thinking"] for block in thoughts] == ([] if kind == "disabled" else [THOUGHT])
    assert all(block["signature"] for block in thoughts)
    assert not any(block["type"] == "thinking" for answer in later for block in answer.content)


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": None}, {"messages": [1]}, {"messages": [{"role": "user", "content": 3}], "tools": {"name": 1}}],
)
def test_a_body_that_is_none_gets_an_answer_all_the_same(body: dict[str, Any]) -> None:
    answer = answerer_from("agent").answer(ClientCall("msg_1", body, "", 0.0))
    assert isinstance(answer, ModelAnswer) and answer.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("agnet", " (did you mean 'agent'?)"),
        ("agent:x", " (did you mean 'agent'?)"),
        ("script:", " (did you mean 'script'?)"),
        ("", ""),
    ],
)
def test_another_word_is_no_answerer(text: str, hint: str) -> None:
    with pytest.raises(ValueError) as caught:
        answerer_from(text)
    told = (
        "'agent', 'agent:N' (N tool calls a turn), 'agent:N:TOOL,TOOL' (these tools too, whatever their effect), "
        "'script:FILE' or 'recording:FILE'"
    )
    assert str(caught.value) == f"expected {told}; got '{text}'{hint}"


def test_an_agent_that_was_offered_nothing_has_no_notes() -> None:
    assert notes_of(answerer_from("agent")) == ()


SHOP = [tool("lookup_order"), tool("send_email"), tool("get_order"), tool("list_items")]


def called_in_turns(answerer: Any, tools: list[Any], turns: int) -> list[list[str]]:
    """The names that were called in each turn of one conversation."""
    messages: list[Any] = []
    names: list[list[str]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Go on, {turn}"})
        names.append([])
        while True:
            answer = answerer.answer(ClientCall("m", {"model": "m", "messages": messages, "tools": tools}, "w", 0.0))
            messages.append({"role": "assistant", "content": list(answer.content)})
            calls = [block for block in answer.content if block["type"] == "tool_use"]
            if not calls:
                break
            names[-1] += [call["name"] for call in calls]
            messages.append({"role": "user", "content": [_result(call) for call in calls]})
    return names


def test_every_tool_has_its_turn_over_the_conversation() -> None:
    first, second, third = ["lookup_order", "get_order"], ["list_items", "lookup_order"], ["get_order", "list_items"]
    assert called_in_turns(answerer_from("agent"), SHOP, 3) == [first, second, third]
    assert called_in_turns(answerer_from("agent:3"), SHOP, 1) == [["lookup_order", "get_order", "list_items"]]


def test_the_notes_say_which_tools_were_not_called_and_why() -> None:
    deferred = tool("get_weather", defer_loading=True)
    answerer = answerer_from("agent")
    called_in_turns(answerer, [*SHOP, deferred, {"type": "web_search_20250305", "name": "web_search"}], 1)
    by_name = "they may change something, judging by their names; allow them with --answers agent:2:send_email"
    by_turn = "the limit of 2 tool calls per turn was reached; raise it with --answers agent:N"
    assert notes_of(answerer) == (
        f"Tools not called: send_email ({by_name})",
        f"Tools not called: list_items ({by_turn})",
        "Tools not called: get_weather (deferred until a tool search)",
        "Tools not called: web_search (run by the API, which is not simulated)",
    )
    called_in_turns(answerer, SHOP, 2)
    assert len(notes_of(answerer)) == 3


def test_a_tool_that_is_allowed_is_called_whatever_it_does() -> None:
    answerer = answerer_from("agent:4:send_email")
    assert called_in_turns(answerer, SHOP, 1) == [["lookup_order", "send_email", "get_order", "list_items"]]
    assert notes_of(answerer) == ()


def test_many_names_are_counted() -> None:
    answerer = answerer_from("agent:1")
    called_in_turns(answerer, [tool(f"send_{letter}") for letter in "abcdefghijk"], 1)
    assert notes_of(answerer)[0].startswith("Tools not called: send_a, send_b, send_c, send_d, ")
    assert "send_h and 3 more (" in notes_of(answerer)[0]
