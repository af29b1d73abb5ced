"""The fixture `cache_cost`: what it takes, what it says, and what its assertions say when they fail."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from cachecost.base.extras import NotInstalled
from cachecost.testing import CacheCost

MODEL = "claude-sonnet-5-5"
BREAKPOINT = {"type": "ephemeral"}
GUIDE = "Answer in one sentence, and name the file and the line that you mean. " * 60
TOOL = {"name": "look", "description": "Looks at a file.", "input_schema": {"type": "object", "properties": {}}}
KEY = "sk-ant-api03-this-is-a-key-of-a-test"


@pytest.fixture
def cost(tmp_path: Path) -> Iterator[CacheCost]:
    with CacheCost(tmp_path, as_of="2026-11-09") as made:
        yield made


def body(*texts: str, system: str = GUIDE, **more: Any) -> dict[str, Any]:
    """A conversation in which a person says `texts`, and gets "Yes." in between."""
    messages = [{"role": "user", "content": texts[0]}]
    for text in texts[1:]:
        messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": text}]
    head = [{"type": "text", "text": system, "cache_control": BREAKPOINT}]
    return {"model": MODEL, "max_tokens": 50, "system": head, "tools": [TOOL], "messages": messages, **more}


def send(cost: CacheCost, *bodies: dict[str, Any]) -> None:
    client = cost.client()
    for one in bodies:
        client.messages.create(**one)


def failure(check: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


# ------------------------------------------------------------------------------------------ taking calls


def test_the_sdk_is_answered_and_billed_without_a_key(cost: CacheCost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    reply = cost.client().messages.create(**body("Hello?"))
    (row,) = cost.calls
    assert reply.usage.cache_creation_input_tokens == row.usage.write_5m > 512
    assert cost.dollars == row.cost.total > 0


def test_what_was_written_is_read_by_the_next_call(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?"))
    first, second = cost.calls
    assert (first.cause, second.cause) == ("cold_start", "hit")
    assert second.usage.read == first.usage.write_5m
    assert cost.cache_hit_rate == Decimal(second.usage.read) / (first.usage.total_input + second.usage.total_input)
    assert cost.usage == first.usage + second.usage


def test_each_call_comes_two_seconds_after_the_one_before(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?"))
    assert [row.timestamp for row in cost.calls] == [
        "2026-11-09T00:00:00.000000+00:00",
        "2026-11-09T00:00:02.000000+00:00",
    ]


@pytest.mark.parametrize(("minutes", "cause"), [(4.9, "hit"), (5.0, "ttl_expired")])
def test_a_pause_ages_the_cache(cost: CacheCost, minutes: float, cause: str) -> None:
    send(cost, body("Hello?"))
    cost.wait(minutes=minutes)
    send(cost, body("Hello?", "Still there?"))
    assert cost.calls[1].cause == cause


def test_a_clock_that_runs_by_itself_cannot_be_moved(tmp_path: Path) -> None:
    with (
        CacheCost(tmp_path, clock="real") as cost,
        pytest.raises(ValueError, match=re.escape("wait: expected a clock like '+2s'")),
    ):
        cost.wait(1)


def test_a_stream_is_answered(cost: CacheCost) -> None:
    with cost.client().messages.stream(**body("Hello?")) as stream:
        streamed = "".join(stream.text_stream)
        assert streamed or stream.get_final_message().content
    assert len(cost.calls) == 1


def test_tokens_are_counted_without_a_call(cost: CacheCost) -> None:
    asked = {name: value for name, value in body("Hello?").items() if name != "max_tokens"}
    counted = cost.client().messages.count_tokens(**asked).input_tokens
    assert not cost.calls
    send(cost, body("Hello?"))
    assert cost.calls[0].usage.total_input == counted


def test_async_clients_are_answered(cost: CacheCost) -> None:
    async def conversation() -> None:
        async with cost.async_client() as client:
            await asyncio.gather(*(client.messages.create(**body(f"Hello {one}?")) for one in "abc"))

    asyncio.run(conversation())
    assert len(cost.calls) == 3


def test_plain_clients_use_the_transport(cost: CacheCost) -> None:
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    with httpx2.Client(transport=cost.transport, base_url="https://api.anthropic.com", headers=headers) as client:
        assert client.post("/v1/messages", json=body("Hello?")).json()["type"] == "message"
        assert client.get("/v1/nothing").status_code == 404
    assert KEY not in cost.recording.read_text()


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_the_answer_is_of_the_library_that_asks(cost: CacheCost, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = type("Response", (SimpleNamespace,), {})
    monkeypatch.setitem(
        sys.modules, library, SimpleNamespace(Response=lambda status, **more: made(status=status, **more))
    )
    family = type("Request", (), {"__module__": f"{library}._models"})
    asked: Any = type("OwnRequest", (family,), {"__module__": "project.client"})()
    asked.method, asked.url, asked.headers = "POST", SimpleNamespace(path="/v1/messages"), {"X-Api-Key": KEY}
    asked.read = lambda: b"{}"
    response = cost.transport.handle_request(asked)
    assert (type(response), response.status, response.request) == (made, 400, asked)
    assert json.loads(response.content)["error"]["message"] == "anthropic-version: header is required"


def test_transports_need_no_web_framework() -> None:
    names = ("starlette", "uvicorn", "httpx2", "anthropic")
    code = f"import sys, cachecost.testing; print([one for one in {names} if one in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_refused_call_is_told_to_the_client_and_costs_nothing(cost: CacheCost) -> None:
    import anthropic

    five = [{"type": "text", "text": text, "cache_control": BREAKPOINT} for text in "abcde"]
    with pytest.raises(anthropic.BadRequestError, match="maximum of 4 blocks with cache_control"):
        cost.client().messages.create(**{**body("Hello?"), "system": five})
    assert (cost.dollars, cost.calls[0].error is not None) == (0, True)


def test_other_processes_have_a_server(cost: CacheCost) -> None:
    assert cost.base_url == cost.base_url
    assert cost.base_url.startswith("http://127.0.0.1:")
    assert cost.environment == {"ANTHROPIC_BASE_URL": cost.base_url, "ANTHROPIC_API_KEY": "anything"}
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    with httpx2.Client() as client:
        response = client.post(f"{cost.base_url}/v1/messages", json=body("Hello?"), headers=headers)
    assert response.status_code == 200
    assert len(cost.calls) == 1


def test_without_the_server_extra_it_says_so(cost: CacheCost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(NotInstalled, match=r"cache_cost.base_url needs the extra 'server': starlette is not installed"):
        cost.base_url  # noqa: B018 - the property itself is asked


def test_without_the_sdk_it_says_so(cost: CacheCost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(NotInstalled, match=r"cache_cost.client\(\) needs the extra 'live': anthropic is not installed"):
        cost.client()


def test_the_recording_can_be_replayed(cost: CacheCost) -> None:
    import cachecost

    send(cost, body("Hello?"), body("Hello?", "And now?"))
    lines = [json.loads(line) for line in cost.recording.read_text().splitlines()]
    assert [line["usage"]["cache_read_input_tokens"] for line in lines] == [0, cost.calls[1].usage.read]
    assert cachecost.read(cost.recording)


def test_the_same_calls_cost_the_same(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        with CacheCost(tmp_path / name, as_of="2026-11-09") as cost:
            send(cost, body("Hello?"), body("Hello?", "And now?"))
            found.append((cost.dollars, cost.recording.read_bytes()))
    assert found[0] == found[1]


def test_rules_and_prices_are_those_of_the_day_asked_for(tmp_path: Path) -> None:
    found = []
    for day in ("2026-10-05", "2026-11-09"):
        with CacheCost(tmp_path / day, as_of=day) as cost:
            send(cost, body("Hello?"), body("Hello?", "And now?"))
            found.append((cost.usage, cost.dollars))
    assert found[0][0] == found[1][0]
    assert found[0][1] > found[1][1]


# ------------------------------------------------------------------------------------------ assertions


@pytest.mark.parametrize(
    "name",
    ["assert_costs_at_most", "assert_cache_hit_rate_at_least", "assert_prefix_stable", "assert_no_lint", "explain"],
)
def test_a_test_without_any_call_proves_nothing(cost: CacheCost, name: str) -> None:
    limits: dict[str, tuple[str, ...]] = {"assert_costs_at_most": ("1",), "assert_cache_hit_rate_at_least": ("0",)}
    message = failure(lambda: getattr(cost, name)(*limits.get(name, ())))
    assert message.startswith("no call reached cache_cost: give the code under test cache_cost.client()")


def test_dollars_equal_to_the_limit_pass(cost: CacheCost) -> None:
    send(cost, body("Hello?"))
    cost.assert_costs_at_most(cost.dollars)
    least = cost.dollars - Decimal("0.00000001")
    assert "$0.00000001 more than the limit of" in failure(lambda: cost.assert_costs_at_most(least))


@pytest.mark.parametrize("limit", [0.05, "0.05", Decimal("0.05"), 1])
def test_dollars_are_taken_as_they_are_written(cost: CacheCost, limit: Any) -> None:
    send(cost, body("Hello?"))
    cost.assert_costs_at_most(limit)


def test_a_float_is_the_number_that_was_written(cost: CacheCost) -> None:
    send(cost, body("Hello?"))
    spent = cost.dollars
    cost.assert_costs_at_most(float(spent))
    with pytest.raises(AssertionError):
        cost.assert_costs_at_most(float(spent) * 0.999)


@pytest.mark.parametrize("limit", ["a", "5%", float("nan"), float("inf"), -1, "", True, None])
def test_what_is_no_amount_is_told(cost: CacheCost, limit: Any) -> None:
    send(cost, body("Hello?"))
    with pytest.raises(ValueError, match=r'expected US dollars from 0, like 0.05 or "0.05"; got ') as raised:
        cost.assert_costs_at_most(limit)
    assert str(raised.value).endswith(repr(limit))


@pytest.mark.parametrize("share", ["90%", 1.1, 90, -0.1])
def test_what_is_no_share_is_told(cost: CacheCost, share: Any) -> None:
    send(cost, body("Hello?"))
    with pytest.raises(ValueError, match=r'expected a share from 0 to 1, like 0.9 or "0.9"; got '):
        cost.assert_cache_hit_rate_at_least(share)


def test_too_dear_names_the_call_the_block_and_the_character(cost: CacheCost) -> None:
    times = [f"It is 10:0{minute} now. {GUIDE}" for minute in range(3)]
    send(cost, *(body("Hello?", *["Go on."] * number, system=system) for number, system in enumerate(times)))
    lines = failure(lambda: cost.assert_costs_at_most("0.001")).splitlines()
    assert re.fullmatch(r"3 calls cost \$0\.0\d+, \$0\.0\d+ more than the limit of \$0\.001", lines[0])
    assert lines[1:4] == [
        "  call 2: system.0 changed at character 10, since call 1 (and in 1 more call)",
        "    was  It is 10:00 now. Answe…",
        "    now  It is 10:01 now. Answe…",
    ]
    assert re.fullmatch(r"  \$0\.0\d+ of it was avoidable:", lines[4])
    assert lines[5].startswith("  CC110 call 2 and 1 more call, system.0 since call 1: ")
    assert lines[6].startswith("        → ")
    assert lines[7].split() == ["call", "read", "written", "uncached", "cost", "cause"]
    assert [line.split()[-1] for line in lines[8:]] == ["cold_start", "system_changed", "system_changed"]


def test_the_hit_share_has_two_sides(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?"))
    cost.assert_cache_hit_rate_at_least(cost.cache_hit_rate)
    message = failure(lambda: cost.assert_cache_hit_rate_at_least(0.9))
    assert re.match(r"\d\d% of the input was read from the cache; expected at least 90%\n", message)


def test_a_stable_head_is_stable(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?"))
    cost.assert_prefix_stable("tools", "system")
    cost.assert_prefix_stable()


def test_a_changed_tool_is_named(cost: CacheCost) -> None:
    other = {**TOOL, "description": "Looks at a folder."}
    send(cost, body("Hello?"), body("Hello?", "And now?", tools=[other]))
    assert failure(lambda: cost.assert_prefix_stable("tools", "system")).splitlines() == [
        "tools are not stable",
        "  call 2: tools.0.description (look) changed at character 12, since call 1",
        "    was  Looks at a file.",
        "    now  Looks at a folder.",
    ]
    cost.assert_prefix_stable("system")


def test_reordered_tools_are_named(cost: CacheCost) -> None:
    tools = [TOOL, {**TOOL, "name": "touch"}]
    send(cost, body("Hello?", tools=tools), body("Hello?", "And now?", tools=tools[::-1]))
    lines = failure(lambda: cost.assert_prefix_stable("tools")).splitlines()
    assert lines[1].startswith("  call 2: tools.0.name changed at character 0, since call 1")


def test_one_more_tool_is_named(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?", tools=[TOOL, {**TOOL, "name": "touch"}]))
    lines = failure(lambda: cost.assert_prefix_stable("tools")).splitlines()
    assert lines == ["tools are not stable", "  call 2: tools.1 1 block became 2 blocks, since call 1"]


def test_another_order_of_keys_is_named(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?", tools=[dict(reversed(TOOL.items()))]))
    message = failure(lambda: cost.assert_prefix_stable("tools"))
    assert "tools.0 is not as it was (other keys, or another order of keys)" in message


def test_messages_may_grow_and_not_change(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?"))
    cost.assert_prefix_stable("messages")
    changed = body("Hello?", "And then?", "Go on.")
    send(cost, changed)
    lines = failure(lambda: cost.assert_prefix_stable("messages")).splitlines()
    assert lines[:2] == [
        "messages are not stable",
        "  call 3: messages.2.content.0 changed at character 4, since call 2",
    ]


def test_fewer_messages_are_named(cost: CacheCost) -> None:
    send(cost, body("Hello?", "And now?"), body("Hello?"))
    assert "call 2: messages.1 3 messages became 1, since call 1" in failure(
        lambda: cost.assert_prefix_stable("messages")
    )


def test_conversations_are_compared_only_when_asked(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Good day?", system="Other. " * 900))
    assert failure(lambda: cost.assert_prefix_stable("system")).startswith("nothing was compared")
    message = failure(lambda: cost.assert_prefix_stable("system", across_conversations=True))
    assert message.startswith("system is not stable\n  call 2: system.0 changed at character 0")


def test_an_unknown_layer_is_an_error(cost: CacheCost) -> None:
    with pytest.raises(ValueError, match=re.escape("expected tools, system, messages; got 'sistem'")):
        cost.assert_prefix_stable("sistem")


def test_lint_has_severities_and_exceptions(cost: CacheCost) -> None:
    send(cost, body("Hello?", system="Short."))
    message = failure(cost.assert_no_lint)
    assert re.match(r"lint found 1 problem\n  CC510 warning call 1, system\.0: ", message)
    cost.assert_no_lint("error")
    cost.assert_no_lint(ignore=["CC510"])
    severity: Any = "fatal"
    with pytest.raises(ValueError, match="severity: expected error, warning, note; got 'fatal'"):
        cost.assert_no_lint(severity)


def test_an_explanation_has_its_findings(cost: CacheCost) -> None:
    send(cost, body("Hello?"), body("Hello?", "And now?", system=f"New. {GUIDE}"))
    assert [one.code for one in cost.explain().findings] == ["CC110"]
