"""A server of one's own: tokens where no price is known, dollars where its hour has one, and how much it keeps."""

from __future__ import annotations

import json
from csv import DictReader
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import cachecost as library
from cachecost.analysis.comparison.run import run as run_scenario
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.cli import main
from cachecost.scenario import load
from cachecost.views.run.report import report_files
from conversations.session_stores import write_lines

TRACE = [(0, 1536, [1, 2, 3]), (1000, 1200, [1, 2, 4]), (2000, 1536, [5, 6, 7]), (3000, 1536, [1, 2, 3])]
"""Milliseconds, tokens, ids."""
MODEL = "Qwen/Qwen3-8B"
GPU = '[[gpu]]\nhost = "vllm"\nusd_per_hour = 3.6\nprefill_tokens_per_s = 1_000\n'
"""An input token is a dollar a million."""
SCENARIO = """\
format: 1
name: small
as_of: 2026-11-01
host: vllm
model: Qwen/Qwen3-8B
tokens: bytes
conversation:
  synthetic: {turns: 4, calls: 2, inquiries: {rate: 1}}
  head: {tools: {tokens: 800}, system: {tokens: 400}}
strategies: ["structured output, no tools", "structured output, same tools", "answer tool, auto"]
"""


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHECOST_STORE", "off")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    rows = [{"timestamp": at, "input_length": n, "output_length": 9, "hash_ids": ids} for at, n, ids in TRACE]
    return write_lines(path, rows)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def gpu(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.toml"
    path.write_text(GPU)
    return path


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def entry(args: tuple[str, ...]) -> None:
    """The command with its exit codes."""
    main(args)


def cli(*args: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(entry, [str(arg) for arg in args])


def rows_of(*args: object) -> list[dict[str, Any]]:
    done = cli("replay", *args, "--json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def reads(*args: object) -> list[int | None]:
    """What each call reads; None of one that has an error."""
    return [None if "error" in row else row["usage"]["cache_read_input_tokens"] for row in rows_of(*args)]


def test_without_a_price_calls_are_told_in_tokens(trace: Path) -> None:
    rows = rows_of(trace, "--host", "vllm")
    assert [row["cost_usd"] for row in rows] == [None] * 4
    assert reads(trace, "--host", "vllm") == [0, 1024, 0, 1520]
    assert reads(trace, "--host", "sglang") == [0, 1024, 0, 1535]
    table = cli("replay", trace, "--host", "vllm").stdout
    heads, sums = (line.split() for line in table.splitlines()[1:3])
    assert " ".join(heads) == "strategy calls prefill saved prefill to do cache hit rate output cost"
    assert sums == ["as", "recorded", "4", "2.5k", "3.3k", "44%", "36", "–"]
    assert "$" not in table
    assert "give a server's [[gpu]] with --prices" in table


def test_the_trace_tells_all_lengths(trace: Path) -> None:
    usages = [row["usage"] for row in rows_of(trace, "--host", "vllm")]
    whole = [usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in usages]
    assert whole == [n for _, n, _ in TRACE]
    assert "own counts, exact" in cli_page(trace)


def cli_page(trace: Path) -> str:
    page = trace.with_suffix(".html")
    assert cli("replay", trace, "--host", "vllm", "--html", page).exit_code == 0
    return page.read_text()


def test_the_page_of_a_replay_has_no_dollars_and_no_day_that_nobody_told(trace: Path) -> None:
    page = cli_page(trace)
    assert "tokens of prefill for 5.8k tokens of input, 44% of them read from the cache" in page.replace("\u00a0", " ")
    assert "$" not in page.split("<style")[0] + page.split("</style>")[1].split("<script")[0]
    assert "1970" not in page


def test_an_hour_of_the_server_makes_dollars(trace: Path, gpu: Path) -> None:
    rows = rows_of(trace, "--host", "vllm", "--prices", gpu)
    assert [row["cost_usd"] for row in rows] == ["0.001536", "0.000176", "0.001536", "0.000016"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('model = "mooncake-trace"\nfrom = 2027-01-01', "no price known for mooncake-trace on host vllm"),
        ('model = "mooncake-trace"\ninput = 1', "no price of cache reads known for mooncake-trace"),
    ],
)
def test_prices_that_do_not_fit_are_not_taken_for_none(trace: Path, tmp_path: Path, row: str, fault: str) -> None:
    own = tmp_path / "own.toml"
    full = "" if "input" in row else "\ninput = 1\nread = 0\nwrite_5m = 1\nwrite_1h = 1\noutput = 0"
    own.write_text(f'[[price]]\nhost = "vllm"\n{row}{full}\n')
    done = cli("replay", trace, "--host", "vllm", "--prices", own)
    assert done.exit_code == 3
    assert fault in done.stdout


@pytest.mark.parametrize("kept", [10_000, 3072, 1536, 1024])
def test_the_capacity_can_be_said_in_three_ways(trace: Path, tmp_path: Path, kept: int) -> None:
    own = tmp_path / "rules.toml"
    own.write_text(f'[[capacity_tokens]]\nhost = "vllm"\nmodel = "*"\nvalue = {kept}\n')
    host = (trace, "--host", "vllm")
    found = reads(*host, "--rules", own)
    assert reads(*host, "--rule", f"capacity_tokens={kept}") == reads(*host, "--capacity", kept) == found
    assert reads(*host, "--rules", own, "--rule", "capacity_tokens=1") == [None] * 4


@pytest.mark.parametrize(
    ("host", "kept", "found"),
    [
        ("vllm", 1552, [0, 1024, 0, 0]),  # 96 blocks and the null block
        ("vllm", 1551, [None, 0, None, None]),
        ("sglang", 1536, [0, 1024, 0, 0]),
        ("sglang", 1535, [None, 0, None, None]),
    ],
)
def test_a_prompt_without_room_is_an_error(trace: Path, host: str, kept: int, found: list[int | None]) -> None:
    option = (trace, "--host", host, "--capacity", kept)
    assert reads(*option) == found
    errors = [row["error"] for row in rows_of(*option) if "error" in row]
    said = f"prompt of 1,536 tokens does not fit a capacity of {kept:,}"
    assert errors == [{"type": "invalid_request_error", "message": said}] * found.count(None)
    table = cli("replay", *option).stdout
    assert (f"3 calls without usage: {said}" in table) is (None in found)


def test_a_scenario_and_a_sweep_say_what_is_not_served(scenario: Path) -> None:
    small = "rules.capacity_tokens=1500"
    run = cli("run", scenario, "--set", small, "--no-report").stdout
    assert "refused: prompt of" in run and "does not fit a capacity of 1,500" in run
    sweep = cli("sweep", scenario, "--grid", f"{small},0", "--jobs", 1).stdout
    assert any("refused" in line and "cache hit rate" in line for line in sweep.splitlines())


def test_validate_judges_no_call_that_was_not_served(tmp_path: Path) -> None:
    request = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "word " * 4000}]}
    log = write_lines(
        tmp_path / "log.jsonl", [{"request": request, "usage": {"input_tokens": 4000, "output_tokens": 1}}]
    )
    done = cli("validate", log, "--host", "vllm", "--rule", "capacity_tokens=1000")
    assert done.exit_code == 3
    assert "tokens does not fit a capacity of 1,000" in done.stdout


def test_several_capacities_are_a_line_each(trace: Path) -> None:
    host = (trace, "--host", "vllm")
    rows = rows_of(*host, "--capacity", 20, "--capacity", 10_000)
    assert [("error" in row, row["strategy"]) for row in rows] == [
        *[(True, "as recorded, 20 tokens kept")] * 4,
        *[(False, "as recorded, 10,000 tokens kept")] * 4,
    ]
    assert rows[-1]["usage"]["cache_read_input_tokens"] == 1520
    table = cli("replay", *host, "--capacity", 20, "--capacity", 10_000).stdout
    assert [line.split()[-4:-2] for line in table.splitlines()[2:4]] == [["–", "–"], ["3.3k", "44%"]]
    assert "cause" not in table
    page = trace.with_suffix(".html")
    assert cli("replay", *host, "--capacity", 20, "--html", page).exit_code == 0
    assert "the least recently used are evicted first" in page.read_text()


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["--host", "openai"], "openai is not self-hosted; expected --host vllm or --host sglang"),
        (["--host", "vllm", "--strategy", "none"], "--capacity: not with --strategy or --all"),
    ],
)
def test_where_no_capacity_can_be_said(trace: Path, args: list[str], fault: str) -> None:
    done = cli("replay", trace, *args, "--capacity", 5)
    assert done.exit_code == 2
    assert fault in done.output


def test_the_block_can_be_said(trace: Path) -> None:
    host = (trace, "--host", "vllm", "--rule")
    assert reads(*host, "step_tokens=512") == [0, 1024, 0, 1024]
    assert reads(*host, "step_tokens=0") == [0, 1024, 0, 1520]
    assert reads(trace, "--host", "vllm", "--rule", "step_tokens=1") == [0, 1024, 0, 1535]


def test_an_answer_is_found_when_it_comes_back(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    question = {"role": "user", "content": "q" * 400}
    answer, more = {"role": "assistant", "content": "a" * 400}, {"role": "user", "content": "m" * 40}
    bodies = [[question], [question, answer, more], [question, {**answer, "content": "b" * 400}, more]]
    lines = [
        {
            "timestamp": f"2026-11-01T00:00:0{at}Z",
            "request": {"model": "x", "max_tokens": 9, "messages": messages},
        }
        for at, messages in enumerate(bodies)
    ]
    write_lines(log, lines)
    first, second, third = reads(log, "--host", "sglang", "--tokens", "bytes")
    assert first == 0
    assert 400 <= third < 800 <= second, "the first answer is there, another one is not"


def test_a_run_ranks_by_what_must_be_computed(scenario: Path) -> None:
    result = run_scenario(load(scenario), scenario.parent, with_timelines=True)
    computed = {one.strategy: one.usage.total_input - one.usage.read for one in result.main.ledgers}
    best = result.main.best.strategy
    assert computed[best] == min(computed.values()) < computed[result.main.first]
    assert f"“{best}” costs" in result.verdict
    assert "tokens of prefill instead of" in result.verdict
    files = report_files(result)
    assert sorted(files) == ["calls.csv", "chart.png", "dollars.svg", "index.html", "report.md", "result.json"]
    for name in ("report.md", "calls.csv", "result.json"):
        assert "$" not in files[name].decode()
    data = json.loads(files["result.json"])
    assert data["best"] == best
    assert [one["cost_usd"] for one in data["strategies"]] == [None] * 3
    share = Decimal(data["strategies"][0]["cache_hit_rate"])
    usage = result.main.ledgers[0].usage
    assert share == round(Decimal(usage.read) / usage.total_input, 6)
    rows = list(DictReader(files["calls.csv"].decode().splitlines()))
    assert {row[name] for row in rows for name in row if name.endswith("_usd")} == {""}


def test_one_model_without_a_price_leaves_all_in_tokens(scenario: Path, gpu: Path) -> None:
    text = SCENARIO.replace("strategies: [", 'prices: gpu.toml\nstrategies: ["cheaper model, cold", ')
    scenario.write_text(text)
    gpu.write_text(GPU.replace("usd_per_hour", 'model = "Qwen/Qwen3-8B"\nusd_per_hour'))
    main = run_scenario(load(scenario), scenario.parent).main
    assert [ledger.is_priced for ledger in main.ledgers] == [False, True, True, True]
    assert not main.is_priced
    assert main.effort(main.ledgers[1]) == main.ledgers[1].usage.input_tokens
    gpu.write_text(GPU)
    assert run_scenario(load(scenario), scenario.parent).main.is_priced


def test_what_needs_dollars_says_so(scenario: Path) -> None:
    scenario.write_text(SCENARIO + "budget: {max_cost_usd: 3}\n")
    done = cli("check", scenario)
    assert done.exit_code == 3
    assert "no price known for Qwen/Qwen3-8B on host vllm" in done.output


def test_the_library_says_none_for_dollars(trace: Path, scenario: Path) -> None:
    replayed = library.replay(trace, host="vllm")
    assert repr(replayed) == "<Replay as recorded: 4 calls, 3.3k to compute>"
    assert replayed.frame()["cost_usd"].isna().all()
    assert replayed.monthly(3).left_out == ("as recorded",)
    compared = library.compare(scenario)
    assert compared.frame(money="decimal")["cost_usd"].tolist() == [None] * len(compared.comparison.ledgers)
    assert "$" not in compared._repr_html_()
    with pytest.raises(CannotEvaluate, match="no price is known"):
        compared.plot("calls")


def swept(scenario: Path, *args: object) -> Result:
    axis = "--grid", "rules.capacity_tokens=2700,6000,0"
    return cli("sweep", scenario, "--set", "strategies=[none]", *axis, "--jobs", 1, *args)


@pytest.mark.parametrize("capacity", [(), ("--capacity", 100_000)])
@pytest.mark.parametrize(
    ("answer", "read"), [("a" * 200, 544), ("a" * 100 + "b" * 100, 448), ("b" * 200, 336), (None, 544)]
)
def test_an_assistant_message_is_read_as_far_as_it_is_the_answer(
    tmp_path: Path, answer: str | None, read: int, capacity: tuple[object, ...]
) -> None:
    """Where the log does not have the answer, the message after a prompt is taken for it."""
    messages = [{"role": "user", "content": "d" * 300}]
    more = [*messages, {"role": "assistant", "content": "a" * 200}, {"role": "user", "content": "next"}]
    rows: list[dict[str, Any]] = [
        {"timestamp": f"2026-11-20T10:0{n}:00Z", "request": {"model": MODEL, "max_tokens": 900, "messages": one}}
        for n, one in enumerate((messages, more))
    ]
    if answer is not None:
        content = [{"type": "text", "text": answer}]
        rows[0]["response"] = {"id": "1", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    log = write_lines(tmp_path / "log.jsonl", rows)
    assert reads(log, "--host", "vllm", "--tokens", "bytes", *capacity) == [0, read]


def test_a_sweep_over_the_capacity_is_a_curve(scenario: Path) -> None:
    rows = json.loads(swept(scenario, "--json").stdout)["rows"]
    shares = [Decimal(row["cache_hit_rate"]) for row in rows]
    assert shares == sorted(shares)
    assert shares[0] < shares[1] < shares[2]
    assert [row["cost_usd"] for row in rows] == [None] * 3
    assert [int(row["prefill_tokens"]) for row in rows] == [row["input"] for row in rows]
    text = swept(scenario).stdout
    assert "$" not in text
    assert "cheapest" not in text
    head = "rules.capacity_tokens strategy calls refused cache hit rate prefill to do"
    assert " ".join(text.splitlines()[2].split()) == head


def test_a_sweep_over_seeds_sums_up_tokens(scenario: Path) -> None:
    rows = json.loads(swept(scenario, "--seeds", 3, "--json").stdout)["rows"]
    assert all(set(row["percentiles_tokens"]) == {"5", "25", "50", "75", "95"} for row in rows)
    assert "percentiles_usd" not in rows[0]
    assert "$" not in swept(scenario, "--seeds", 3).stdout


def test_who_has_least_to_compute_is_told_of_several(scenario: Path) -> None:
    done = cli("sweep", scenario, "--grid", "rules.capacity_tokens=2000,0", "--jobs", 1)
    assert "has least to compute" in done.stdout or "Who has least to compute depends" in done.stdout


def test_a_reading_without_a_price_stands_beside_one_with(scenario: Path, gpu: Path) -> None:
    scenario.write_text(SCENARIO + "variants: [{name: priced, prices: gpu.toml}]\n")
    result = run_scenario(load(scenario), scenario.parent)
    assert [one.is_priced for one in result.comparisons] == [False, True]
    assert "It stays the cheapest in every variant." in result.verdict
    assert replace(result.main, ledgers=result.comparisons[1].ledgers).is_priced
