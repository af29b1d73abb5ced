"""The status line and the hooks of Claude Code: what they print, what they read, and that they never fail loudly."""

import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bill_sessions import BEGIN, MAIN, OPUS, SMALL, list_prices, write_sessions
from cachecost.analysis.next_message.history import session_state
from cachecost.analysis.next_message.state import is_same_model, models_in
from cachecost.commands import statusline_run as remembered_session
from cachecost.commands.hook_run import HookOptions, hook_answer, parse_options
from cachecost.commands.statusline_run import SessionMemory, status_line
from cachecost.sessions.reading import SessionReading
from cachecost.views.next.words import DEFAULT_FORMAT, FIELDS, NEUTRAL
from slow_cases import mostly_slow

LAST = BEGIN.timestamp() + 86_400 + 69
"""About when the last call of the small session began."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CACHECOST_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_sessions(tmp_path / "sessions")


def small(folder: Path) -> Path:
    return folder / "play" / f"{SMALL}.jsonl"


def line(facts: object, form: str = DEFAULT_FORMAT, now: float = LAST + 60) -> str:
    return status_line(io.BytesIO(json.dumps(facts).encode()), form, now)[0]


def hook(facts: object, now: float, **options: Any) -> dict[str, Any] | None:
    return hook_answer(io.BytesIO(json.dumps(facts).encode()), HookOptions(**options), now)


def test_the_line_says_warm_and_cold(folder: Path) -> None:
    facts = {"transcript_path": str(small(folder)), "model": {"id": OPUS}}
    form = "{hit_rate}|{cached}|{price}|{cost}|{calls}|{ttl}|{left}"
    assert line(facts, form) == "50%|20k|$0.01 (cold: $0.20)|$0.22|2|1h|59 min"
    assert line(facts, "{cache}|{price}", LAST + 7200) == "20k expired 60 min ago|$0.20"


def test_what_claude_code_says_goes_over_the_bills(folder: Path) -> None:
    cache = {
        "warm": True,
        "ttl": "5m",
        "expires_at": LAST + 200,
        "hit_ratio": 0.91,
        "last_miss_cause": {"causes": ["tools_changed", "ttl_expired_5m"]},
    }
    facts = {
        "transcript_path": str(small(folder)),
        "model": {"id": f"{OPUS}[1m]"},
        "prompt_cache": cache,
        "cost": {"total_cost_usd": 1.5},
    }
    form = "{hit_rate}|{ttl}|{left}|{last_miss}|{client_cost}|{model}"
    assert line(facts, form) == f"91%|5m|2 min|tools_changed, ttl_expired_5m|$1.50|{OPUS}"
    facts["prompt_cache"] = {**cache, "warm": False, "expires_at": None}
    assert line(facts, "{price}") == "$0.13", "cold: written for five minutes"


def test_the_hit_rate_of_a_resumed_session_is_that_of_all_its_calls(folder: Path) -> None:
    """The client counts from its own start, so that its first request after a resume would be the whole session."""
    facts = {"transcript_path": str(small(folder)), "prompt_cache": {"requests": 1, "hit_ratio": 0.91}}
    assert line(facts, "{hit_rate}|{calls}") == "50%|2"
    facts["prompt_cache"] = {"requests": 2, "hit_ratio": 0.91}
    assert line(facts, "{hit_rate}|{calls}") == "91%|2"


def test_another_model_reads_nothing(folder: Path) -> None:
    facts = {"transcript_path": str(small(folder)), "model": {"id": "claude-sonnet-4-5"}}
    assert line(facts, "{price}") == "$0.12"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5", True),
        ("claude-opus-4-5[1m]", "claude-opus-4-5-20251101", True),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5", True),
        ("claude-opus-4-5@20251101", "claude-opus-4-5", True),
        ("claude-opus-4-5", "claude-opus-4-6", False),
        ("claude-sonnet-4-5", "claude-opus-4-5", False),
    ],
)
def test_ids_of_one_model(one: str, other: str, same: bool) -> None:
    assert is_same_model(one, other) is same


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"{", b"[]", b"7", b'"x"', b"\xff\xfe", b'{"transcript_path": 7}', b'{"transcript_path": "/no/file"}',
     b'{"transcript_path": "/"}', b'{"transcript_path": ""}', b'{"transcript_path": "\\u0000"}', b"{}" * 9],
)  # fmt: skip
def test_bad_input_gives_a_neutral_line_and_no_hook(text: bytes, folder: Path) -> None:
    line, problem = status_line(io.BytesIO(text), DEFAULT_FORMAT, LAST)
    assert line == NEUTRAL or set(line) <= set("cache – · next message session –")
    assert problem == ""
    assert hook_answer(io.BytesIO(text), HookOptions(), LAST) is None


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.lists(inner))
KEYS = st.sampled_from(["prompt_cache", "model", "cost", "prompt", "source", "to_model", "trigger", "session_id"])
CACHE = st.dictionaries(st.sampled_from(["warm", "ttl", "expires_at", "hit_ratio", "last_miss_cause"]), JSON)


@settings(max_examples=25)
@given(st.dictionaries(KEYS, JSON), CACHE, st.sampled_from(["UserPromptSubmit", "PreCompact", "SessionStart"]))
def test_facts_of_any_type_never_fail(facts: dict[str, Any], cache: dict[str, Any], event: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as named:
        path = small(write_sessions(Path(named)))
        text = json.dumps({"prompt_cache": cache, **facts, "transcript_path": str(path), "hook_event_name": event})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CACHECOST_STORE", "off")
            line, problem = status_line(io.BytesIO(text.encode()), DEFAULT_FORMAT, LAST)
            answer = hook_answer(io.BytesIO(text.encode()), HookOptions(Decimal(0), 0), LAST + 9000)
    assert line and "\n" not in line and problem == ""
    assert answer is None or set(answer) <= {"systemMessage"}


def test_an_unknown_field_is_said_once(folder: Path) -> None:
    line, problem = status_line(io.BytesIO(b"{}"), "{price} {nonsense}", LAST)
    assert line == NEUTRAL
    assert problem == f"no field {{nonsense}}; fields are {', '.join(FIELDS)}"


def test_every_field_has_a_value_or_a_dash(folder: Path) -> None:
    facts = {"transcript_path": str(small(folder)), "model": {"id": OPUS}}
    for name in FIELDS:
        assert line(facts, f"{{{name}}}"), name


# ------------------------------------------------------------------------------------------ what is remembered


def test_a_transcript_that_has_grown_is_what_the_bill_of_the_whole_says(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "work" / f"{MAIN}.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "grown.jsonl"
    for end in range(1, len(whole) + 1):
        path.write_bytes(b"".join(whole[:end]))
        state = SessionMemory(path, tmp_path / "memory").read()
        anew = SessionMemory(path, None).read()
        assert state == anew, end
    (file,) = SessionReading(None).read_all([path]).sessions
    assert state == session_state(file.calls, models_in(list_prices()), file.project)


def test_nothing_is_read_where_nothing_changed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = SessionMemory(small(folder), tmp_path / "memory").read()
    monkeypatch.setattr(remembered_session, "read_transcript", None)
    assert SessionMemory(small(folder), tmp_path / "memory").read() == first


@pytest.mark.parametrize("damage", [b"", b"\x00", b"no message pack", None])
def test_a_damaged_memory_is_read_anew(folder: Path, tmp_path: Path, damage: bytes | None) -> None:
    memory = tmp_path / "memory"
    first = SessionMemory(small(folder), memory).read()
    (file,) = memory.glob("*.session")
    file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    assert SessionMemory(small(folder), memory).read() == first


def test_a_flipped_bit_in_the_memory_is_noticed(folder: Path, tmp_path: Path) -> None:
    memory, random = tmp_path / "memory", Random(3)
    first = SessionMemory(small(folder), memory).read()
    (file,) = memory.glob("*.session")
    data = file.read_bytes()
    for _ in range(100):
        damaged = bytearray(data)
        damaged[random.randrange(len(data))] ^= 1 << random.randrange(8)
        file.write_bytes(damaged)
        assert SessionMemory(small(folder), memory).read() == first
        assert file.read_bytes() == data


def test_a_transcript_that_was_replaced_is_read_anew(folder: Path, tmp_path: Path) -> None:
    path, memory = tmp_path / "one.jsonl", tmp_path / "memory"
    path.write_bytes(small(folder).read_bytes())
    before = SessionMemory(path, memory).read()
    path.write_bytes((folder / "work" / f"{MAIN}.jsonl").read_bytes())
    after = SessionMemory(path, memory).read()
    assert before != after and after is not None and after.session == MAIN


def test_a_memory_that_cannot_be_written_changes_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert SessionMemory(small(folder), tmp_path / "file" / "below").read() is not None


# ------------------------------------------------------------------------------------------------------- hooks


def asks(folder: Path, event: str = "UserPromptSubmit", **others: object) -> dict[str, object]:
    return {"hook_event_name": event, "transcript_path": str(small(folder)), **others}


def test_a_hook_says_what_an_expensive_message_writes_again(folder: Path) -> None:
    message = hook(asks(folder, prompt="Go on."), LAST + 3600 + 720)
    assert message is not None and list(message) == ["systemMessage"]
    assert message["systemMessage"].startswith("cache expired 12 min ago: this message writes 20k tokens again, $0.20")


@pytest.mark.parametrize(
    ("others", "later", "options"),
    [
        ({"prompt": "Go on."}, 60, {}),
        ({"prompt": "/compact now"}, 9000, {}),
        ({"prompt": "Go on."}, 9000, {"least_usd": Decimal(1)}),
        ({"prompt": "Go on."}, 9000, {"least_tokens": 50_000}),
    ],
)
def test_a_hook_is_silent_otherwise(
    folder: Path, others: dict[str, object], later: float, options: dict[str, Any]
) -> None:
    assert hook(asks(folder, **others), LAST + later, **options) is None


def test_a_hook_blocks_only_if_asked_and_once(folder: Path) -> None:
    first = hook(asks(folder, prompt="Go on."), LAST + 9000, blocks=True)
    second = hook(asks(folder, prompt="Go on."), LAST + 9001, blocks=True)
    assert first is not None and first["decision"] == "block" and first["reason"].endswith("Send it again to go on.")
    assert second is not None and list(second) == ["systemMessage"]


def test_a_hook_before_a_compaction(folder: Path) -> None:
    message = hook(asks(folder, "PreCompact", trigger="manual"), LAST + 9000)
    assert message is not None and "compacting 20k tokens costs $0." in message["systemMessage"]
    blocked = hook(asks(folder, "PreCompact", trigger="auto"), LAST + 9000, blocks=True)
    assert blocked is not None and "decision" not in blocked, "what recovers a full context is never stopped"
    manual = hook(asks(folder, "PreCompact", trigger="manual"), LAST + 9000, blocks=True)
    assert manual is not None and manual["decision"] == "block"


@pytest.mark.parametrize(("source", "speaks"), [("resume", True), ("fork", True), ("startup", False), ("clear", False)])
def test_a_hook_before_a_resumed_session(folder: Path, source: str, speaks: bool) -> None:
    message = hook(asks(folder, "SessionStart", source=source), LAST + 9000, blocks=True)
    assert (message is not None) is speaks
    assert message is None or "the next message of this session writes 20k tokens again" in message["systemMessage"]


def test_a_hook_before_a_model_switch(folder: Path) -> None:
    facts = asks(folder, "PreModelSwitch", from_model=OPUS, to_model="claude-sonnet-4-5")
    message = hook(facts, LAST + 60)
    assert message is not None
    assert message["systemMessage"].startswith(
        "claude-sonnet-4-5 reads nothing of this cache: the next message writes 20k"
    )
    asked = hook(facts, LAST + 60, blocks=True)
    assert asked is not None and asked["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert hook({**facts, "to_model": f"{OPUS}[1m]"}, LAST + 60) is None


def test_thresholds_from_options_and_environment() -> None:
    environment = {"CACHECOST_HOOK_LEAST_USD": "0.5", "CACHECOST_HOOK_LEAST_TOKENS": "7"}
    assert parse_options([], environment) == (HookOptions(Decimal("0.5"), 7), "")
    assert parse_options(["--least-usd=2", "--least-tokens", "9", "--block"], environment)[0] == (Decimal(2), 9, True)
    options, problem = parse_options(["--least-usd", "much"], {})
    assert options == HookOptions() and problem


# ---------------------------------------------------------------------------------------------- as a process


def run_python(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], input=stdin, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("command", ["statusline", "hook"])
def test_as_a_process_it_ends_well_and_loads_no_click(command: str, folder: Path) -> None:
    code = (
        f"import sys, os; sys.argv = ['cachecost', {command!r}]\n"
        "heavy = ('click', 'rich', 'numpy', 'tiktoken', 'cachecost.simulation', 'cachecost.cli')\n"
        "def end(code): print([name for name in heavy if name in sys.modules], file=sys.stderr); sys.exit(code)\n"
        "os._exit = end\n"
        "from cachecost.__main__ import main; main()"
    )
    facts = {**asks(folder, prompt="x"), "model": {"id": OPUS}}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(facts), capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert done.stdout.startswith("cache 50%" if command == "statusline" else '{"systemMessage":"cache expired')


REDIRECTIONS = {
    "stdin closed": "<&-",
    "stdout closed": ">&-",
    "stderr closed": "2>&-",
    "all closed": "<&- >&- 2>&-",
    "stdin endless": "</dev/zero",
    "stdin silent": "<silent",
    "stdout full": ">/dev/full",
    "stdout not read": ">full-pipe",
    "reader gone": "| true",
}


@pytest.mark.parametrize(("command", "streams"), mostly_slow(product(["statusline", "hook"], REDIRECTIONS), 9))
def test_whatever_its_streams_are_it_ends_with_0_soon_and_says_nothing(
    command: str, streams: str, tmp_path: Path, folder: Path
) -> None:
    """A pipe that a process holds open without writing to it, and one without a reader that is open for both."""
    (tmp_path / "facts").write_text(json.dumps(asks(folder, prompt="x")))
    os.mkfifo(tmp_path / "silent")
    os.mkfifo(tmp_path / "full-pipe")
    held = [os.open(tmp_path / name, os.O_RDWR) for name in ("silent", "full-pipe")]
    os.set_blocking(held[1], False)
    with suppress(BlockingIOError):
        while True:
            os.write(held[1], b"x" * 4096)
    redirection = REDIRECTIONS[streams]
    first = "" if "<" in redirection else "<facts"
    line = f"{sys.executable} -m cachecost {command} {first} {redirection}; exit ${{PIPESTATUS[0]}}"
    try:
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    finally:
        for one in held:
            os.close(one)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_transcript_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.jsonl")
    facts = {"transcript_path": str(tmp_path / "t.jsonl"), "hook_event_name": "UserPromptSubmit", "prompt": "x"}
    done = run_python("-m", "cachecost", "hook", stdin=json.dumps(facts))
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("command", ["statusline", "hook"])
def test_its_help_is_that_of_any_command(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cachecost", command, "--help"], capture_output=True, text=True, check=True
    )
    assert f"cachecost {command} [OPTIONS]" in done.stdout
