"""The telemetry of Claude Code: bills without requests, each call once, the same in every form of export."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.detect import detect, read_calls
from cachecost.conversations.readers.otel.reader import calls
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage
from conversations.test_otel_reader import exported, pairs, span

Attributes = dict[str, Any]
REQUEST: Attributes = {
    "session.id": "s1",
    "event.name": "api_request",
    "event.timestamp": "2026-11-07T10:00:05.500Z",
    "prompt.id": "p1",
    "model": "claude-opus-5-5",
    "input_tokens": 3,
    "output_tokens": 70,
    "cache_read_tokens": 16_000,
    "cache_creation_tokens": 300,
    "cache_creation_5m_tokens": 200,
    "cache_creation_1h_tokens": 100,
    "cost_usd": 0.006412,
    "duration_ms": 1_500,
    "ttft_ms": 400,
    "request_id": "req_1",
    "speed": "normal",
    "query_source": "repl_main_thread",
    "effort": "medium",
}
BILL = Usage(3, 16_000, 200, 100, 70)


def request(number: int = 1, **more: Any) -> Attributes:
    time = f"2026-11-07T10:00:{number:02}.500Z"
    named = {name.replace("_id", ".id") if name in ("session_id", "prompt_id") else name: more[name] for name in more}
    return {**REQUEST, "event.timestamp": time, "request_id": f"req_{number}", **named}


def failed(number: int, **more: Any) -> Attributes:
    kept = {name: value for name, value in request(number, **more).items() if not name.endswith("_tokens")}
    return {**kept, "event.name": "api_error", "error": "Overloaded", "status_code": 529, **more}


def record(attributes: Attributes) -> dict[str, Any]:
    name = f"claude_code.{attributes['event.name']}"
    return {"timeUnixNano": "1", "body": {"stringValue": name}, "attributes": pairs(attributes)}


def collected(*events: Attributes, version: str = "2.1.330") -> dict[str, Any]:
    """Events as the collector's file exporter writes them."""
    scope = {"scope": {"name": "com.anthropic.claude_code.events"}, "logRecords": [record(one) for one in events]}
    resource = {"attributes": pairs({"service.name": "claude-code", "service.version": version})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}


def console(attributes: Attributes, quote: str = "'", coloured: bool = False) -> str:
    """An event as Node (') and Bun (") print it, the latter with colours on a terminal."""
    cut = "," if quote == '"' else ""
    name = f"claude_code.{attributes['event.name']}"
    lines = [f"    {quote}{key}{quote}: {shown(value, quote)}," for key, value in attributes.items()]
    lines[-1] = lines[-1].removesuffix(",") + cut
    text = "\n".join(
        [
            "{",
            "  resource: {",
            f"    attributes: {{ {quote}service.version{quote}: {quote}2.1.330{quote} }}",
            "  },",
            "  instrumentationScope: {",
            f"    name: {quote}com.anthropic.claude_code.events{quote},",
            "    schemaUrl: undefined",
            "  },",
            "  timestamp: 1794045605500000,",
            "  traceId: undefined,",
            f"  body: {quote}{name}{quote},",
            "  attributes: {",
            *lines,
            f"  }}{cut}",
            "}",
        ]
    )
    return text.replace(": ", "\x1b[2m:\x1b[0m ") if coloured else text


def shown(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n") + quote
    return json.dumps(value)


def saved(folder: Path, *values: Any) -> Path:
    path = folder / "events.jsonl"
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def read(folder: Path, *values: Any) -> list[Call]:
    return list(calls(saved(folder, *values)))


def facts(call: Call) -> tuple[Any, ...]:
    return call.request.model, call.billed, call.timestamp, call.session, call.agent, call.id, call.first_token_s


def test_an_event_is_a_bill(tmp_path: Path) -> None:
    (call,) = read(tmp_path, collected(REQUEST))
    assert facts(call) == ("claude-opus-5-5", BILL, "2026-11-07T10:00:04.000000Z", "s1", "", "req_1", 0.4)
    assert (call.is_bill_only, call.has_failed, call.host) == (True, False, None)
    total = BillTotal(PriceBook.load())
    total.add(call)
    assert total.dollars == Decimal("0.006412")


PRINTED = {"node": ("'", False), "bun": ('"', False), "terminal": ('"', True)}


@pytest.mark.parametrize("how", PRINTED)
def test_what_a_console_prints_is_the_same(tmp_path: Path, how: str) -> None:
    events = [request(1), request(2, query_source="agent:builtin:Explore"), failed(3, error='it\'s\n"down"')]
    path = saved(
        tmp_path, "hello {", *(console(one, *PRINTED[how]) for one in events), "the answer", "{\n  metric: 1\n}"
    )
    assert detect(path)[0] == "otel"
    expected = read(tmp_path / "..", collected(*events))
    assert [facts(call) for call in read_calls(path)] == [facts(call) for call in expected]
    assert [call.line for call in read_calls(path)][:2] == [2, 2 + console(events[0]).count("\n") + 1]


def test_flat_json_is_the_same(tmp_path: Path) -> None:
    """As people write events line by line, and as Python's console exporter prints them."""
    lines = [
        {"body": "claude_code.api_request", "timeUnixNano": 1, "attributes": request(1)},
        {"body": "claude_code.api_request", "timestamp": "2026-11-07T10:00:02Z", "attributes": request(2)},
    ]
    path = saved(tmp_path, *lines)
    assert detect(path) == ("otel", "its first object is an event of Claude Code")
    assert [call.billed for call in read_calls(path)] == [BILL, BILL]


def test_numbers_may_be_texts(tmp_path: Path) -> None:
    """As clients of early 2026 write them, which do not split writes by TTL either."""
    texts = {name: str(value) for name, value in REQUEST.items() if not name.startswith("cache_creation_")}
    said: list[str] = []
    (call,) = calls(saved(tmp_path, collected({**texts, "cache_creation_tokens": "300"})), said.append)
    assert call.billed == Usage(3, 16_000, 300, 0, 70)
    assert [note.partition(": ")[2] for note in said] == ["1 call with writes that are not split by TTL: taken as 5m"]


@pytest.mark.parametrize(
    ("more", "agent"),
    [
        ({"query_source": "sdk"}, ""),
        ({"query_source": "repl_main_thread:outputStyle:x"}, ""),
        ({"query_source": "agent:builtin:Explore"}, "Explore"),
        ({"query_source": "agent:custom"}, "custom"),
        ({"query_source": "agent:custom", "agent.name": "tester"}, "tester"),
        ({"query_source": "generate_session_title"}, "generate_session_title"),
        ({"query_source": "compact"}, "compact"),
    ],
)
def test_the_agent_is_who_made_the_call(tmp_path: Path, more: Attributes, agent: str) -> None:
    (call,) = read(tmp_path, collected({**REQUEST, **more}))
    assert call.agent == agent


def test_fast_mode_and_the_host_have_their_prices(tmp_path: Path) -> None:
    (call,) = read(tmp_path, collected({**REQUEST, "speed": "fast", "anthropic.provider": "bedrock"}))
    assert (call.request.params, call.host) == ({"speed": "fast"}, "bedrock")


@pytest.mark.parametrize(
    ("more", "status"),
    [({}, 529), ({"status_code": "429"}, 429), ({"status_code": None, "error": "Connection error."}, 500)],
)
def test_an_api_error_is_a_failed_call(tmp_path: Path, more: Attributes, status: int) -> None:
    event = {name: value for name, value in {**failed(1), **more}.items() if value is not None}
    (call,) = read(tmp_path, collected(event))
    assert (call.has_failed, call.billed, call.status) == (True, None, status)


def test_other_events_are_no_calls(tmp_path: Path) -> None:
    said: list[str] = []
    prompt = {"event.name": "user_prompt", "session.id": "s1", "prompt_length": 3}
    path = saved(tmp_path, collected(prompt, request(1), {**prompt, "event.name": "tool_result"}))
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}: skipped 2 log records: not a model call"]


def test_a_call_that_is_exported_twice_is_one(tmp_path: Path) -> None:
    timed = {**request(1), "success": True}
    traced = exported(span(timed, name="a1") | {"name": "claude_code.llm_request"})
    other = exported(span({"session.id": "s1"}) | {"name": "claude_code.interaction"})
    found = read(tmp_path, collected(request(1), request(1)), traced, other, collected(request(2)))
    assert [call.id for call in found] == ["req_1", "req_2"]
    (alone,) = read(tmp_path, traced)
    assert (alone.billed, alone.session, alone.is_bill_only) == (BILL, "s1", True)


def test_calls_are_in_the_order_of_their_start(tmp_path: Path) -> None:
    late, long = request(5), {**request(6), "duration_ms": 5_000}
    assert [call.id for call in read(tmp_path, collected(late, long))] == ["req_6", "req_5"]


def test_every_error_is_told(tmp_path: Path) -> None:
    wrong = [{**request(1), "input_tokens": -1}, {**request(2), "model": ""}, {**request(3), "event.timestamp": "noon"}]
    with pytest.raises(InputError) as told:
        read(tmp_path, *(collected(one) for one in wrong))
    place = "resourceLogs[0].scopeLogs[0].logRecords[0].attributes"
    assert sorted((fault.line, fault.message.partition(":")[0]) for fault in told.value.faults) == [
        (1, f"{place}.input_tokens"),
        (2, place),
        (3, f"{place}.event.timestamp"),
    ]


@pytest.mark.parametrize(
    "damage", ["{\n  body: 'a',\n  attributes: {\n    x: =\n  }\n}", "{\n  body: '\n  attributes: {"]
)
def test_a_damaged_printed_record_is_an_error_with_its_line(tmp_path: Path, damage: str) -> None:
    with pytest.raises(InputError, match=r"damaged log record: ") as told:
        read(tmp_path, console(REQUEST), damage)
    assert told.value.faults[0].line == console(REQUEST).count("\n") + 2
