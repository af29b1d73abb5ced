"""Every command that takes a log takes several, and folders; what cannot be read is skipped, said, and an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.cli import cachecost, exit_code
from conversations.test_transcript_reader import CALL, RESULT, SAYS, answer, user
from growing_log import Shape, write_log
from row_places import without_place

TEXT = {"type": "text", "text": "word " * 6000, "cache_control": {"type": "ephemeral"}}
SESSION = "1e0816ef-0000-4000-8000-000000000001"
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 6011, "output_tokens": 9}


def row(minute: int, text: str = "", **fields: Any) -> dict[str, Any]:
    content = [{**TEXT, "text": f"{text}{TEXT['text']}"}]
    request = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    return {"timestamp": f"2026-03-07T10:{minute:02}:00Z", "request": request, "usage": USAGE, **fields}


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


class Done:
    """How a command ended, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = exit_code(lambda: cachecost.main(args=list(arguments), standalone_mode=False))
        self.out, self.err = capsys.readouterr()

    @property
    def last_words(self) -> str:
        return self.err.splitlines()[-1] if self.err else ""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two good logs below a folder: the second call of the first file reads what the second file wrote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    (tmp_path / "logs" / "one.jsonl").write_text(lines(row(0, "x", session=SESSION), row(20, session=SESSION)))
    (tmp_path / "logs" / "deep" / "two.jsonl").write_text(lines(row(10, session="other")))
    return tmp_path / "logs"


LOG_COMMANDS = [
    ("replay", "--tokens", "bytes"),
    ("replay", "--json", "--tokens", "bytes"),
    ("replay", "--strategy", "automatic", "--tokens", "bytes"),
    ("explain", "--tokens", "bytes"),
    ("validate", "--tokens", "tiktoken"),
    ("optimize", "--tokens", "bytes", "--no-pings"),
    ("whatif", "--tokens", "bytes"),
    ("import", "-o", "out.jsonl"),
    ("lint", "--tokens", "bytes"),
]


@pytest.mark.parametrize("command", LOG_COMMANDS, ids=" ".join)
def test_a_folder_with_a_bad_file_is_evaluated_without_it(
    logs: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    name, *options = command
    good = Done(capsys, name, "logs", *options)
    assert good.code in (0, 1) and good.out  # lint finds something
    for path, text, why in (
        ("odd.jsonl", '{"type": "chat"}\n', "logs/odd.jsonl: unrecognized format, skipped (nearest: claude-code;"),
        ("bad.jsonl", lines(row(1)) + "{bad}\n", "logs/bad.jsonl:2 expected one JSON object; got a damaged line"),
    ):
        (logs / path).write_text(text)
        options = ["-o", f"{path}.out.jsonl"] if name == "import" else options
        found = Done(capsys, name, "logs", *options)
        assert found.code == 2 and why in found.err
        assert found.last_words == "1 file skipped: --skip accepts that"
        accepted = Done(capsys, name, "logs", *options, "--skip")
        assert (accepted.code, accepted.out) == (good.code, found.out)
        assert accepted.last_words == "1 file skipped"
        if name not in ("import", "validate"):  # these two also list what they left out
            assert found.out == good.out
        (logs / path).unlink()


@pytest.mark.parametrize("command", LOG_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("more", [[], ["--skip"]])
def test_a_single_damaged_file_stays_an_error(
    logs: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], more: list[str]
) -> None:
    name, *options = command
    Path("bad.jsonl").write_text("{bad}\n" + lines(row(1)))
    found = Done(capsys, name, "bad.jsonl", "--format", "request-log", *options, *more)
    assert found.code == 2 and "bad.jsonl:1 expected one JSON object" in found.err
    assert name == "import" or (found.out, found.last_words) == ("", "1 error; nothing was run.")


def test_the_rows_of_several_files_are_one_cache_and_say_where_they_are_from(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Done(capsys, "replay", "logs", "--json", "--tokens", "bytes", "--rule", "warm_start=cold")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["call"], one["session"], one["file"], one["line"]) for one in rows] == [
        (1, SESSION, "logs/one.jsonl", 1),
        (2, "other", "logs/deep/two.jsonl", 1),
        (3, SESSION, "logs/one.jsonl", 2),
    ]
    assert [one["cause"] for one in rows] == ["cold_start", "cold_start", "ttl_expired"]
    assert [(one["project"], one["agent"]) for one in rows] == [("", "")] * 3


def test_a_log_in_parts_costs_what_the_whole_log_costs(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path("whole.jsonl")
    write_log(whole, Shape(conversations=3, requests=6))
    parts = [Path(f"part-{number}.jsonl") for number in range(3)]
    for number, part in enumerate(parts):
        part.write_text("".join(whole.read_text().splitlines(keepends=True)[number::3]))
    for options in (["--json"], ["--json", "--strategy", "automatic"]):
        one, several = (
            [without_place(line) for line in Done(capsys, "replay", *names, *options).out.splitlines()]
            for names in (["whole.jsonl"], map(str, reversed(parts)))
        )
        assert several == one and len(one) == 18


def test_a_finding_names_the_session_and_the_place_of_its_call(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = Done(capsys, "explain", "logs", "--json", "--tokens", "bytes")
    finding = json.loads(done.out)["notes"][-1]
    place = {name: finding[name] for name in ("call", "session", "session_call", "timestamp", "file", "line")}
    assert place == {
        "call": 3,
        "session": SESSION,
        "session_call": 2,
        "timestamp": "2026-03-07T10:20:00Z",
        "file": "logs/one.jsonl",
        "line": 2,
    }
    text = Done(capsys, "explain", "logs", "--tokens", "bytes").out
    assert "CC301  TTL expired: call 3, " in text


def test_without_sessions_the_text_is_as_it_was(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.jsonl").write_text(lines(row(0), row(10)))
    shown = Done(capsys, "explain", "log.jsonl", "--tokens", "bytes").out
    assert "CC301  TTL expired: call 2, $0.0346 paid again" in shown
    finding = json.loads(Done(capsys, "explain", "log.jsonl", "--tokens", "bytes", "--json").out)["notes"][0]
    assert (finding["session"], finding["session_call"], finding["agent"], finding["line"]) == ("", None, "", 2)


def test_each_file_is_a_cache_of_its_own_to_validate(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second file reads nothing of what the first one wrote. A call that two transcripts hold is judged once."""
    done = json.loads(Done(capsys, "validate", "logs", "--json", "--tokens", "tiktoken").out)
    assert (done["calls"], done["cold"]) == (3, {"knowable": 3, "exact": 3})
    first = [user("a", None, 0), answer("b", "a", 3, (10, 0, 5000, 30), CALL, sessionId="one", cwd="/app")]
    later = [user("c", "b", 7, RESULT), answer("d", "c", 9, (2, 9, 400, 55), SAYS, "msg_2", sessionId="two")]
    Path("sessions").mkdir()
    Path("sessions/one.jsonl").write_text(lines(*first))
    assert Done(capsys, "validate", "sessions/one.jsonl").code == 3  # no later step sizes it
    Path("sessions/two.jsonl").write_text(lines(*first, *later))
    Path("sessions/two-again.jsonl").write_text(lines(*first, *later))
    done = json.loads(Done(capsys, "validate", "sessions", "--json").out)
    assert done["calls"] == 2
    assert [(one["call"], one["session"], one["timestamp"], one["line"]) for one in done["mismatches"]] == [
        (2, "two", "2026-01-02T10:00:09.000000Z", 4)
    ]


def test_one_scenario_stands_alone(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text("format: 1\n")
    for command in ("explain", "optimize"):
        done = Done(capsys, command, "logs", "s.yaml")
        assert done.code == 2
        assert "s.yaml: expected one SCENARIO.yaml alone, or logs; got 2 paths" in done.err


def test_lint_takes_bodies_and_logs_from_a_folder(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (logs / "body.json").write_text(json.dumps(row(0)["request"]))
    done = json.loads(Done(capsys, "lint", "logs", "--json", "--tokens", "bytes").out)
    assert done["requests"] == 4
    placed = [one for one in done["findings"] if one["call"]]
    assert {(one["request"], one["file"]) for one in placed} <= {(name, name) for name in _names(logs)}


def _names(logs: Path) -> list[str]:
    return [str(path.relative_to(logs.parent)) for path in logs.rglob("*.jsonl")]
