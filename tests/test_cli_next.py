"""`cachecost next`: the table, its JSON, and what is wrong with its arguments."""

import json
import random
from pathlib import Path

import pytest

import cachecost
from bill_sessions import BEGIN, MAIN, SMALL, write_sessions
from command_runs import printed, run_here

SOON = "2026-03-03T23:52:00"
"""A minute after the last call of the small session."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sessions(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(autouse=True)
def remember_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_STORE", "off")


def test_the_table_answers_first(folder: Path) -> None:
    text = printed("next", folder, "--at", SOON, "--model", "claude-sonnet-4-5", "--tools", 5000)
    lines = text.splitlines()
    assert lines[0].startswith("next message $0.01 (cold: $0.20) · 20k tokens are warm until")
    assert lines[1] == "session 1e0816f0 · api · claude-opus-4-5-20251101 · 2 calls · $0.22 · cache hit rate 50%"
    names = [line.strip().split("  ")[0] for line in lines[4:11]]
    assert names == [
        "now",
        "after the TTL",
        "with claude-sonnet-4-5",
        "with another effort level",
        "after /compact",
        "5,000 tokens of tools added",
        "5,000 tokens of tools deferred",
    ]
    assert "Assumes a" in text and "prices its first call only" in text


def test_the_json_is_what_the_api_says(folder: Path) -> None:
    made = json.loads(printed("next", folder, "--at", SOON, "--tokens", 300, "--json"))
    same = cachecost.next_message(folder, at=SOON, new_tokens=300)
    assert made["cost_usd"] == str(same.cost).rstrip("0")
    assert made["usage"]["cache_read_input_tokens"] == same.message.usage.read == 20_100
    assert (made["is_warm"], made["is_simulated"], made["new_tokens"]) == (True, False, 300)
    assert made["session"]["session"] == SMALL and made["session"]["ttl"] == "1h"
    assert [one["cost_usd"] for one in made["alternatives"]][1] == made["cold"]["cost_usd"]
    assert same.state.static_tokens == made["session"]["static_tokens"]


def test_a_session_is_named_by_the_beginning_of_its_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder / "home"))
    for path in folder.rglob("*.jsonl"):
        target = folder / "home" / "projects" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    made = json.loads(printed("next", MAIN[:8], "--at", "2026-03-03T00:30", "--json"))
    assert made["session"]["session"] == MAIN
    assert made["session"]["calls"] == 10, "sub-agents are no calls of the main thread"
    done = run_here("next", "1e08", "--at", SOON)
    assert done.returncode == 2 and "SESSION: 2 sessions begin with '1e08'" in done.stderr


def test_after_an_hour_it_is_cold(folder: Path) -> None:
    made = json.loads(printed("next", folder, "--at", "2026-03-05T00:00", "--json"))
    assert not made["is_warm"] and made["cost_usd"] == made["cold"]["cost_usd"]
    assert made["keep_alive"] is None


def test_a_message_in_a_file_has_its_own_length(folder: Path, tmp_path: Path) -> None:
    text, message = tmp_path / "text.txt", tmp_path / "message.json"
    text.write_text("word " * 400)
    message.write_text(json.dumps({"role": "user", "content": "word " * 400}))
    sizes = {
        json.loads(printed("next", folder, "--message", path, "--at", SOON, "--counter", "bytes", "--json"))[
            "new_tokens"
        ]
        for path in (text, message)
    }
    assert len(sizes) == 1 and 400 < sizes.pop() < 4000


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["--tokens", "5", "--message", "MESSAGE"], 2, "--tokens: not with --message"),
        (["--at", "noon"], 2, "expected a time like 2026-03-07T14:30 (UTC); got 'noon'"),
        (["--model", "no-model", "--at", SOON], 3, "no price known for no-model"),
        (["--tokens", "many"], 2, "many"),
    ],
)
def test_wrong_options(folder: Path, tmp_path: Path, words: list[str], code: int, expected: str) -> None:
    message = tmp_path / "m.txt"
    message.write_text("hello")
    done = run_here("next", folder, *[word.replace("MESSAGE", str(message)) for word in words])
    assert (done.returncode, expected in done.stderr) == (code, True), done.stderr


def test_nothing_found(tmp_path: Path) -> None:
    done = run_here("next", tmp_path)
    assert done.returncode == 3 and "no sessions found" in done.stderr


def test_a_request_log_is_simulated(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = " ".join(random.Random(1).choices(("river", "bend", "people"), k=3000))
    body = {
        "model": "claude-opus-4-5",
        "max_tokens": 9,
        "cache_control": {"type": "ephemeral"},
        "messages": [{"role": "user", "content": words}],
    }
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 4500, "cache_read_input_tokens": 0, "output_tokens": 5}
    response = {"content": [{"type": "text", "text": "Yes."}]}
    call = {"timestamp": BEGIN.isoformat(), "request": body, "usage": usage, "response": response}
    log.write_text(json.dumps(call) + "\n")
    made = json.loads(printed("next", log, "--at", "2026-03-02T23:52", "--tokens", 50, "--json"))
    assert made["is_simulated"] and made["is_warm"]
    assert made["usage"]["cache_read_input_tokens"] == 4500
