"""`cachecost import` of request logs, and `cachecost replay` of what it makes, through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from command_runs import run_apart, run_here
from conversations.session_stores import write_lines
from row_places import without_place

LONG = {"type": "text", "text": "secret " * 6000, "cache_control": {"type": "ephemeral"}}


def row(second: int, model: str = "claude-opus-4-6", **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": [LONG]}, {"role": "assistant", "content": "secret"}]
    messages.append({"role": "user", "content": "secret"})
    request = {"model": model, "max_tokens": 9, "messages": messages[: 1 + 2 * second]}
    return {"timestamp": f"2026-03-07T10:00:0{second}Z", "request": request, **fields}


def log_file(folder: Path, *rows: dict[str, Any]) -> None:
    write_lines(folder / "log.jsonl", rows)


def test_a_log_without_its_words_replays_to_the_same_bytes(tmp_path: Path) -> None:
    log_file(tmp_path, row(0, usage={"input_tokens": 3, "output_tokens": 100}), row(1), row(1, status=529))
    made = run_apart("import", "log.jsonl", "-o", "out.jsonl", "--content", "digest", "--json", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    report = json.loads(made.stdout)
    assert (report["calls"], report["billed"]["output_tokens"], report["billed_cost_usd"]) == (3, 100, "0.002515")
    assert "secret" not in (tmp_path / "out.jsonl").read_text()
    for tokens in ("bytes", "tiktoken"):
        was, now = (
            run_here("replay", f, "--tokens", tokens, "--json", cwd=tmp_path) for f in ("log.jsonl", "out.jsonl")
        )
        assert (was.returncode, now.returncode, was.stderr) == (0, 0, "")
        rows, again = (list(map(without_place, done.stdout.splitlines())) for done in (was, now))
        assert rows == again and len(rows) == 3
        assert json.loads(was.stdout.splitlines()[1])["usage"]["cache_read_input_tokens"] > 1000
        assert now.stderr == "out.jsonl: detected format: calls (its first line says format and kind calls)\n"


def test_what_has_no_price_is_said_and_the_exit_code_is_3(tmp_path: Path) -> None:
    log_file(tmp_path, row(0, "claude-opus-46", usage={"input_tokens": 9, "output_tokens": 100}))
    made = run_here("import", "log.jsonl", "-o", "out.jsonl", "--json", cwd=tmp_path)
    assert made.returncode == 3 and (tmp_path / "out.jsonl").exists()
    assert made.stderr.startswith("1 call not in the billed dollars: ") and "claude-opus-46" in made.stderr
    assert json.loads(made.stdout)["billed_cost_usd"] == "0"


def test_prices_are_those_of_the_calls_day_unless_another_is_given(tmp_path: Path) -> None:
    log_file(tmp_path, row(0, usage={"input_tokens": 9, "output_tokens": 100}))
    made = run_here("import", "log.jsonl", "-o", "out.jsonl", "--json", "--as-of", "2025-01-01", cwd=tmp_path)
    assert made.returncode == 3 and "2025-01-01" in made.stderr


def test_a_refused_file_is_told_in_both_places(tmp_path: Path) -> None:
    log_file(tmp_path, row(0), {"request": {"messages": []}})
    made = run_here("import", "log.jsonl", "-o", "out.jsonl", "--json", cwd=tmp_path)
    assert made.returncode == 2 and not (tmp_path / "out.jsonl").exists()
    assert made.stderr == "log.jsonl:2 model: expected a model id; got nothing\n"
    refused = [{"file": "log.jsonl", "line": 2, "reason": "model: expected a model id; got nothing"}]
    assert json.loads(made.stdout)["refused"] == refused


def test_a_conversation_has_no_calls_to_replay(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"format":1,"kind":"conversation","content":"keep","name":"n"}\n')
    done = run_here("replay", "talk.jsonl", "--json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("talk.jsonl expected recorded calls; got a conversation (recording: ")


def test_recordings_under_one_key_can_be_compared_and_sizes_can_be_rounded(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"some bytes")

    def blocks(name: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
        log_file(tmp_path, *rows)
        how = ("--content", "digest", "--key", "key", "--round-sizes", "100")
        assert run_here("import", "log.jsonl", "-o", name, *how, cwd=tmp_path).returncode == 0
        return [json.loads(line) for line in (tmp_path / name).read_text().splitlines() if '"block"' in line]

    (one,), (two, other, *_) = blocks("one.jsonl", row(0)), blocks("two.jsonl", row(0), row(1))
    assert one == two
    assert other["digest"] != one["digest"]
    assert {block["size"] % 100 for block in (one, other)} == {0}


def test_options_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    log_file(tmp_path, row(0))
    done = run_here("import", "log.jsonl", "-o", "out.jsonl", "--round-sizes", "8", cwd=tmp_path)
    assert done.returncode == 2 and "--key and --round-sizes are for --content digest" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_a_recording_that_is_there_is_kept_unless_it_is_the_same_or_force_is_given(tmp_path: Path) -> None:
    log_file(tmp_path, row(0))
    again = ("import", "log.jsonl", "-o", "out.jsonl")
    assert run_here(*again, cwd=tmp_path).returncode == 0
    assert run_here(*again, cwd=tmp_path).returncode == 0
    kept = (tmp_path / "out.jsonl").read_bytes()
    log_file(tmp_path, row(0), row(1))
    for run, arguments in (
        (run_here, again),
        (run_apart, ("recording", "cut", "log.jsonl", "--calls", "2", "-o", "out.jsonl")),
    ):
        refused = run(*arguments, cwd=tmp_path)
        assert refused.returncode == 2
        assert refused.stderr.splitlines()[0] == "out.jsonl exists with other content: --force overwrites it"
        assert (tmp_path / "out.jsonl").read_bytes() == kept
        forced = run_here(*arguments, "--force", cwd=tmp_path)
        assert forced.returncode == 0 and (tmp_path / "out.jsonl").read_bytes() != kept
        (tmp_path / "out.jsonl").write_bytes(kept)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_what_a_folder_has_besides_logs_is_skipped_said_last_and_an_error_unless_accepted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log_file(tmp_path / "logs", row(0))
    (tmp_path / "logs" / "odd.jsonl").write_text('{"type": "chat"}\n')
    made = run_here("import", "logs", "-o", "out.jsonl", "--json", cwd=tmp_path)
    assert made.returncode == 2 and (tmp_path / "out.jsonl").exists()
    assert made.stderr.splitlines() == [
        "logs/odd.jsonl: unrecognized format, skipped (nearest: claude-code; name it with --format)",
        "1 file skipped: --skip accepts that",
    ]
    report = json.loads(made.stdout)
    assert (report["files"], [one["file"] for one in report["skipped"]]) == (1, ["logs/odd.jsonl"])
    accepted = run_here("import", "logs", "-o", "out.jsonl", "--skip", cwd=tmp_path)
    assert accepted.returncode == 0
    assert accepted.stderr.splitlines()[-1] == "1 file skipped"
