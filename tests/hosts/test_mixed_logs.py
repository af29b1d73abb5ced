"""Calls of caches that explain, whatif, optimize and lint do not support are left out of a log, and it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from host_logs import Sent, Told, ask, body, every, write_log

import cachecost
from bodies import Body, assistant, marked, text, user
from conversations.session_stores import write_lines

CLAUDE = "claude-opus-5-5"
HEAD: Body = {"system": [marked(text(5_000, "s"))]}
ASKED, ANSWERED, THEN = user(text(3_000, "a")), assistant(text(100, "b")), user(text(200, "c"))
REQUESTS = [
    body(ASKED, **HEAD),
    body(ASKED, ANSWERED, THEN, **HEAD),
    body(ASKED, system=[marked(text(5_000, "t"))]),
    body(ASKED, ANSWERED, THEN, **HEAD),
]
BILL = {"input_tokens": 2000, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 1000}
COMMANDS = ["explain", "whatif", "optimize"]
OBJECTS = ("gemini-3.8-flash-explicit", "gemini")
SUPPORTED = {"optimize": "breakpoint caches with a lookback only, like Claude's"}
"""What a command supports, where it is not as below."""


def supports(command: str) -> str:
    return f"supports {SUPPORTED.get(command, 'all caches but explicit cache objects')}"


REST = "figures are of the other calls, and replay prices these"
NUMBERS = {"call", "since_call", "line", "since", "file", "log", "at", "name"}
"""Where a call stands in its log: another place in a log that has more calls."""


def others(*models: tuple[str, str]) -> list[Sent]:
    """A call of each model and host, between those of Claude."""
    return [
        Sent(10.0 + 20 * number, {**body(ASKED, **HEAD), "model": model}, host)
        for number, (model, host) in enumerate(models)
    ]


def write(path: Path, *calls: Sent, bill: bool = False) -> Path:
    write_log(path, CLAUDE, sorted(calls, key=lambda call: call.at))
    if bill:
        lines = [{**json.loads(line), "usage": BILL} for line in path.read_text(encoding="utf-8").splitlines()]
        return write_lines(path, lines)
    return path


def figures(result: Told) -> Any:
    """The JSON object of a command, without the places of calls."""
    return without_places(json.loads(result.out))


def without_places(found: Any) -> Any:
    if isinstance(found, list):
        return [without_places(one) for one in found]
    if isinstance(found, dict):
        return {key: without_places(one) for key, one in found.items() if key not in NUMBERS}
    return found


@pytest.mark.parametrize("bill", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_calls_of_other_caches_are_left_out_and_the_rest_has_its_figures(
    tmp_path: Path, command: str, bill: bool
) -> None:
    own = every(20, *REQUESTS)
    mixed = [*own, *others(OBJECTS, ("gemini-3.6-flash-explicit", "gemini"), OBJECTS)]
    result = ask(command, write(tmp_path / "mixed.jsonl", *mixed, bill=bill), "--json")
    alone = ask(command, write(tmp_path / "alone.jsonl", *own, bill=bill), "--json")
    assert (result.code, alone.code) == (0, 0), result
    assert "left out" not in alone.words
    rest = [line for line in result.words.splitlines() if not line.startswith("left out: ")]
    assert rest == alone.words.splitlines()
    assert result.words.splitlines()[:2] == [
        f"left out: 2 calls of {OBJECTS[0]} on gemini: {command} {supports(command)}; {REST}",
        f"left out: 1 call of gemini-3.6-flash-explicit on gemini: {command} {supports(command)}; {REST}",
    ]
    assert figures(result) == figures(alone)


def test_findings_keep_their_place_in_the_log(tmp_path: Path) -> None:
    calls = [*every(20, *REQUESTS), *others(OBJECTS)]
    result = ask("explain", write(tmp_path / "log.jsonl", *calls), "--json")
    found = [(one["call"], one["since_call"], one["line"]) for one in json.loads(result.out)["findings"]]
    assert found == [(3, 1, 3), (4, 1, 4), (4, 1, 4), (5, 3, 5)], result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_log_of_such_calls_alone_is_not_evaluated(tmp_path: Path, command: str) -> None:
    result = ask(command, write(tmp_path / "log.jsonl", *others(OBJECTS)))
    assert (result.code, result.out) == (3, "")
    assert result.words == (
        f"{command} {supports(command)}; the cache of {OBJECTS[0]} on host gemini keeps explicit cache objects "
        "(bill, replay and validate support it)\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_calls_without_rules_are_no_rest(tmp_path: Path, command: str) -> None:
    """Beside other caches nothing can be evaluated; beside Claude's calls they are said as ever, and kept."""
    unknown = Sent(70.0, {**body(ASKED), "model": "claude-opus-9"})
    log = write(tmp_path / "log.jsonl", *others(OBJECTS), unknown)
    assert ask(command, log).code == 3
    assert ask(command, write(tmp_path / "log.jsonl", *every(20, *REQUESTS), unknown)).code == 0


def test_python_warns_of_them(tmp_path: Path) -> None:
    own = every(20, *REQUESTS)
    mixed, alone = write(tmp_path / "mixed.jsonl", *own, *others(OBJECTS)), write(tmp_path / "a", *own)
    for function in (cachecost.explain, cachecost.whatif, cachecost.optimize):
        words = rf"^left out: 1 call of {OBJECTS[0]} on gemini: {function.__name__} supports"
        with pytest.warns(UserWarning, match=words):
            found = function(mixed)
        assert repr(found) == repr(function(alone))


def test_the_page_of_a_replay_has_the_avoidable_costs_of_the_rest(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", *every(20, *REQUESTS), *others(OBJECTS))
    result = ask("replay", log, "--html", tmp_path / "page.html")
    assert result.code == 0
    which = f"1 call of {OBJECTS[0]} on gemini: explain {supports('explain')}"
    assert f"avoidable costs on the page: left out: {which}" in result.words


def test_lint_checks_the_rest(tmp_path: Path) -> None:
    """Its exit code is that of what was checked; where nothing was, it says so as ever."""
    claude = every(20, body(ASKED, max_tokens=64))
    alone = ask("lint", write(tmp_path / "log.jsonl", *claude), "--json")
    result = ask("lint", write(tmp_path / "log.jsonl", *claude, *others(OBJECTS)), "--json")
    assert (result.code, alone.code) == (0, 0), result
    assert without_places(json.loads(result.out)) == without_places(json.loads(alone.out))
    assert result.words == (f"left out: 1 call of {OBJECTS[0]} on gemini: lint {supports('lint')}; {REST}\n")
    result = ask("lint", write(tmp_path / "log.jsonl", *others(OBJECTS)))
    assert result.code == 3
    assert f"not checked: call 1: lint {supports('lint')}; the cache of {OBJECTS[0]}" in result.words
