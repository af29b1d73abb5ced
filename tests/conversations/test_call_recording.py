"""Recordings of calls: they replay as the log does, tell nothing of its text, and bad ones are told whole."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from random_logs import DEFERRED, SECRETS, lines, logs
from shapes import block_shape

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations import call_recording
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import Call, Iteration
from cachecost.conversations.model import BlockWriter, ContentFree
from cachecost.conversations.readers import call_recording as calls
from cachecost.conversations.readers import request_log
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import text_block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.tokenizers import Cl100k, count_content
from cachecost.views.replay.call_rows import call_object
from row_places import without_names

KEY = b"a key for tests"
RULES, PRICES = RuleBook(), PriceBook.load()
TITLE = Title("mine", "here", "MIT")


counted: dict[bytes, Any] = {}


def cl100k_only(block: Block) -> Any:
    """What an import keeps of a block (without ctok, see below), each counted once in all tests."""
    if block.digest not in counted:
        counted[block.digest] = count_content(block)
    return counted[block.digest]


@pytest.fixture(autouse=True)
def _no_ctok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.tokens.tokenizers.has_ctok", lambda: False)


def recorded(log: Path, content: Any = "keep", count: Any = cl100k_only, title: Title = TITLE) -> bytes:
    stream = BytesIO()
    call_recording.write(title, request_log.calls(log), stream, blocks(content, count))
    return stream.getvalue()


def blocks(content: str, count: Any = cl100k_only, key: bytes = KEY) -> BlockWriter:
    return BlockWriter(ContentFree(key), count) if content == "digest" else BlockWriter()


def log_file(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(lines(rows))
    return path


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "recording.jsonl"
    path.write_bytes(data)
    return path


def replayed(read: Any, tokens: str) -> list[str]:
    simulation = Simulation(ReplaySetup(RULES, PRICES, tokens=tokens))
    return [json.dumps(without_names(call_object(row))) for row in simulation.rows(read)]


def shape(call: Call) -> tuple[Any, ...]:
    """Everything about a call but its line and what the log calls its source."""
    request = call.request
    told = [(message.role, [block_shape(block) for block in message.blocks]) for message in request.thread.messages()]
    breakpoints = [
        (breakpoint.layer, breakpoint.index, breakpoint.ttl, breakpoint.node and breakpoint.node.length)
        for breakpoint in request.breakpoints
    ]
    parts = [[block_shape(block) for block in part.blocks] for part in (request.tools, request.system)]
    body = (request.model, told, breakpoints, parts, request.automatic, json.dumps(request.params), request.fault)
    billed = (call.billed, call.iterations, [block_shape(block) for block in call.response])
    circumstances = (
        call.start,
        call.timestamp,
        call.first_token_s,
        call.host,
        call.workspace,
        call.status,
        call.is_batch,
    )
    return body, billed, circumstances


slow_folder = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@slow_folder
@given(logs())
def test_what_is_kept_comes_back(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    log = log_file(tmp_path, rows)
    data = recorded(log)
    back = list(calls.calls(saved(tmp_path, data)))
    assert [shape(call) for call in back] == [shape(call) for call in request_log.calls(log)]
    stream = BytesIO()
    call_recording.write(TITLE, back, stream)
    assert stream.getvalue() == data


@slow_folder
@given(logs())
def test_without_a_word_it_replays_to_the_same_rows(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    log = log_file(tmp_path, rows)
    data = recorded(log, "digest")
    path = saved(tmp_path, data)
    for tokens in ("bytes", "tiktoken"):
        now = replayed(calls.calls(path), tokens)
        was = replayed(request_log.calls(log, keep_content=tokens != "bytes"), tokens)
        hidden = ContentFree(KEY).word(DEFERRED)  # the only word of a body that the API repeats
        assert now == [row.replace(f"Tool '{DEFERRED}'", f"Tool '{hidden}'") for row in was]
    text = json.dumps([json.loads(line) for line in data.splitlines()], ensure_ascii=False)
    assert not [word for word in SECRETS if word in text]


@slow_folder
@given(logs())
def test_taking_the_words_out_later_is_the_same(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    log = log_file(tmp_path, rows)
    kept = saved(tmp_path, recorded(log))
    stream = BytesIO()
    call_recording.write(TITLE, calls.calls(kept), stream, blocks("digest"))
    assert stream.getvalue() == recorded(log, "digest")


def test_a_recording_without_content_can_be_recorded_again_under_another_key(tmp_path: Path) -> None:
    once = recorded(log_file(tmp_path, SMALL[:3]), "digest")
    path = saved(tmp_path, once)
    stream = BytesIO()
    call_recording.write(TITLE, calls.calls(path), stream, blocks("digest", key=b"another"))
    twice = stream.getvalue()
    assert replayed(calls.calls(path), "tiktoken") == replayed(calls.calls(saved(tmp_path, twice)), "tiktoken")
    one, two = ({line.get("digest") for line in map(json.loads, data.splitlines())} - {None} for data in (once, twice))
    assert len(one) == len(two) == 6 and not one & two


# ------------------------------------------------------------------------------------------- layout

BREAKPOINT = {"type": "ephemeral"}
SMALL: list[dict[str, Any]] = [
    {
        "timestamp": "2026-03-07T10:00:00Z",
        "request": {
            "model": "claude-opus-4-6",
            "max_tokens": 64,
            "tools": [{"name": "secret_tool", "input_schema": {}, "cache_control": {**BREAKPOINT, "ttl": "1h"}}],
            "system": "secret",
            "output_config": {"format": {"type": "json_schema", "schema": {"secret": 1}}, "effort": "high"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "secret 1", "cache_control": BREAKPOINT}]}
            ],
        },
        "response": {"content": [{"type": "text", "text": "secret answer"}]},
        "usage": {"input_tokens": 3, "cache_creation_input_tokens": 50, "output_tokens": 7},
    },
    {
        "timestamp": "2026-03-07T10:00:09Z",
        "request": {
            "model": "claude-opus-4-6",
            "max_tokens": 64,
            "tools": [{"name": "secret_tool", "input_schema": {}}],
            "system": "secret",
            "output_config": {"format": {"type": "json_schema", "schema": {"secret": 1}}, "effort": "high"},
            "messages": [
                {"role": "user", "content": "secret 1"},
                {"role": "assistant", "content": "secret answer"},
                {"role": "user", "content": [{"type": "text", "text": "secret 2", "cache_control": BREAKPOINT}]},
            ],
            "cache_control": BREAKPOINT,
        },
        "first_token_s": 0.5,
        "host": "bedrock",
        "workspace": "secret place",
        "status": 200,
        "service": "batch",
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 50,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 20},
            "output_tokens": 7,
            "iterations": [
                {"type": "compaction", "input_tokens": 1000},
                {"type": "advisor_message", "model": "claude-sonnet-4-6", "output_tokens": 5},
            ],
        },
    },
    {"request": {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": ""}]}, "status": 529},
    {
        "request": {
            "model": "claude-opus-4-6",
            "tools": [{"name": "secret_tool", "input_schema": {}, "defer_loading": True, "cache_control": BREAKPOINT}],
            "messages": [{"role": "user", "content": ""}],
        }
    },
]


def test_the_layout_is_pinned(tmp_path: Path) -> None:
    told = [json.loads(line) for line in recorded(log_file(tmp_path, SMALL)).splitlines()]
    schema = {"format": {"type": "json_schema", "schema": {"secret": 1}}, "effort": "high"}
    assert told == [
        {"format": 1, "kind": "calls", "content": "keep", "name": "mine", "source": "here", "licence": "MIT"},
        {"block": 1, "role": "", "content": {"name": "secret_tool", "input_schema": {}}},
        {"block": 2, "role": "system", "content": {"type": "text", "text": "secret"}},
        {
            "head": 1,
            "model": "claude-opus-4-6",
            "params": {"output_config": schema, "max_tokens": 64},
            "tools": [1],
            "system": [2],
        },
        {"block": 3, "role": "user", "content": {"type": "text", "text": "secret 1"}},
        {"block": 4, "role": "assistant", "content": {"type": "text", "text": "secret answer"}},
        {
            "call": 1,
            "head": 1,
            "timestamp": "2026-03-07T10:00:00Z",
            "messages": [["user", [3]]],
            "breakpoints": [["tools", 0, "1h"], ["messages", 0, 0, "5m"]],
            "usage": {"input_tokens": 3, "ephemeral_5m_input_tokens": 50, "output_tokens": 7},
            "response": [4],
        },
        {"block": 5, "role": "user", "content": {"type": "text", "text": "secret 2"}},
        {
            "call": 2,
            "head": 1,
            "timestamp": "2026-03-07T10:00:09Z",
            "first_token_s": 0.5,
            "host": "bedrock",
            "workspace": "secret place",
            "status": 200,
            "service": "batch",
            "after": [1, 1],
            "messages": [["assistant", [4]], ["user", [5]]],
            "breakpoints": [["messages", 2, 0, "5m"]],
            "automatic": "5m",
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 50,
                "ephemeral_1h_input_tokens": 20,
                "output_tokens": 7,
            },
            "iterations": [
                {"type": "compaction", "input_tokens": 1000},
                {"type": "advisor_message", "model": "claude-sonnet-4-6", "output_tokens": 5},
            ],
        },
        {"head": 2, "model": "claude-opus-4-6"},
        {"block": 6, "role": "user", "content": {"type": "text", "text": ""}},
        {"call": 3, "head": 2, "status": 529, "messages": [["user", [6]]]},
        {
            "call": 4,
            "head": 2,
            "after": [3, 1],
            "fault": "Tool 'secret_tool' cannot have both defer_loading=true and cache_control set. "
            "Tools with defer_loading cannot use prompt caching.",
        },
    ]


def test_content_free_keeps_the_structure_and_no_name_of_anything(tmp_path: Path) -> None:
    data = recorded(log_file(tmp_path, SMALL), "digest")
    assert b"secret" not in data
    told = [json.loads(line) for line in data.splitlines()]
    free = ContentFree(KEY)
    form = told[3]["params"]["output_config"]["format"]
    assert (form["type"], form["schema"][0], len(form["schema"])) == ("json_schema", "~", 17)
    assert form["counts"] == {"cl100k": Cl100k()('{\n  "secret": 1\n}')}
    assert told[8]["workspace"] == free.word("secret place")
    assert told[12]["fault"].startswith(f"Tool '{free.word('secret_tool')}' cannot have both")
    assert told[10] == {
        "block": 6,
        "kind": "text",
        "role": "user",
        "digest": free.digest(text_block("user", "").digest).hex(),
        "size": 25,
        "counts": {"cl100k": 0},
        "empty": True,
    }


def test_an_empty_text_is_still_no_place_for_an_automatic_breakpoint(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "long " * 1000}, {"type": "text", "text": ""}]
    request = {
        "model": "claude-opus-4-6",
        "messages": [{"role": "user", "content": blocks}],
        "cache_control": BREAKPOINT,
    }
    path = saved(tmp_path, recorded(log_file(tmp_path, [{"request": request}]), "digest"))
    (row,) = map(json.loads, replayed(calls.calls(path), "bytes"))
    assert (row["usage"]["cache_creation_input_tokens"], row["usage"]["input_tokens"]) == (5025, 25)


def test_a_schema_without_its_count_cannot_be_evaluated_and_says_what_helps(tmp_path: Path) -> None:
    data = recorded(log_file(tmp_path, SMALL[:1]), "digest", count=lambda block: ({"cl100k": 1}, "text"))
    bare = b"\n".join(
        line.replace(b',"counts":{"cl100k":1}', b"") if b'"head"' in line else line for line in data.splitlines()
    )
    (row,) = map(json.loads, replayed(calls.calls(saved(tmp_path, bare + b"\n")), "tiktoken"))
    assert row["error"]["type"] == "not_evaluated"
    assert "has no content and no cl100k count (counts: none): import the recording again" in row["error"]["message"]


def test_a_growing_log_is_as_long_as_what_is_new_in_it(tmp_path: Path) -> None:
    def length(count: int) -> tuple[int, int]:
        turns = [{"role": ("user", "assistant")[n % 2], "content": f"{n:04}"} for n in range(2 * count)]
        rows = [{"request": {"model": "m", "messages": turns[: 2 * n + 1]}} for n in range(count)]
        data = recorded(log_file(tmp_path, rows), "digest", count=None)
        return len(data), len(lines(rows))

    (small, small_log), (large, large_log) = length(100), length(200)
    assert large < 2.1 * small
    assert large_log > 3.8 * small_log, "or this shows nothing"


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(lines(SMALL) + b'{"request": 1}\n')
    with pytest.raises(InputError, match="body: expected an object; got a number"):
        call_recording.write(TITLE, request_log.calls(log), tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


# ------------------------------------------------------------------------------------------ damaged

HEAD = '{"format":1,"kind":"calls","content":"keep","name":"n"}\n'
BLOCK = '{"block":1,"role":"user","content":{"type":"text","text":"hi"}}\n'
SETUP = '{"head":1,"model":"m"}\n'
CALL = '{"call":1,"head":1,"messages":[["user",[1]]]}\n'
GOOD = HEAD + BLOCK + SETUP + CALL

BAD = [
    ("", ["{file} is empty: a recording starts with a whole header line"]),
    ('{"a":1}\n', ["{file}:1 format: expected the header of a recording, format 1; got nothing"]),
    (HEAD.replace("1", "2") + "rubbish\n", ["{file}:1 format: expected 1; got 2, which this version cannot read"]),
    (
        HEAD.replace('"calls"', '"call"'),
        ["{file}:1 kind: expected one of calls; got 'call' (did you mean 'calls'?)"],
    ),
    (
        HEAD.replace('"name"', '"nam"').replace('"keep"', '"kept"') + BLOCK + '{"hed":1}\n',
        [
            "{file}:1 content: expected one of keep, digest; got 'kept' (did you mean 'keep'?)",
            "{file}:1 name: expected a text; got nothing",
            "{file}:1 nam: unknown key (did you mean 'name'?)",
            "{file}:3 line: expected a block, a head or a call",
        ],
    ),
    (
        HEAD + BLOCK + '{"head":1,"model":"m","tools":[9],"params":{"thinking":"on","speeed":"fast"}}\n' + SETUP + CALL,
        [
            "{file}:3 tools: no line before this one defines block 9",
            "{file}:3 params.thinking: expected an object; got 'on'",
            "{file}:3 params.speeed: unknown key (did you mean 'speed'?)",
            "{file}:4 head: 1 is already defined",
        ],
    ),
    (
        HEAD + BLOCK + '{"call":1,"head":3,"messages":[["usr",[1]],["assistant",[1,2]]],"after":[4,1],"mesages":[]}\n',
        [
            "{file}:3 after: no line before this one defines call 4",
            "{file}:3 messages[0].role: expected one of user, assistant, system; got 'usr' (did you mean 'user'?)",
            "{file}:3 messages[1].blocks: no line before this one defines block 2",
            "{file}:3 messages[1].blocks: expected blocks of role assistant; got one of role user",
            "{file}:3 head: no line before this one defines head 3",
            "{file}:3 mesages: unknown key (did you mean 'messages'?)",
        ],
    ),
    (
        GOOD + '{"call":2,"hea\n' + '{"call":3,"head":1,"after":[1,2]}\n' + '{"call":4,"head":1,"after":[2,1]}\n',
        [
            "{file}:5 damaged JSON: Invalid control character at character 15",
            "{file}:6 call: expected 2; got 3",
            "{file}:6 after: call 1 has 1 messages; got 2",
            "{file}:7 after: no line before this one defines call 2",
        ],
    ),
    (
        GOOD + '{"call":2,"head":1,"after":[1,1],"breakpoints":[["tools",0,"5m"],["messages",1,0,"5m"],'
        '["messages",0,1,"1h"],'
        '["messages",0,0,"2h"],["messages",0,"5m"],["tolls",0,"5m"],["system",true,"5m"],7]}\n',
        [
            "{file}:5 breakpoints[0]: there is no block tools.0",
            "{file}:5 breakpoints[1]: there is no block messages.1.0",
            "{file}:5 breakpoints[2]: there is no block messages.0.1",
            *(
                f'{{file}}:5 breakpoints[{n}]: expected [layer, block, "5m" or "1h"], with the '
                f"message before the block in "
                f"messages; got {got}"
                for n, got in ((3, "an array"), (4, "an array"), (5, "an array"), (6, "an array"), (7, "7"))
            ),
        ],
    ),
    (
        GOOD + '{"call":2,"head":1,"after":[1],"messages":[["user"]],"timestamp":"noon","usage":{"input_tokens":-1,'
        '"inputs":2},"iterations":[{"output_tokens":1.5}],"status":"ok","service":"bach","automatic":"2h",'
        '"first_token_s":"x","host":1,"workspace":2,"fault":3,"response":[7],"breakpoints":{}}\n',
        [
            "{file}:5 after: expected [call, number of its messages]; got an array",
            "{file}:5 messages: expected an array of [role, block numbers]; got an array",
            "{file}:5 timestamp: expected an ISO 8601 time; got 'noon'",
            "{file}:5 breakpoints: expected an array of breakpoints; got an object",
            "{file}:5 automatic: expected one of 5m, 1h; got '2h'",
            "{file}:5 fault: expected a text; got 3",
            "{file}:5 usage.input_tokens: expected a whole number from 0; got -1",
            "{file}:5 usage.inputs: unknown key (did you mean 'input_tokens'?)",
            "{file}:5 first_token_s: expected a number; got 'x'",
            "{file}:5 host: expected a text; got 1",
            "{file}:5 workspace: expected a text; got 2",
            "{file}:5 status: expected a whole number; got 'ok'",
            "{file}:5 service: expected one of batch; got 'bach' (did you mean 'batch'?)",
            "{file}:5 iterations[0].type: expected a text; got nothing",
            "{file}:5 iterations[0].output_tokens: expected a whole number from 0; got 1.5",
            "{file}:5 response: no line before this one defines block 7",
        ],
    ),
]


@pytest.mark.parametrize(("text", "faults"), BAD)
def test_every_fault_is_told_with_its_line(tmp_path: Path, text: str, faults: list[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        list(calls.calls(path))
    assert [str(fault) for fault in error.value.faults] == [fault.format(file=path) for fault in faults]


def test_calls_before_the_first_fault_are_told_and_none_after_it(tmp_path: Path) -> None:
    read = calls.calls(saved(tmp_path, (GOOD + CALL + CALL.replace('"call":1', '"call":2')).encode()))
    assert next(read).line == 4
    with pytest.raises(InputError, match="call: expected 2; got 1"):
        next(read)


def test_a_last_line_that_is_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    data = recorded(log_file(tmp_path, SMALL[:2]))
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(last + 1, len(data) - 1, 7):
        said: list[str] = []
        path = saved(tmp_path, data[:end])
        assert len(list(calls.calls(path, said.append))) == 1
        assert said == [f"{path}:9 the last line is cut off (still being written?): skipped"]
    assert len(list(calls.calls(saved(tmp_path, data[:-1]), pytest.fail))) == 2


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        list(calls.calls(tmp_path / "none"))


# --------------------------------------------------------------------------------------- by and by


def test_the_header_can_be_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, b"\n" + recorded(log_file(tmp_path, SMALL)))
    assert calls.title(path) == TITLE
    assert {call.source for call in calls.calls(path)} == {"here"}
    assert calls.title(saved(tmp_path, b"[]\n")) == Title("")


def test_what_the_log_says_of_the_answer_is_read(tmp_path: Path) -> None:
    rows = [
        *SMALL[:2],
        {**SMALL[0], "response": None, "response_content": [{"type": "text", "text": "x"}], "source": "s"},
    ]
    first, second, third = request_log.calls(log_file(tmp_path, rows))
    assert [block.content for block in first.response] == [{"type": "text", "text": "secret answer"}]
    assert second.iterations == (
        Iteration("compaction", Usage(input_tokens=1000)),
        Iteration("advisor_message", Usage(output_tokens=5), "claude-sonnet-4-6"),
    )
    assert second.billed == Usage(3, 50, 0, 20, 7)
    assert ([block.role for block in third.response], third.source) == (["assistant"], "s")
    assert [call.response for call in request_log.calls(tmp_path / "log.jsonl", keep_content=False)] == [(), (), ()]


@pytest.mark.parametrize(
    "answer", ["text", 7, {"content": [None]}, {"content": [{"text": "no type"}]}, {"content": 7}, {}]
)
def test_an_answer_in_another_shape_is_none(tmp_path: Path, answer: Any) -> None:
    (call,) = request_log.calls(log_file(tmp_path, [{**SMALL[0], "response": answer}]))
    assert call.response == ()


@pytest.mark.parametrize(
    ("passes", "why"),
    [(3, None), ([3], None), ([{"input_tokens": "x"}], "usage.iterations.0.input_tokens: expected a whole number")],
)
def test_iterations_are_told_if_they_are_usages(tmp_path: Path, passes: Any, why: str | None) -> None:
    read = request_log.calls(log_file(tmp_path, [{**SMALL[0], "usage": {"input_tokens": 1, "iterations": passes}}]))
    if why is None:
        assert next(read).iterations == ()
        return
    with pytest.raises(InputError, match=why):
        next(read)


@pytest.mark.parametrize("content", ["keep", "digest"])
def test_session_project_and_agent_are_stored_and_their_names_only_as_content(tmp_path: Path, content: Any) -> None:
    (call,) = request_log.calls(log_file(tmp_path, SMALL[:1]))
    named = replace(call, session="s-1", project="/home/me/app", agent="a7")
    stream = BytesIO()
    call_recording.write(TITLE, [named, call], stream, blocks(content))
    first, second = calls.calls(saved(tmp_path, stream.getvalue()))
    word = ContentFree(KEY).word if content == "digest" else str
    assert (first.session, first.project, first.agent) == (word("s-1"), word("/home/me/app"), word("a7"))
    assert (second.project, second.agent) == ("", "")
    assert (b"/home/me" in stream.getvalue()) == (content == "keep")
