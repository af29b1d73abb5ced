"""The answers of the page about small logs: sessions, calls, blocks, what-ifs."""

from __future__ import annotations

import json
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.bill_sessions import MAIN, SMALL, write_sessions
from tests.command_runs import printed, run_here
from tests.live.viewer_client import Client
from tests.viewer_logs import requests, source_of, write_log

from cachecost.live.viewer.sessions_source import SessionsSource

CLASSES = ("read", "write_5m", "write_1h", "input")
COLUMNS = (
    *("number", "start", "model", "agent", *CLASSES, "output", "cost_usd", "rewritten_usd", "rewritten_tokens"),
    *("cause", "is_human", "idle_s", "event"),
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two sessions, one of which is not billed, and the transcripts of two others."""
    folder = tmp_path_factory.mktemp("logs")
    write_log(folder / "billed.jsonl", list(requests(4)), session="s1")
    write_log(folder / "plain.jsonl", list(requests(3, "11:00")), is_billed=False, session="s2")
    write_sessions(folder / "projects")
    return folder


@pytest.fixture(scope="module")
def source(logs: Path) -> SessionsSource:
    return source_of(logs)


@pytest.fixture(scope="module")
def client(source: SessionsSource) -> Client:
    return Client(source)


def total(values: list[str | None]) -> Decimal:
    return sum((Decimal(value) for value in values if value is not None), Decimal(0))


def test_the_list_has_all_sessions(client: Client) -> None:
    found = client.get("api/sessions").json
    assert {row["id"] for row in found["sessions"]} == {"s1", "s2", MAIN, SMALL}
    costs = [Decimal(row["cost_usd"]) for row in found["sessions"]]
    assert costs == sorted(costs, reverse=True)
    assert total([row["cost_usd"] for row in found["sessions"]]) == Decimal(found["total"]["cost_usd"])
    assert found["total"]["sessions"] == 4
    agents = {row["id"]: row["agents"] for row in found["sessions"]}
    assert agents == {"s1": 1, "s2": 1, MAIN: 3, SMALL: 1}


def test_the_list_says_what_the_bill_says(logs: Path, client: Client) -> None:
    bill = json.loads(printed("bill", logs / "projects", "--json"))
    rows = {row["id"]: row for row in client.get("api/sessions").json["sessions"]}
    for row in bill["rows"]:
        mine = rows[row["key"]]
        for name in ("session", "project", "client", "first", "last", "calls", "hit_rate", "cost_usd"):
            assert mine[name] == row[name]
        assert mine["rewritten_usd"] == row["rewritten_usd"]
    assert rows[MAIN]["most"] == "idle longer than the TTL 1 ×"


@pytest.mark.parametrize("id_", ["s1", "s2", MAIN, SMALL])
def test_columns_are_as_long_as_there_are_calls(client: Client, id_: str) -> None:
    answer = client.get(f"api/session/{id_}").json
    calls = answer["calls"]
    assert tuple(calls) == COLUMNS
    assert {len(column) for column in calls.values()} == {len(calls["number"])}
    assert calls["number"] == list(range(1, len(calls["number"]) + 1))
    for name, names in (("model", answer["models"]), ("agent", answer["agents"]), ("cause", answer["causes"])):
        assert set(calls[name]) <= set(range(len(names)))
    assert total(calls["cost_usd"]) == Decimal(answer["cost_usd"])
    assert total(calls["rewritten_usd"]) == Decimal(answer["rewritten_usd"])


@pytest.mark.parametrize(
    ("id_", "flags"), [("s1", (True, True, True)), ("s2", (False, True, True)), (MAIN, (True, True, True))]
)
def test_a_session_says_what_is_known_of_it(client: Client, id_: str, flags: tuple[bool, bool, bool]) -> None:
    answer = client.get(f"api/session/{id_}").json
    assert (answer["has_bill"], answer["has_blocks"], answer["has_text"]) == flags


def test_the_moments_are_the_most_expensive_rewrites(client: Client) -> None:
    answer = client.get(f"api/session/{MAIN}").json
    costs = [Decimal(moment["cost_usd"]) for moment in answer["moments"]]
    assert costs == sorted(costs, reverse=True) and 0 < len(costs) <= 5
    first = answer["moments"][0]
    assert answer["calls"]["rewritten_usd"][first["call"] - 1] == first["cost_usd"]
    assert first["words"] == "idle for 13 min, longer than the 5m TTL"  # without what the page shows beside it


def test_sub_agents_stand_in_the_order_of_time(client: Client) -> None:
    answer = client.get(f"api/session/{MAIN}").json
    assert answer["agents"] == ["main", "agent 1", "agent 2"]
    starts = answer["calls"]["start"]
    assert starts == sorted(starts)
    places = {client.get(f"api/session/{MAIN}/call/{n}").json["call"]["file"] for n in answer["calls"]["number"]}
    assert {Path(path).name for path in places} == {f"{MAIN}.jsonl", "agent-a1.jsonl", "agent-b2.jsonl"}


def test_a_log_without_bills_is_simulated(logs: Path, client: Client) -> None:
    rows = [json.loads(line) for line in printed("replay", logs / "plain.jsonl", "--json").splitlines()]
    answer = client.get("api/session/s2").json
    assert answer["calls"]["cost_usd"] == [row["cost_usd"] for row in rows]
    assert answer["calls"]["read"] == [row["usage"]["cache_read_input_tokens"] for row in rows]


@pytest.mark.parametrize("id_", ["s1", "s2", MAIN])
def test_the_replay_stands_in_the_order_of_the_calls(client: Client, id_: str) -> None:
    answer = client.get(f"api/session/{id_}/simulated").json
    calls = client.get(f"api/session/{id_}").json["calls"]
    assert answer["calls"]["number"] == calls["number"]
    assert {len(column) for column in answer["calls"].values()} == {len(calls["number"])}
    assert total(answer["calls"]["cost_usd"]) == Decimal(answer["cost_usd"])
    assert answer["billed_usd"] == (None if id_ == "s2" else client.get(f"api/session/{id_}").json["cost_usd"])
    assert all(tokens > 0 and ttl in ("5m", "1h") for call in answer["calls"]["breakpoints"] for tokens, ttl in call)


@pytest.mark.parametrize("id_", ["s1", "s2", MAIN, SMALL])
def test_blocks_add_up_to_the_input_of_a_call(client: Client, id_: str) -> None:
    calls = client.get(f"api/session/{id_}").json["calls"]
    for number in calls["number"]:
        answer = client.get(f"api/session/{id_}/call/{number}").json
        assert [block["n"] for block in answer["blocks"]] == list(range(1, len(answer["blocks"]) + 1))
        sent = sum(calls[name][number - 1] for name in CLASSES)
        assert sum(block["tokens"] for block in answer["blocks"]) == sent
        costs = dict(answer["call"]["cost_by_class_usd"])
        assert costs.pop("rewritten") == calls["rewritten_usd"][number - 1]
        assert total(list(costs.values())) == Decimal(answer["call"]["cost_usd"])


def test_a_call_shows_the_character_that_changed(client: Client) -> None:
    answer = client.get("api/session/s1/call/3").json
    assert answer["before"] == 2
    assert answer["call"]["cause"] == "system_changed"
    changed = [block for block in answer["blocks"] if block["change"] == "changed"]
    assert [block["kind"] for block in changed] == ["text"]
    assert changed[0]["layer"] == "system" and changed[0]["before_n"] == changed[0]["n"]
    found = answer["difference"]
    assert (found["block"], found["was"], found["now"]) == (changed[0]["n"], "0", "5")
    assert found["before"].endswith("Current time: 10:0") and found["after"].startswith(". Read")
    assert {block["state"] for block in answer["blocks"]} == {"hidden", "write_5m"}
    assert [block["breakpoint"] for block in answer["blocks"] if block["breakpoint"]] == ["5m", "5m"]


def test_states_follow_the_bill(client: Client) -> None:
    answer = client.get("api/session/s1/call/2").json
    states = [block["state"] for block in answer["blocks"] if block["state"] != "hidden"]
    order = ["read", "write_1h", "write_5m", "input"]
    assert states == sorted(states, key=order.index) and {"read", "write_5m"} <= set(states)


def test_the_first_call_has_none_before(client: Client) -> None:
    answer = client.get("api/session/s1/call/1").json
    assert (answer["before"], answer["difference"], answer["gone"]) == (None, None, [])
    assert {block["change"] for block in answer["blocks"] if block["state"] != "hidden"} == {"new"}


def test_a_block_has_its_text_and_an_inline_difference(client: Client) -> None:
    number = client.get("api/session/s1/call/3").json["difference"]["block"]
    answer = client.get(f"api/session/s1/call/3/block/{number}").json
    assert answer["is_cut"] is False
    assert "".join(text for kind, text in answer["parts"] if kind != "gone") == answer["text"]
    assert "".join(text for kind, text in answer["parts"] if kind != "new") == answer["before"]
    assert [part for part in answer["parts"] if part[0] != "same"] == [["gone", "00"], ["new", "05"]]


def test_tools_have_names(client: Client) -> None:
    blocks = client.get("api/session/s1/call/1").json["blocks"]
    assert [block["name"] for block in blocks if block["kind"] == "tool"] == ["read_file"]


def test_the_first_value_of_each_choice_is_as_sent(client: Client) -> None:
    answer = client.get("api/session/s1/options").json
    for name in ("ttl", "models", "hosts", "keep_alive", "compaction"):
        assert answer[name][0] == "as sent"
    assert answer["breakpoints"][0]["name"] == "as sent"
    assert {"5m", "1h"} <= set(answer["ttl"])
    assert {"claude-code", "none"} <= {one["name"] for one in answer["breakpoints"]}


CHOICES = (
    "ttl=1h",
    "breakpoints=none",
    "breakpoints=system-only",
    "breakpoints=claude-code&ttl=1h",
    "keep_alive=240s:2",
    "model=claude-haiku-4-5",
    "host=bedrock",
    "ttl=1h&keep_alive=295s&model=claude-haiku-4-5",
    "compaction=1000",
)


@pytest.mark.parametrize("choices", CHOICES)
def test_the_command_gives_the_same_figures(client: Client, choices: str) -> None:
    answer = client.get(f"api/session/s1/whatif?{choices}").json
    words = shlex.split(answer["command"])
    assert words[0] == "cachecost"
    asked = json.loads(printed(*words[1:], "--json"))["asked"]
    assert Decimal(asked["saving_usd"]) == -Decimal(answer["difference_usd"])
    assert Decimal(answer["cost_usd"]) - Decimal(answer["basis_usd"]) == Decimal(answer["difference_usd"])
    assert total(answer["calls"]["cost_usd"]) == Decimal(answer["cost_usd"])
    assert {len(column) for column in answer["calls"].values()} == {len(answer["calls"]["number"])}
    assert answer["calls"]["number"].count(0) == answer["extra_calls"]


@pytest.mark.parametrize("choices", [*CHOICES, "ttl=1h:tools", "ttl=1h:tools%2Bsystem", ""])
def test_the_scenario_can_be_run(client: Client, tmp_path: Path, choices: str) -> None:
    path = tmp_path / "what-if.yaml"
    path.write_text(client.get(f"api/session/s1/whatif?{choices}").json["yaml"])
    done = run_here("run", path, "--no-report", "--json")
    assert done.returncode == 0, done.stderr
    names = [one["name"] for one in json.loads(done.stdout)["strategies"]]
    assert names == (["as sent", "what if"] if choices not in ("", "host=bedrock") else ["as sent"])


def test_a_session_of_a_log_of_several_is_cut_out_first(tmp_path: Path) -> None:
    one = write_log(tmp_path / "one.jsonl", list(requests(4)), session="s1").read_text()
    two = write_log(tmp_path / "two.jsonl", list(requests(3, "09:00")), session="s2").read_text()
    both = tmp_path / "both.jsonl"
    both.write_text(one + two)
    answer = Client(source_of(both)).get("api/session/s1/whatif?ttl=1h").json
    cut, _, asks = answer["command"].partition(" && ")
    assert run_here(*shlex.split(cut)[1:], cwd=tmp_path).returncode == 0
    done = run_here(*shlex.split(asks)[1:], "--json", cwd=tmp_path)
    assert Decimal(json.loads(done.stdout)["asked"]["saving_usd"]) == -Decimal(answer["difference_usd"])


def test_as_sent_changes_nothing(client: Client) -> None:
    answer = client.get("api/session/s1/whatif?ttl=as%20sent&model=").json
    assert (answer["difference_usd"], answer["extra_calls"], answer["words"]) == ("0", 0, "As sent.")
    assert answer["calls"]["read"] == client.get("api/session/s1/simulated").json["calls"]["read"]


def test_a_wrong_value_names_the_nearest(client: Client) -> None:
    answer = client.get("api/session/s1/whatif?breakpoints=automatc")
    assert answer.status == 400
    assert "did you mean 'automatic'?" in answer.json["error"]["message"]


def test_a_recording_without_content_shows_sizes(logs: Path, tmp_path: Path) -> None:
    made = tmp_path / "bare.jsonl"
    printed("import", logs / "billed.jsonl", "-o", made, "--content", "digest")
    client = Client(source_of(made))
    id_ = client.get("api/sessions").json["sessions"][0]["id"]
    answer = client.get(f"api/session/{id_}").json
    assert (answer["has_bill"], answer["has_blocks"], answer["has_text"]) == (True, True, False)
    call = client.get(f"api/session/{id_}/call/3").json
    assert call["difference"] is None and call["has_text"] is False
    real = [block for block in call["blocks"] if block["kind"] != "hidden"]
    assert all(block["size"] and block["digest"] and not block["text"] for block in real)
    assert [block["change"] for block in real][:2] == ["same", "changed"]
    block = client.get(f"api/session/{id_}/call/3/block/{real[1]['n']}").json
    assert (block["text"], block["before"], block["parts"]) == ("", None, [])


def test_a_bill_alone_has_no_blocks(tmp_path: Path) -> None:
    path = tmp_path / "bills.jsonl"
    usage = {"input_tokens": 5, "cache_read_input_tokens": 2_000, "output_tokens": 10}
    row = {"timestamp": "2026-03-02T10:00:00Z", "request": {"model": "claude-opus-4-5", "messages": []}, "usage": usage}
    path.write_text(json.dumps(row) + "\n")
    client = Client(source_of(path))
    id_ = client.get("api/sessions").json["sessions"][0]["id"]
    assert client.get(f"api/session/{id_}").json["has_blocks"] is False
    assert client.get(f"api/session/{id_}/simulated").status == 422
    call = client.get(f"api/session/{id_}/call/1").json
    assert (call["blocks"], call["simulated"], call["call"]["cost_usd"]) == ([], None, "0.001275")


def test_logs_that_are_gone_are_an_error_of_the_call_alone(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.jsonl", list(requests(2)), session="s1")
    client = Client(source_of(path))
    path.unlink()
    assert client.get("api/session/s1").status == 200
    answer = client.get("api/session/s1/call/1")
    assert answer.status == 422 and not client.said


HOSTILE = "<script>alert(1)</script> \u202eevil\u2066 \x1b[31mred\x07 \ud83d\ude00 \u0000"


def test_foreign_text_is_inert(tmp_path: Path) -> None:
    bodies = list(requests(2))
    for body in bodies:
        body["system"][0]["text"] = HOSTILE + body["system"][0]["text"]
        body["tools"][0] = {**body["tools"][0], "name": "read\u202efile"}
    client = Client(source_of(write_log(tmp_path / "a.jsonl", bodies, session="s\u202e1")))
    id_ = client.get("api/sessions").json["sessions"][0]["id"]
    assert id_.isalnum()
    paths = ("api/sessions", f"api/session/{id_}", f"api/session/{id_}/call/2", f"api/session/{id_}/call/2/block/3")
    for path in (*paths, f"api/session/{id_}/page"):
        text = client.get(path).body.decode()
        assert not [
            one for one in map(str, json_texts(text)) if any(letter in one for letter in "\u202e\u2066\x1b\x07")
        ]
    shown = client.get(f"api/session/{id_}/call/2/block/3").json["text"]
    assert shown.startswith("<script>alert(1)</script> \\u202eevil\\u2066 \\u001b[31mred\\u0007 😀 \\u0000")


def json_texts(text: str) -> list[Any]:
    """All texts of a JSON answer; of a page, the page itself."""
    if not text.startswith("{"):
        return [text]
    found: list[Any] = []
    json.loads(text, object_pairs_hook=lambda pairs: found.extend(one for pair in pairs for one in pair))
    return found


def test_a_what_if_is_compared_with_the_replay_that_the_page_shows(tmp_path: Path) -> None:
    """Also where the bill read less than the requests explain: both hold that loss."""
    log = write_log(tmp_path / "a.jsonl", list(requests(6)), session="s1")
    lines = log.read_text().splitlines()
    row = json.loads(lines[4])
    usage = row["usage"]
    usage["cache_creation_input_tokens"] += usage["cache_read_input_tokens"]
    usage["cache_read_input_tokens"] = 0
    usage.pop("cache_creation", None)
    log.write_text("\n".join([*lines[:4], json.dumps(row), *lines[5:]]) + "\n")
    client = Client(source_of(log))
    simulated = client.get("api/session/s1/simulated").json
    answer = client.get("api/session/s1/whatif?ttl=5m").json
    assert simulated["calls"]["read"][4] == 0
    assert simulated["cost_usd"] == answer["basis_usd"]
    for name in CLASSES:
        assert sum(simulated["calls"][name]) == answer["basis"][name] == sum(answer["calls"][name])
    assert (answer["basis"]["calls"], answer["difference_usd"]) == (6, "0")
    assert answer["basis"]["output"] == sum(answer["calls"]["output"])
