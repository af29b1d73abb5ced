"""A dollar is right by construction: the moment, the tier, the region, the fees, and what a gateway says it charged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, copy_case, json_of, rows_of, run_in

from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.next_message.history import session_state
from cachecost.analysis.next_message.state import models_in
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from conversations.session_stores import write_lines
from step_records import read_steps, steps_to_records

MTOK = Decimal("1e-6")
PEAK = "2026-11-20T02:00:00Z"
USAGE = {"input_tokens": 6000, "cache_read_input_tokens": 4000, "cache_creation_input_tokens": 0, "output_tokens": 100}
DEEPSEEK = (6000 * Decimal("0.66") + 4000 * Decimal("0.022") + 100 * Decimal("1.98")) * MTOK


def by_class(bill: Mapping[str, Any]) -> dict[str, Decimal]:
    return {name: Decimal(usd) for name, usd in bill["cost_by_class_usd"].items()}


def written(folder: Path, *rows: Mapping[str, Any]) -> Path:
    return write_lines(folder / "log.jsonl", rows).parent


def call(**changes: Any) -> dict[str, Any]:
    body = {"max_tokens": 500, "messages": [{"role": "user", "content": "mi fa sol"}], **changes.pop("body", {})}
    return {"timestamp": PEAK, "request": body, "usage": {**USAGE, **changes.pop("usage", {})}, **changes}


def chat(body: Mapping[str, Any], usage: Mapping[str, Any], **answer: Any) -> dict[str, Any]:
    counts = {"prompt_tokens": 3000, "completion_tokens": 100, "total_tokens": 3100, **usage}
    said = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    response = {"id": "gen-0", "object": "chat.completion", "created": 1795176000, "choices": [said], "usage": counts}
    request = {"messages": [{"role": "user", "content": "mi fa sol"}], **body}
    return {"timestamp": "2026-11-20T12:00:00Z", "request": request, "response": {**response, **answer}}


# ------------------------------------------------------------------------------------------------- moment


def test_a_bill_at_peak_is_that_of_the_peak(run_case: Run) -> None:
    bill = json_of(run_case("23-deepseek-peak", "bill", "log.jsonl", "--json"))
    assert Decimal(bill["billed_usd"]) == 2 * DEEPSEEK == Decimal("0.008492")


def test_the_billed_line_of_replay_is_that_of_the_peak(run_case: Run) -> None:
    stdout = run_case("23-deepseek-peak", "replay", "log.jsonl").stdout
    billed, simulated = (
        next(line for line in stdout.splitlines() if name in line) for name in ("billed", "as recorded")
    )
    assert billed.endswith("$0.0085") and simulated.endswith("$0.0136")


MOMENTS = """
2026-11-20T00:59:59Z 1
2026-11-20T01:00:00Z 2
2026-11-20T03:59:59Z 2
2026-11-20T04:00:00Z 1
2026-11-20T09:59:00+00:00 2
2026-11-20T10:30:00+08:00 2
2026-11-21T02:00:00Z 1
2026-10-02T02:00:00Z 1
"""


@pytest.mark.parametrize("line", MOMENTS.strip().splitlines())
def test_every_command_prices_the_hour_of_the_call(line: str, tmp_path: Path) -> None:
    at, times = line.split()
    folder = written(tmp_path, call(timestamp=at, host="deepseek", body={"model": "deepseek-v4-pro"}))
    expected = int(times) * DEEPSEEK
    assert Decimal(json_of(run_in(folder, "bill", "log.jsonl", "--json"))["billed_usd"]) == expected
    [row] = json_of(run_in(folder, "bill", "log.jsonl", "--session", "log", "--json"))["calls"]
    assert Decimal(row["cost_usd"]) == expected
    input_usd = expected - int(times) * 100 * Decimal("1.98") * MTOK
    assert Decimal(str(json_of(run_in(folder, "validate", "log.jsonl", "--json"))["billed_usd"])) == input_usd


def test_calls_of_one_day_are_not_summed_at_one_price(tmp_path: Path) -> None:
    hours = ("00:30", "02:00", "04:30", "06:30")
    rows = [call(timestamp=f"2026-11-20T{at}:00Z", host="deepseek", body={"model": "deepseek-v4-pro"}) for at in hours]
    bill = json_of(run_in(written(tmp_path, *rows), "bill", "log.jsonl", "--json"))
    assert Decimal(bill["billed_usd"]) == 6 * DEEPSEEK
    assert sum(by_class(bill).values()) == Decimal(bill["billed_usd"])


# ------------------------------------------------------------------------------------------- tier and region


def test_ultrafast_has_its_own_price(run_case: Run) -> None:
    bill = json_of(run_case("26-ultrafast-tier", "bill", "log.jsonl", "--json"))
    assert Decimal(bill["billed_usd"]) == 6 * (2000 * 2 + 1000 * Decimal("0.1") + 100 * 10) * MTOK == Decimal("0.0306")


TIERS = """
openai     gpt-6.1-sol      request   service_tier   scale        -
openai     gpt-6.1-terra    request   service_tier   ultrafast    -
openai     gpt-6.1-terra    request   service_tier   priority     2
openai     gpt-6.1-terra    request   service_tier   fast         2
openai     gpt-6.1-terra    request   service_tier   flex         0.5
openai     gpt-6.1-terra    request   service_tier   default      1
openai     gpt-6.2-sol      request   service_tier   flex         -
anthropic  claude-opus-5-5  usage     service_tier   priority     -
anthropic  claude-opus-5-5  usage     service_tier   standard     1
anthropic  claude-opus-5-5  usage     inference_geo  us           1.1
anthropic  claude-opus-5-5  usage     inference_geo  eu           -
anthropic  claude-opus-5-5  usage     inference_geo  global       1
anthropic  claude-opus-4-5  usage     inference_geo  not_available 1
anthropic  claude-opus-5-5  request   speed          fast         2
anthropic  claude-opus-5-5  request   speed          ultrafast    -
anthropic  claude-opus-4-5  request   speed          fast         -
gemini     gemini-4-neon    request   service_tier   priority     1.8
gemini     gemini-3.5-flash request   service_tier   priority     -
"""


@pytest.mark.parametrize("line", TIERS.strip().splitlines())
def test_a_tier_or_region_without_a_price_is_not_evaluated(line: str, tmp_path: Path) -> None:
    host, model, where, name, value, times = line.split()
    plain = call(host=host, body={"model": model})
    ways = call(host=host, body={"model": model, **({name: value} if where == "request" else {})})
    ways["usage"] |= {name: value} if where == "usage" else {}
    (tmp_path / "plain").mkdir()
    standard = Decimal(json_of(run_in(written(tmp_path / "plain", plain), "bill", "log.jsonl", "--json"))["billed_usd"])
    result = run_in(written(tmp_path, ways), "bill", "log.jsonl", "--json")
    simulated = run_in(tmp_path, "replay", "log.jsonl", "--json", "--tokens", "bytes")
    [row] = map(json.loads, simulated.stdout.splitlines())
    if times == "-":
        assert (result.returncode, simulated.returncode, row["error"]["type"]) == (3, 3, "not_evaluated")
        bill = json.loads(result.stdout)
        assert bill["billed_usd"] == "0" and model in bill["unpriced"][0]["reason"]
    else:
        assert Decimal(json_of(result)["billed_usd"]) == standard * Decimal(times) > 0
        assert simulated.returncode == 0 and "error" not in row


def test_the_tier_that_answered_is_billed(tmp_path: Path) -> None:
    asked = chat({"model": "gpt-6.1-sol", "service_tier": "ultrafast"}, {}, service_tier="default", model="gpt-6.1-sol")
    unasked = chat({"model": "gpt-6.1-sol"}, {}, service_tier="priority", model="gpt-6.1-sol")
    standard = (3000 * 2 + 100 * 10) * MTOK
    for row, times in ((asked, 1), (unasked, 2)):
        bill = json_of(run_in(written(tmp_path, row), "bill", "log.jsonl", "--json"))
        assert Decimal(bill["billed_usd"]) == times * standard


def test_a_recorded_exchange_has_the_region_that_answered(tmp_path: Path) -> None:
    body = {"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "mi fa sol"}]}
    answer = {"id": "m", "type": "message", "model": "claude-opus-5-5", "content": [{"type": "text", "text": "ok"}]}
    geo = {**USAGE, "inference_geo": "us", "server_tool_use": {"web_search_requests": 1}}
    exchange = {
        "request": {"method": "POST", "uri": "https://api.anthropic.com/v1/messages", "body": json.dumps(body)},
        "response": {"status": {"code": 200}, "body": {"string": json.dumps({**answer, "usage": geo})}},
    }
    (tmp_path / "cassette.yaml").write_text(json.dumps({"interactions": [exchange], "version": 1}))
    bill = json_of(run_in(tmp_path, "bill", "cassette.yaml", "--json"))
    tokens = (6000 * 4 + 4000 * Decimal("0.2") + 100 * 20) * MTOK
    assert Decimal(bill["billed_usd"]) == tokens * Decimal("1.1") + Decimal("0.01")


def test_ultrafast_of_gpt_6_2_rises_when_its_promotion_ends(tmp_path: Path) -> None:
    for day, times in (("2027-02-28", 3), ("2027-03-01", 6)):
        row = call(
            host="openai", timestamp=f"{day}T12:00:00Z", body={"model": "gpt-6.2-sol", "service_tier": "ultrafast"}
        )
        bill = json_of(run_in(written(tmp_path, row), "bill", "log.jsonl", "--json"))
        assert Decimal(bill["billed_usd"]) == times * (6000 * 2 + 4000 * Decimal("0.1") + 100 * 10) * MTOK


# -------------------------------------------------------------------------------------------------- fees


def test_searches_are_part_of_the_bill(run_case: Run) -> None:
    bill = json_of(run_case("09-web-search-fee", "bill", "home/.claude/projects", "--json"))
    tokens = (10 * 2 + 10_000 * Decimal("2.5") + 100 * 10) * MTOK
    assert Decimal(bill["billed_usd"]) == tokens + 3 * Decimal("0.01") == Decimal("0.05602")
    assert by_class(bill)["fees"] == Decimal("0.03")
    assert sum(by_class(bill).values()) == Decimal(bill["necessary_usd"]) + Decimal(bill["rewritten_usd"])
    assert "$0.0300 fees of server tools" in run_case("09-web-search-fee", "bill", "home/.claude/projects").stdout


def test_searches_are_in_every_form_of_the_bill(run_case: Run, tmp_path: Path) -> None:
    where = ("09-web-search-fee", "bill", "home/.claude/projects")
    csv, page = tmp_path / "bill.csv", tmp_path / "bill.html"
    assert run_case(*where, "--csv", csv, "--html", page).returncode == 0
    assert "0.05602" in csv.read_text() and "fees" in csv.read_text() and "fees of server tools" in page.read_text()
    session = json_of(run_case(*where, "--session", "d4319fef-c66c-701f-24c8-75afda6360d6", "--json"))
    assert session["calls"][0]["cost_usd"] == "0.05602"


def test_a_session_so_far_has_its_fees_and_charges() -> None:
    usual = BilledCall(1, 1, "claude-sonnet-5", (10, 0, 10_000, 0, 100), 1784109600.0, session="s")
    searched = BilledCall(2, 2, "claude-sonnet-5", (10, 10_000, 0, 0, 100), 1784109660.0, session="s")
    searched.tool_uses, searched.is_summed = (("web_search", 3),), True
    charged = BilledCall(3, 3, "claude-sonnet-5", (10, 10_000, 0, 0, 100), 1784109720.0, session="s")
    charged.charged_usd, charged.extra = Decimal("0.5"), (("claude-opus-5", (9, 9, 9, 9, 9)),)
    state = session_state([usual, searched, charged], models_in(CallPrices(PriceBook(), RuleBook())))
    searches = (10 * 2 + 10_000 * Decimal("0.2") + 100 * 10) * MTOK + 3 * Decimal("0.01")
    assert state is not None
    assert state.cost == (10 * 2 + 10_000 * Decimal("2.5") + 100 * 10) * MTOK + searches + Decimal("0.5")


def test_a_simulation_pays_the_recorded_searches(tmp_path: Path) -> None:
    row = call(body={"model": "claude-sonnet-5"}, usage={"server_tool_use": {"web_search_requests": 2}})
    [bytes_row] = rows_of(run_in(written(tmp_path, row), "replay", "log.jsonl", "--json"))
    del row["usage"]["server_tool_use"]
    [without] = rows_of(run_in(written(tmp_path, row), "replay", "log.jsonl", "--json"))
    assert Decimal(bytes_row["cost_usd"]) - Decimal(without["cost_usd"]) == Decimal("0.02")


def test_a_batch_halves_tokens_and_no_fee(tmp_path: Path) -> None:
    row = call(
        body={"model": "claude-sonnet-5"}, usage={"server_tool_use": {"web_search_requests": 1}}, service="batch"
    )
    bill = json_of(run_in(written(tmp_path, row), "bill", "log.jsonl", "--json"))
    assert by_class(bill)["fees"] == Decimal("0.01")
    assert by_class(bill)["input"] == 6000 * 1 * MTOK


def test_openai_counts_searches_and_not_the_pages_they_open(tmp_path: Path) -> None:
    kinds = ("search", "open_page", "search", "find_in_page")
    output = [{"type": "web_search_call", "id": f"w{n}", "action": {"type": kind}} for n, kind in enumerate(kinds)]
    usage = {
        "input_tokens": 3000,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "total_tokens": 3000,
    }
    body = {"model": "gpt-6.1-sol", "input": "mi fa sol", "tools": [{"type": "web_search"}]}
    answer = {"id": "r", "object": "response", "model": "gpt-6.1-sol", "created_at": 1795176000, "output": output}
    row = {"timestamp": "2026-11-20T12:00:00Z", "request": body, "response": {**answer, "usage": usage}}
    assert by_class(json_of(run_in(written(tmp_path, row), "bill", "log.jsonl", "--json")))["fees"] == Decimal("0.02")


def test_gemini_is_billed_by_query(tmp_path: Path) -> None:
    grounding = {"webSearchQueries": ["one", "two"]}
    candidate = {"content": {"role": "model", "parts": [{"text": "ok"}]}, "groundingMetadata": grounding}
    usage = {"promptTokenCount": 20_000, "candidatesTokenCount": 300, "totalTokenCount": 20_300}
    request = {"contents": [{"role": "user", "parts": [{"text": "mi fa sol"}]}]}
    for model, fee in (("gemini-4-hydrogen", "0.028"), ("gemini-2.5-pro", "0.035")):
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
        row = {"timestamp": "2026-11-20T12:00:00Z", "host": "gemini", "model": model, "request": request}
        bill = json_of(run_in(written(tmp_path, {**row, "response": answer}), "bill", "log.jsonl", "--json"))
        assert by_class(bill)["fees"] == Decimal(fee)


def test_an_import_keeps_fees_and_charges(tmp_path: Path) -> None:
    rows = [
        call(body={"model": "claude-sonnet-5"}, usage={"server_tool_use": {"web_search_requests": 2}}),
        call(host="openrouter", body={"model": "z-ai/glm-5.3"}, usage={"cost": 0.01234}),
    ]
    before = json_of(run_in(written(tmp_path, *rows), "bill", "log.jsonl", "--json"))
    assert run_in(tmp_path, "import", "log.jsonl", "-o", "kept.jsonl", "--content", "digest").returncode == 0
    after = json_of(run_in(tmp_path, "bill", "kept.jsonl", "--json"))
    assert (after["billed_usd"], after["charged"]) == (before["billed_usd"], before["charged"])


def test_the_content_free_form_of_a_session_keeps_fees_and_tiers(run_case: Run, tmp_path: Path) -> None:
    line = '"service_tier": "standard"'
    folder = copy_case("09-web-search-fee", tmp_path / "other")
    [session] = (folder / "home").rglob("*.jsonl")
    session.write_text(session.read_text().replace(line, '"service_tier": "batch", "inference_geo": "us"'))
    steps = read_steps(session)
    kept = tmp_path / "steps.jsonl"
    write_lines(kept, steps_to_records(steps, "kept"))
    bill = json_of(run_in(tmp_path, "bill", kept, "--json"))
    tokens = (10 * 2 + 10_000 * Decimal("2.5") + 100 * 10) * MTOK
    assert Decimal(bill["billed_usd"]) == tokens * Decimal("0.55") + Decimal("0.03")
    assert bill["billed_usd"] == json_of(run_in(folder, "bill", "home/.claude/projects", "--json"))["billed_usd"]


# ------------------------------------------------------------------------------------- what was charged


def test_what_the_gateway_charged_is_the_bill(run_case: Run) -> None:
    bill = json_of(run_case("07-openrouter-hosts", "bill", "log.jsonl", "--json"))
    lines = (Path(__file__).parent / "data/07-openrouter-hosts/log.jsonl").read_text().splitlines()
    usages = [json.loads(line)["response"]["usage"] for line in lines]
    costs = [Decimal(str(usage["cost"])) for usage in usages]
    sent, answered = (sum(usage[name] for usage in usages) for name in ("prompt_tokens", "completion_tokens"))
    read = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    listed = ((sent - read) * Decimal("1.4") + read * Decimal("0.26") + answered * Decimal("4.4")) * MTOK
    assert Decimal(bill["billed_usd"]) == sum(costs)
    assert round(sum(costs), 4) == Decimal("0.0243")
    assert sum(by_class(bill).values()) == sum(costs)
    assert Decimal(bill["necessary_usd"]) + Decimal(bill["rewritten_usd"]) == sum(costs)
    assert (bill["charged"]["calls"], bill["charged"]["cost_usd"]) == (8, bill["billed_usd"])
    assert Decimal(bill["charged"]["list_price_usd"]) == listed
    stdout = run_case("07-openrouter-hosts", "bill", "log.jsonl").stdout
    assert "8 answers say what was charged: $0.0243, which counts here; at list prices $0.0373." in stdout
    assert "List prices of the API" not in stdout


def test_replay_says_both(run_case: Run) -> None:
    result = run_case("07-openrouter-hosts", "replay", "log.jsonl")
    billed = next(line for line in result.stdout.splitlines() if "billed" in line)
    assert billed.endswith("$0.0243")
    assert "at list prices $0.0373" in result.stdout + result.stderr


def test_every_call_of_a_session_has_its_charge(run_case: Run) -> None:
    session = json_of(run_case("07-openrouter-hosts", "bill", "log.jsonl", "--session", "n1", "--json"))
    assert session["calls"][0]["cost_usd"] == "0.00327"
    assert sum(Decimal(one["cost_usd"]) for one in session["calls"]) == Decimal(session["billed_usd"])


CHARGES = """
{"cost": 0.0123}                                                                                        0.0123
{"cost": 0}                                                                                             0
{"cost": 1.5e-7}                                                                                        0.00000015
{"cost": 0.001, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.02}}                     0.021
{"cost": 0.001, "is_byok": false, "cost_details": {"upstream_inference_cost": 0.02}}                    0.001
{"cost": {"total_cost": 0.006}}                                                                         0.006
{"cost_in_usd_ticks": 37756000}                                                                         0.0037756
{"cost": null}                                                                                          -
{"cost": "0.5"}                                                                                         -
{"cost": true}                                                                                          -
{"cost": -1}                                                                                            -
"""


@pytest.mark.parametrize("line", CHARGES.strip().splitlines())
@pytest.mark.parametrize("model", ["z-ai/glm-5.3", "somebody/unknown-1"])
def test_a_charge_in_any_spelling(line: str, model: str, tmp_path: Path) -> None:
    usage, expected = line.rsplit(None, 1)
    row = chat({"model": model}, json.loads(usage), model=model, provider="HostA")
    result = run_in(written(tmp_path, row), "bill", "log.jsonl", "--json")
    bill = json.loads(result.stdout)
    if expected == "-":
        assert bill["charged"]["calls"] == 0
        assert result.returncode == (0 if "glm" in model else 3)
    else:
        assert (result.returncode, Decimal(bill["billed_usd"])) == (0, Decimal(expected))
        assert sum(by_class(bill).values()) == Decimal(expected)
        assert bill["unpriced"] == []


# ---------------------------------------------------------------------------------------- TTLs and models


def test_the_ttl_of_the_request_is_that_of_implicit_breakpoints(run_case: Run) -> None:
    first, second = rows_of(run_case("24-openai-12h-implicit", "replay", "log.jsonl", "--tokens", "bytes", "--json"))
    assert first["usage"]["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 3025}
    assert Decimal(first["cost_usd"]) == 3025 * 5 * MTOK
    assert (second["usage"]["cache_read_input_tokens"], second["cause"]) == (3025, "hit")
    assert Decimal(second["cost_usd"]) == 3025 * Decimal("0.1") * MTOK


OPTIONS = """
{"ttl": "12h"}                       {}                           1h
{"ttl": "12h"}                       {"ttl": "30m"}               5m
{"ttl": "30m"}                       {"ttl": "12h"}               1h
{}                                   {"ttl": "12h"}               1h
{"mode": "explicit"}                 {"ttl": "12h"}               1h
{"mode": "explicit", "ttl": "12h"}   {}                           1h
{"mode": "explicit", "ttl": "12h"}   {"ttl": "30m"}               5m
{}                                   {}                           5m
"""


@pytest.mark.parametrize("line", OPTIONS.strip().splitlines())
def test_a_breakpoint_of_its_own_has_its_own_ttl(line: str, tmp_path: Path) -> None:
    from cachecost.conversations.readers.apis.openai import from_responses

    options, own, ttl = re.split(r" {2,}", line)
    marked = {"type": "input_text", "text": "mi", "prompt_cache_breakpoint": json.loads(own) or True}
    body = {"model": "gpt-6.1-sol", "input": [{"role": "user", "content": [marked]}]}
    body["prompt_cache_options"] = json.loads(options)
    made = from_responses(body)
    assert made["messages"][0]["content"][0]["cache_control"].get("ttl", "5m") == ttl


def test_a_new_model_is_priced(run_case: Run) -> None:
    bill = json_of(run_case("14-new-model", "bill", "log.jsonl", "--json"))
    uncached, read, output = 20_000 + 1_500 + 2_000, 38_000, 900
    expected = (uncached * Decimal("1.5") + read * Decimal("0.075") + output * Decimal("7.5")) * MTOK
    assert Decimal(bill["billed_usd"]) == expected == Decimal("0.04485")
