"""`cachecost lint` as a program: bodies, stdin, recordings; exit codes, JSON, 80 columns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bodies import Body, assistant, body, breakpoint_last, marked, text, tool, user
from command_runs import run_apart, run_here

CLOCK = "You help.\nCurrent time: 2026-03-06T21:2{}:07Z. "
QUESTION, ANSWER, NEXT = user(text(300, "question")), assistant(text(300, "answer")), user(text(300, "next"))


def request(minute: int | None, *more: Body, **fields: Any) -> Body:
    words = ("You help. " if minute is None else CLOCK.format(minute)) + "x" * 1100
    system = [marked({"type": "text", "text": words})]
    return breakpoint_last(body(QUESTION, *more, tools=[marked(tool(1200, "a"))], system=system, **fields))


def lint(folder: Path, *arguments: str, stdin: object = None, **env: str) -> subprocess.CompletedProcess[str]:
    words = ("lint", *arguments, "--tokens", "bytes")
    sent = "" if stdin is None else json.dumps(stdin)
    return run_here(*words, cwd=folder, stdin=sent, **{"COLUMNS": "120", **env})


def files(folder: Path, **bodies: object) -> None:
    for name, sent in bodies.items():
        (folder / f"{name}.json").write_text(sent if isinstance(sent, str) else json.dumps(sent))


def test_a_good_request(tmp_path: Path) -> None:
    files(tmp_path, one=request(None))
    done = run_apart("lint", "one.json", "--tokens", "bytes", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 request · nothing found\n", "")


def test_two_requests_one_after_the_other(tmp_path: Path) -> None:
    files(tmp_path, one=request(4), two=request(5, ANSWER, NEXT))
    done = lint(tmp_path, "one.json", "two.json", COLUMNS="80")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "2 requests · 1 warning\n"
        "\n"
        "CC530  volatile content  system.0  1.5k tokens\n"
        '       a time differs from the previous request at character 39: "…Current time:\n'
        '       2026-03-06T21:2▮…"\n'
        "       → Put it after the last breakpoint, into the newest message, or leave it\n"
        "       out.\n"
    )


def test_no_line_is_wider_than_the_terminal_and_ascii_will_do(tmp_path: Path) -> None:
    files(tmp_path, one=request(4), two=request(5, ANSWER, NEXT, tool_choice={"type": "any"}, speed="fast"))
    for columns in ("40", "80", "120"):
        done = lint(tmp_path, "one.json", "two.json", COLUMNS=columns)
        assert max(map(len, done.stdout.splitlines())) <= int(columns)
        assert "\x1b" not in done.stdout
    done = lint(tmp_path, "one.json", "two.json", PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and done.stdout.isascii() and "21:2|" in done.stdout


def test_json(tmp_path: Path) -> None:
    files(tmp_path, one=request(4))
    done = lint(tmp_path, "one.json", "--json")
    parsed = json.loads(done.stdout)
    (finding,) = parsed.pop("findings")
    assert (done.returncode, parsed) == (1, {"format": 1, "requests": 1})
    assert {name: finding.pop(name) for name in ("why", "fix", "source")}.keys() == {"why", "fix", "source"}
    assert finding == {
        "code": "CC531",
        "name": "clock or fresh id",
        "severity": "warning",
        "path": "system.0",
        "request": "one.json",
        "call": None,
        "calls": 1,
        "message": 'a time at character 24: "You help. Current time: 2026-03-06T21:24:07Z▮…"',
        "tokens": 1472,
        "offset": 24,
        "excerpt": "You help. Current time: 2026-03-06T21:24:07Z▮…",
        "session": "",
        "file": "",
        "line": None,
        "bill": "",
        "explains_as": "CC110",
    }


def test_a_body_on_stdin(tmp_path: Path) -> None:
    assert lint(tmp_path, "-", stdin=request(None)).stdout == "1 request · nothing found\n"
    done = lint(tmp_path, "-", stdin=[1])
    assert done.returncode == 2
    assert done.stderr.startswith("stdin expected a Messages API body, a JSON object; recordings are files\n")


def test_notes_alone_are_fine(tmp_path: Path) -> None:
    sent = {**request(None), "tools": [marked(tool(600, "a"))]}
    files(tmp_path, one=sent)
    done = lint(tmp_path, "one.json")
    assert done.returncode == 0 and done.stdout.startswith("1 request · 1 note\n\nCC512  breakpoint below the minimum")


def test_a_log_and_calls_that_cannot_be_looked_at(tmp_path: Path) -> None:
    calls = [request(4), request(5, ANSWER, NEXT), request(6, ANSWER, NEXT, ANSWER, NEXT), request(1, model="claude-x")]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"request": call}) + "\n" for call in calls))
    done = lint(tmp_path, "log.jsonl")
    assert done.returncode == 1
    assert done.stdout.splitlines()[2] == (
        "CC530  volatile content  system.0  log.jsonl in 2 calls, first in call 2 · 2.1k tokens"
    )
    assert done.stderr.startswith("log.jsonl: not checked: call 4: ") and "claude-x" in done.stderr
    (tmp_path / "log.jsonl").write_text(json.dumps({"request": calls[-1]}) + "\n")
    done = lint(tmp_path, "log.jsonl")
    assert (done.returncode, done.stdout) == (3, "0 requests · nothing found\n")


def write_log(path: Path, *calls: Body) -> None:
    path.write_text("".join(json.dumps({"request": call}) + "\n" for call in calls))


def test_what_is_found_in_a_log_ends_with_the_command_that_prices_it(tmp_path: Path) -> None:
    """Only where there are several calls, and something that costs money."""
    calls = [request(4), request(5, ANSWER, NEXT), request(6, ANSWER, NEXT, ANSWER, NEXT)]
    write_log(tmp_path / "my log.jsonl", *calls)
    done = lint(tmp_path, "my log.jsonl")
    assert done.stdout.endswith("\n\ncachecost explain 'my log.jsonl' prices what this costs (as CC110)\n")
    write_log(tmp_path / "my log.jsonl", calls[0])
    assert "explain" not in lint(tmp_path, "my log.jsonl").stdout
    write_log(tmp_path / "my log.jsonl", *(request(None, *more) for more in ((), (ANSWER, NEXT))))
    assert lint(tmp_path, "my log.jsonl").stdout == "2 requests · nothing found\n"
    files(tmp_path, one=calls[0], two=calls[1])
    assert "explain" not in lint(tmp_path, "one.json", "two.json").stdout


def test_the_command_that_prices_many_logs(tmp_path: Path) -> None:
    calls = [request(4), request(5, ANSWER, NEXT), request(6, ANSWER, NEXT, ANSWER, NEXT)]
    names = ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]
    for number, name in enumerate(names):
        write_log(tmp_path / name, *({**call, "max_tokens": number + 1} for call in calls))
    last = lint(tmp_path, *names[:2], "--host", "bedrock", "--as-of", "2026-03-07").stdout.splitlines()[-1]
    assert last == "cachecost explain a.jsonl b.jsonl --host bedrock prices what this costs (as CC110)"
    last = lint(tmp_path, *names).stdout.splitlines()[-1]
    assert last == "cachecost explain LOG… prices what this costs (as CC110)"
    assert lint(tmp_path, ".").stdout.splitlines()[-1] == "cachecost explain . prices what this costs (as CC110)"
    files(tmp_path, body=request(None))
    last = lint(tmp_path, "body.json", "a.jsonl").stdout.splitlines()[-1]
    assert last == "cachecost explain a.jsonl prices what this costs (as CC110)"


def test_a_billed_log_in_json(tmp_path: Path) -> None:
    bill = {"input_tokens": 165, "output_tokens": 5}
    sent = {"request": body(user(marked(text(900)))), "usage": bill}
    (tmp_path / "log.jsonl").write_text(json.dumps(sent) + "\n")
    (finding,) = json.loads(lint(tmp_path, "log.jsonl", "--json").stdout)["findings"]
    assert (finding["code"], finding["bill"], finding["explains_as"]) == ("CC510", "confirmed", "CC404")
    assert finding["message"].startswith("billed: 165 input tokens at full price, none read or written")


def test_all_bad_input_is_told_at_once(tmp_path: Path) -> None:
    damaged = json.dumps(request(None), indent=1)[:200]
    files(tmp_path, good=request(None), damaged=damaged, role={"model": "m", "messages": [{"role": "usr"}]})
    (tmp_path / "log.jsonl").write_text('{"request": {"model": "m"}}\n')
    done = lint(tmp_path, "good.json", "damaged.json", "role.json", "log.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("damaged.json:") and "expected a Messages API body; got damaged JSON (" in lines[0]
    assert lines[1] == "log.jsonl:1 messages: expected an array of messages; got nothing"
    assert lines[2] == (
        "role.json messages.0.role: expected one of assistant, system, user; got 'usr' (did you mean 'user'?)"
    )
    assert lines[3] == "3 errors; nothing was run."


def test_a_margin_and_a_host_of_ones_own(tmp_path: Path) -> None:
    parts = user(*(text(40, f"part {number} ") for number in range(12)))
    files(tmp_path, one=request(None), two=request(None, ANSWER, parts))
    assert lint(tmp_path, "one.json", "two.json").returncode == 0
    done = lint(tmp_path, "one.json", "two.json", "--margin", "8", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["code"]) == (1, "CC523")
    assert finding["message"].endswith("7 more blocks put it out of reach")
    automatic = {**request(None), "cache_control": {"type": "ephemeral"}}
    files(tmp_path, one=automatic)
    done = lint(tmp_path, "one.json", "--host", "bedrock", "--as-of", "2026-03-07")
    assert done.returncode == 1 and "CC505" in done.stdout


def test_the_command_imports_nothing_heavy_until_it_runs() -> None:
    script = (
        "import sys, cachecost.commands.lint; print([m for m in ('rich', 'tiktoken', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
