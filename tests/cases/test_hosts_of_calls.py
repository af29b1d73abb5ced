"""Who served a call: what the recording says, else the address, the message's id, `--host`, the model's name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of, rows_of, run_in

HOME = "08-several-makers"
USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 5_000,
    "cache_read_input_tokens": 1_000,
    "output_tokens": 100,
}
OPUS = Decimal("0.0343")


def test_each_maker_s_model_is_priced_by_its_own_rows(run_case: Run) -> None:
    bill = json_of(run_case(HOME, "bill", "home/.claude/projects", "--by", "model", "--json"))
    costs = {row["key"]: Decimal(row["cost_usd"]) for row in bill["rows"]}
    assert bill["unpriced"] == []
    assert costs["claude-opus-5"] == OPUS
    assert costs["us.anthropic.claude-opus-5"] == OPUS * Decimal("1.1")
    assert {name: f"{cost:.5f}" for name, cost in costs.items() if not name.endswith("claude-opus-5")} == {
        "glm-5": "0.00553",
        "kimi-k3": "0.01683",
        "deepseek-v4-pro": "0.00353",
    }


@pytest.mark.parametrize("command", ["replay", "validate", "explain", "whatif"])
def test_no_command_takes_them_for_anthropic_s(run_case: Run, command: str) -> None:
    done = run_case(HOME, command, "home/.claude/projects", "--json")
    assert "unknown model" not in done.stdout + done.stderr


def test_what_import_writes_costs_the_same(run_case: Run) -> None:
    imported = json_of(run_case(HOME, "import", "home/.claude/projects", "-o", "all.jsonl", "--json"))
    again = json_of(run_case(HOME, "bill", "all.jsonl", "--json"))
    assert Decimal(imported["billed_cost_usd"]) == Decimal(again["billed_usd"])
    assert f"{Decimal(again['billed_usd']):.4f}" == "0.0979"


def test_the_option_names_one_host_for_all_that_say_nothing(run_case: Run) -> None:
    done = run_case(HOME, "bill", "home/.claude/projects", "--host", "anthropic", "--json")
    assert done.returncode == 3
    assert sum(row["calls"] for row in json.loads(done.stdout)["unpriced"]) == 4


def test_a_log_of_deepseek_needs_no_host(run_case: Run) -> None:
    name = "05-deepseek-tool-order"
    alone = run_case(name, "bill", "log.jsonl", "--json")
    assert json_of(alone) == json_of(run_case(name, "bill", "log.jsonl", "--host", "deepseek", "--json"))
    assert f"{Decimal(json_of(alone)['billed_usd']):.5f}" == "0.00292"
    rows = [rows_of(run_case(name, "replay", "log.jsonl", "--json", *host)) for host in ([], ["--host", "deepseek"])]
    assert rows[0] == rows[1]


def log_of(folder: Path, **row: Any) -> Path:
    model = row.pop("model", "claude-opus-5")
    request = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    (folder / "log.jsonl").write_text(
        json.dumps({"timestamp": "2026-11-20T12:00:00Z", "request": request, "usage": USAGE, **row}) + "\n"
    )
    return folder


@pytest.mark.parametrize(
    ("row", "cost"),
    [
        ({}, "0.03430"),
        ({"response": {"id": "msg_bdrk_01abc", "content": []}}, "0.03773"),
        ({"response": {"id": "msg_vrtx_01abc", "content": []}}, "0.03430"),
        (
            {"response": {"id": "msg_bdrk_01abc", "content": []}, "url": "https://api.anthropic.com/v1/messages"},
            "0.03430",
        ),
        ({"response": {"id": "msg_bdrk_01abc", "content": []}, "host": "anthropic"}, "0.03430"),
        ({"model": "eu.anthropic.claude-opus-5"}, "0.03773"),
        ({"model": "global.anthropic.claude-opus-5"}, "0.03430"),
        ({"model": "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5"}, "0.03773"),
        ({"model": "claude-opus-5@default"}, "0.03430"),
        ({"model": "anthropic/claude-opus-5"}, "0.03430"),
        ({"model": "claude-opus-5[1m]"}, "0.03430"),
        ({"model": "z-ai/glm-5"}, "0.00553"),
        ({"model": "glm-5", "url": "https://api.z.ai/api/anthropic/v1/messages"}, "0.00553"),
        ({"url": "http://localhost:4000/v1/messages"}, "0.03430"),
        ({"url": "https://[KEY]/v1/messages"}, "0.03430"),
    ],
)
def test_the_host_decides_the_price(tmp_path: Path, row: Mapping[str, Any], cost: str) -> None:
    bill = json_of(run_in(log_of(tmp_path, **row), "bill", "log.jsonl", "--json"))
    assert f"{Decimal(bill['billed_usd']):.5f}" == cost


@pytest.mark.parametrize(
    ("row", "host", "behind", "cost"),
    [
        ({"model": "kimi-k3", "url": "https://api.avian.io/v1/messages"}, "api.avian.io", "moonshot", "0.01683"),
        (
            {"model": "moonshotai/kimi-k3", "url": "https://api.avian.io/v1/messages"},
            "api.avian.io",
            "moonshot",
            "0.01683",
        ),
        ({"url": "https://llm.firm.example/v1/messages"}, "llm.firm.example", "bedrock", "0.03773"),
        ({"model": "glm-5", "url": "http://127.0.0.1:8000/v1/messages"}, "127.0.0.1", "zai", "0.00553"),
    ],
)
def test_an_unknown_machine_has_no_one_s_prices(
    tmp_path: Path, row: Mapping[str, Any], host: str, behind: str, cost: str
) -> None:
    done = run_in(log_of(tmp_path, **row), "bill", "log.jsonl", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["billed_usd"]) == (3, "0")
    reason = f"no prices for host '{host}': name the host behind it with --host"
    assert found["unpriced"] == [{"reason": reason, "calls": 1, "tokens": 6110}]
    named = json_of(run_in(tmp_path, "bill", "log.jsonl", "--json", "--host", behind))
    assert f"{Decimal(named['billed_usd']):.5f}" == cost


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.avian.io/v1/messages", "api.avian.io"),
        ("https://api.moonshot.cn/v1/messages", "api.moonshot.cn"),
        ("https://eu.llm.firm.example:8443/anthropic/v1/messages", "eu.llm.firm.example"),
        ("http://192.168.1.9:8000/v1/messages", "192.168.1.9"),
    ],
)
def test_validate_judges_no_call_of_an_unknown_machine(tmp_path: Path, url: str, host: str) -> None:
    log = log_of(tmp_path, model="kimi-k3", url=url)
    (log / "log.jsonl").write_text((log / "log.jsonl").read_text() * 3)
    done = run_in(log, "validate", "log.jsonl", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["calls"], found["hosts"]) == (3, 0, [])
    assert [one["why"] for one in found["not_judged"]] == [
        f"no rules for host '{host}': name the host behind it with --host"
    ] * 3
    said = run_in(log, "validate", "log.jsonl").stdout
    assert f"not judged: log.jsonl:1 and 2 more: no rules for host '{host}'" in " ".join(said.split())
    behind = json_of(run_in(log, "validate", "log.jsonl", "--json", "--host", "moonshot"))
    assert (behind["calls"], behind["not_judged"]) == (3, [])


def test_the_advisor_s_part_belongs_to_its_own_model(tmp_path: Path) -> None:
    passes = [
        {"type": "message", **USAGE},
        {"type": "advisor_message", "model": "claude-fable-5", "input_tokens": 2_000, "output_tokens": 300},
    ]
    log = log_of(tmp_path, model="claude-sonnet-5", usage={**USAGE, "iterations": passes})
    bill = json_of(run_in(log, "bill", "log.jsonl", "--by", "model", "--json"))
    costs = {row["key"]: Decimal(row["cost_usd"]) for row in bill["rows"]}
    alone = json_of(run_in(log_of(tmp_path, model="claude-sonnet-5"), "bill", "log.jsonl", "--json"))
    assert costs["claude-sonnet-5"] == Decimal(alone["billed_usd"])
    advised = {"usage": {"input_tokens": 2_000, "output_tokens": 300}, "model": "claude-fable-5"}
    fable = json_of(run_in(log_of(tmp_path, **advised), "bill", "log.jsonl", "--json"))
    assert costs["claude-fable-5"] == Decimal(fable["billed_usd"])
    assert sum(costs.values()) == Decimal(bill["billed_usd"])
