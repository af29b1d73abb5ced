"""Is there a clock in my prompt? `lint` on requests and logs, `check` on two runs of a command."""

from __future__ import annotations

import json
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run

from cachecost.analysis.lint import lint
from cachecost.analysis.lint.volatile import find_volatile_words
from cachecost.live.agent_runs import processes as run_clock
from command_runs import run_here
from slow_cases import mostly_slow

CASE = "50-clock-with-minutes"
pytest.importorskip("uvicorn")


@pytest.mark.parametrize(("name", "calls"), [("request.json", 1), ("log.jsonl", 6), ("seconds.json", 1)])
def test_a_time_of_day_is_found_also_where_it_stood_still(run_case: Run, name: str, calls: int) -> None:
    done = run_case(CASE, "lint", name, "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, found["code"], found["path"], found["calls"]) == (1, "CC531", "system.0", calls)


@pytest.mark.parametrize(
    ("seconds", "time", "is_found"),
    [
        (10, "12:25", True),  # six calls within the minute
        (30, "12:25", False),  # 150 s: a clock would have gone on
        (10, "12:25:05", False),  # a clock with seconds, too
        (0.1, "12:25:05", True),
    ],
)
def test_a_log_settles_it_only_where_a_clock_would_have_gone_on(
    tmp_path: Path, seconds: float, time: str, is_found: bool
) -> None:
    def block(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}

    messages: list[Any] = []
    lines = []
    for number in range(6):
        messages = [*messages, {"role": "user", "content": [{"type": "text", "text": f"question {number}"}]}]
        body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}
        body["system"] = [block(f"The time is {time}. " + "You answer questions about whales. " * 300)]
        at = (
            f"2026-11-27T12:25:{5 + number * seconds:06.3f}Z"
            if number * seconds < 54
            else (f"2026-11-27T12:{25 + (5 + number * seconds) // 60:02.0f}:{(5 + number * seconds) % 60:06.3f}Z")
        )
        lines.append(json.dumps({"timestamp": at, "session": "s", "request": body}))
        messages = [*messages, {"role": "assistant", "content": "Yes."}]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(lines) + "\n")
    assert ("CC531" in run_here("lint", log).stdout) is is_found


# ------------------------------------------------------------------------------------------- what is none

HARMLESS = """
Your knowledge cutoff is 2025-01-31.
Use API version 2023-06-01 and send anthropic-version: 2023-06-01.
You are running version 2.14.3 (released 2026-02-11).
Released on 2024-03-04, retired on 2026-01-05.
Office hours are from 9:00 to 17:30 on weekdays.
Meetings start at 10:00 and end at 10:45.
Write times as ISO 8601, e.g. 2024-05-01T10:00:00Z.
A timestamp looks like 2024-05-01 10:00:00.
Dates have the format YYYY-MM-DD, for example 2024-12-24.
The Magna Carta was sealed on June 15, 1215.
The Battle of Hastings took place on 14 October 1066.
Since 2020-01-01 the tax rate is 19 %.
Deprecated after 2026-06-30; use v2 instead.
The schema id is 3f2504e0-4f89-11d3-9a0c-0305e82c3301.
Your user id is 3f2504e0-4f89-11d3-9a0c-0305e82c3301.
The repository is pinned at commit 9fceb02d0ae598e95dc970b74767f19372d61af8.
sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
Colours: #ff5733, #1a2b3c, #deadbeef.
The server listens on localhost:8080, the database on 127.0.0.1:5432.
Write temporary files to /tmp/output and logs to /tmp/python3.11.
Answer in at most 3 turns; retry 2 times after 1.5 s.
The ratio is 16:9 and verse John 3:16 is quoted.
Chapter 4, section 2, paragraph 17, page 1234.
Call +1 202-555-0143 between Monday and Friday.
On Monday the shop is closed; in May it opens at noon.
It is May that people like most, and it is 5 degrees colder in March.
Today people write dates in many ways.
Use temperature 0.7, top_p 0.95 and seed 1234567890.
The current version is 4.10.2 and the latest release is 2026.1.
Copyright 2019-2026 Example Inc. All rights reserved.
IPv6 addresses such as 2001:db8::1 and MACs such as 00:1B:44:11:3A:B7 are fine.
"""


@pytest.mark.parametrize("text", HARMLESS.strip().splitlines())
def test_what_is_fixed_is_no_alarm(text: str) -> None:
    system = [{"type": "text", "text": f"{text}\n" + "You help. " * 700, "cache_control": {"type": "ephemeral"}}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    codes = [one.code for one in lint({**body, "system": system}, tokens="bytes")]
    assert not {"CC531", "CC532"} & set(codes)


VOLATILE = {
    "It is 12:25:31.123456.": ("12:25:31.123456", True),
    "It's 9:05 pm.": ("9:05 pm.", True),
    "Now: 2026-11-27T12:25": ("2026-11-27T12:25", True),
    "Today is Friday.": ("Friday", False),
    "It is Friday, November 27": ("Friday, November 27", False),
    "Today's date: 2026-11-27": ("2026-11-27", False),
    "Files are in /tmp/tmp9_dr4us2 only.": ("tmp9_dr4us2", True),
    "cwd: /var/folders/zz/x1/T/agent-a1B2c3/": ("agent-a1B2c3", True),
    "Server: http://localhost:54301/": ("54301", False),
    "HEAD is at 9fceb02": ("9fceb02", False),
    "Current commit: 9fceb02d0ae5": ("9fceb02d0ae5", False),
    "Session id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301": ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", True),
    "Timestamp: 1795791939": ("1795791939", True),
    "Request #17": ("17", False),
}


@pytest.mark.parametrize("text", VOLATILE)
def test_what_may_be_another_next_time_is_found(text: str) -> None:
    (word, *_) = find_volatile_words(text)
    assert (text[word.start : word.end], word.strong) == VOLATILE[text]


# ------------------------------------------------------------------------------------------- two runs of a command


def test_a_minute_in_the_prompt_turns_the_build_red(run_case: Run) -> None:
    words = "check/clock.yaml", "--reports", "reports"
    run_case(CASE, "check", *words, "--update")
    done = run_case(CASE, "check", *words)
    assert done.returncode == 1
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("✗ clock: as recorded is not deterministic: two runs differ in system.0.text (time)")
    assert "character 1" in second and "“Today is 2" in second and "check/agent.py:9" in second
    assert "the second run's clock: set ahead" in done.stderr


AGENT = """
import datetime as dt, json, os, pathlib, socket, sys, tempfile, time, urllib.request, uuid
now = dt.datetime.now()
WHAT = {
    "minute": lambda: f"{now:%M}", "hour": lambda: f"{now:%H}", "day": lambda: str(dt.date.today()),
    "weekday": lambda: f"{now:%A}", "month": lambda: f"{now:%B}",
    "utc": lambda: str(dt.datetime.now(dt.timezone.utc))[:13],
    "strftime": lambda: time.strftime("%d %b"), "epoch": lambda: str(int(time.time()) // 3600),
    "uuid": lambda: str(uuid.uuid4()), "temporary": tempfile.mkdtemp,
    "host": socket.gethostname, "static": lambda: "cutoff 2025-01-31, API 2023-06-01, v1.2.3, 10:00 UTC",
    "type": lambda: f"{type(now) is dt.datetime} {isinstance(now, dt.datetime)} {time.monotonic() < 10**8}",
}
text = WHAT[sys.argv[1]]() + " You help with whales. " * 400
body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}],
        "system": [{"type": "text", "text": "It says " + text, "cache_control": {"type": "ephemeral"}}]}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
    {"content-type": "application/json", "x-api-key": "x", "anthropic-version": "2023-06-01"})
urllib.request.urlopen(request).read()
"""
SCENARIO = """format: 1
name: mine
question: What does it cost?
as_of: 2026-11-09
tokens: bytes
conversation:
  command: {command}
  cwd: .
  turns: [Hi]
  runs: {runs}
budget: {{max_cost_usd: 100}}
"""


def check(folder: Path, command: str, runs: int = 2, **environment: str) -> Any:
    (folder / "agent.py").write_text(AGENT)
    (folder / "mine.yaml").write_text(SCENARIO.format(command=command, runs=runs))
    return run_here("check", "mine.yaml", "--json", cwd=folder, **environment)


def deterministic(done: Any) -> Any:
    return next((one for one in json.loads(done.stdout)["budgets"] if one["budget"] == "deterministic"), None)


KINDS = ["minute", "hour", "day", "weekday", "month", "utc", "strftime", "epoch", "uuid", "temporary"]


@pytest.mark.parametrize("what", mostly_slow(KINDS, 4))
def test_what_is_of_one_run_is_red(tmp_path: Path, what: str) -> None:
    verdict = deterministic(check(tmp_path, f"{sys.executable} agent.py {what}"))
    (change,) = verdict["changes"]
    assert (verdict["verdict"], change["block"], change["layer"]) == ("fail", "system.0", "system")
    assert change["what"].startswith("system.0.text, character ")
    lines = {AGENT[: AGENT.index(words)].count("\n") + 1 for words in ("It says", "You help")}
    assert change["file"] == "agent.py" and change["line"] in lines
    assert Decimal(change["cost_usd"]) >= 0


@pytest.mark.parametrize("what", ["static", "type"])
def test_what_stays_is_green_and_types_are_what_they_were(tmp_path: Path, what: str) -> None:
    verdict = deterministic(check(tmp_path, f"{sys.executable} agent.py {what}"))
    assert verdict["verdict"] == "pass"
    assert "the second run's clock: set ahead" in verdict["message"]


def test_the_name_of_the_machine_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.live.agent_runs.processes.EVERYDAY_NAMES", frozenset())
    monkeypatch.setattr("cachecost.live.agent_runs.processes.SHORTEST_NAME", 1)
    verdict = deterministic(check(tmp_path, f"{sys.executable} agent.py host", USER="nobody-here"))
    assert verdict["verdict"] == "fail"
    assert "may send other bytes in the next run: system.0.text, character 8 (host name)" in verdict["message"]


def test_one_run_is_judged_by_what_lint_finds(tmp_path: Path) -> None:
    command = f"{sys.executable} agent.py"
    assert deterministic(check(tmp_path, f"{command} static", runs=1)) is None
    (tmp_path / "time.sh").write_text("#!/bin/sh\n")
    verdict = deterministic(check(tmp_path, f"{command} temporary", runs=1))
    assert verdict["verdict"] == "fail" and "(id)" in verdict["message"]


def test_a_program_whose_clock_cannot_be_set_gets_another_zone(tmp_path: Path) -> None:
    """Isolated Python reads no PYTHONPATH: as any program that is neither Python nor Node."""
    if run_clock.find_faketime():
        pytest.skip("libfaketime sets its clock")
    done = check(tmp_path, f"{sys.executable} -I agent.py minute")
    assert deterministic(done)["verdict"] == "fail"
    assert "the second run's clock: in another time zone (TZ)" in done.stderr


def test_a_command_that_fails_under_another_clock_runs_under_its_own(tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(
        "import os, runpy, sys\nsys.exit(1) if {'CACHECOST_CLOCK_SHIFT', 'FAKETIME'} & set(os.environ) or "
        "os.environ.get('TZ', '').startswith('<') else None\nsys.argv = ['agent.py', 'static']\n"
        "runpy.run_path('agent.py', run_name='__main__')\n"
    )
    done = check(tmp_path, f"{sys.executable} strict.py")
    assert deterministic(done)["verdict"] == "pass"
    assert "the second run's clock: as the first" in done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("new Date().getMinutes()", "fail"),
        pytest.param("Date().slice(0, 15)", "fail", marks=pytest.mark.slow),
        pytest.param("new Date(Date.now()).toISOString().slice(0, 13)", "fail", marks=pytest.mark.slow),
        ("new Intl.DateTimeFormat('en-US', {weekday: 'long'}).format()", "fail"),
        ("[new Date(0).toISOString(), new Date() instanceof Date, new Date().constructor === Date]", "pass"),
    ],
)
def test_the_clock_of_node(tmp_path: Path, text: str, state: str) -> None:
    (tmp_path / "agent.mjs").write_text(
        f"const text = String({text}) + ' You help with whales. '.repeat(400);\n"
        "const body = {model: 'claude-sonnet-4-6', max_tokens: 9, messages: [{role: 'user', content: 'Hi'}],\n"
        "  system: [{type: 'text', text, cache_control: {type: 'ephemeral'}}]};\n"
        "const to = new URL(process.env.ANTHROPIC_BASE_URL + '/v1/messages');\n"
        "const {request} = await import('node:http');\n"
        "const headers = {'content-type': 'application/json', 'x-api-key': 'x', 'anthropic-version': '2023-06-01'};\n"
        "await new Promise((done, failed) => {\n"
        "  const sent = request(to, {method: 'POST', headers}, (got) => {\n"
        "    got.resume(); got.on('end', () => got.statusCode === 200 ? done() : failed(new Error('refused')));\n"
        "  });\n"
        "  sent.on('error', failed); sent.end(JSON.stringify(body));\n"
        "});\n"
    )
    assert deterministic(check(tmp_path, "node agent.mjs"))["verdict"] == state
